"""Clause catalogue: every numbered statement about Kafka's behaviour, as data.

There is one file per chapter, ``<chapter>.toml``: its section of the behaviour, and then its clauses::

    section = "1"
    title = "AbstractIndex"

    [[clause]]
    id = "AI-16c"                     # the letter is a variant of AI-16, usually for other releases
    title = "Trimming an unmapped index does nothing"
    statement = "Trimming an unmapped index MUST return without …"
    level = "MUST"                    # or API or OBSERVED: then with a reason, and the facets that it excuses
    releases = "3.9.2, 4.0.1.."       # or "where close_trims": see kidx.dialect.release_range, release_ranges
    promise = "files: …"              # of a MUST or API: its source, or the part of Kafka that depends on it
    promises = ["kind"]               # of a MUST that guarantees the kind of an error, too, or the "length" of a file
    source = "AbstractIndex.java: trimToValidSize"
    evidence = "E"                    # executed, S read in the source, I from an issue, U unverified
    trace = "log-cc64cea2742d"        # the smallest trace that shows it, if one is in conformance/traces
    not_exercised = "…"               # of a clause that no machine can exercise: the reason

A statement of level MUST or API is normative: a component MUST do something. A statement of level OBSERVED says what
Kafka does. Each is readable without the others.

Users and other tools depend on ``MUST``. ``promise`` names the KIP, the documentation page or the public Javadoc that
guarantees it; or it begins with ``files:`` and names the part of Kafka that cannot read, or does not trust, other
files. ``API`` is guaranteed as well, but only to callers of Kafka's Java classes: nobody notices it who reads the files
with Kafka, or consumes from the log. The kind of an error, the free space after an index's entries, and the results of
a closed index belong to it, too, whichever clause is about them. ``OBSERVED`` is an accident or a defect of Kafka that
an implementation need not copy. ``reason`` explains both levels. ``excuses`` lists the facets of a step
(:data:`FACETS`) in which an implementation may differ; by default all of them for an OBSERVED clause, and none for an
API clause. A part of a facet is possible, too: ``outcome/error`` if only one side fails, ``outcome/entry`` if one side
rejects an index entry of records that both have appended, ``outcome/FIELD`` of a result,
``state/FIELD``, ``bytes/SUFFIX`` for files with this suffix,
``bytes/of-outcome`` for bytes and a state that follow from another outcome, and seven kinds of file difference:
``bytes/room`` (only the unused end differs, in length), ``bytes/tail`` (only bytes after the entries differ),
``bytes/empty`` (an empty file or none), ``bytes/blank`` (a log of zeros only), ``bytes/sound`` (other entries,
but correct ones), ``bytes/sparseSUFFIX`` (no entries, and none are needed) and ``bytes/absentSUFFIX`` (only one side
has the file).
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from string import ascii_lowercase
from typing import Any, Final, Literal

from conformance.clauses.release_ranges import parse_range
from conformance.errors import ToolError
from kidx.dialect.release_range import ReleaseRange, ReleaseRangeError

Level = Literal["MUST", "API", "OBSERVED"]
LEVELS: Final = ("MUST", "API", "OBSERVED")
"""Levels from the guarantees to everyone to mere behaviour of Kafka; a verdict at one level ignores the later ones."""
EVIDENCE: Final = {"E": "executed", "S": "read in the source", "I": "from an issue", "U": "unverified"}
FACETS: Final = ("outcome", "text", "state", "bytes")
"""Compared parts of a step: value or kind of error, Kafka's own text, the state after it, the files."""

_ID: Final = re.compile(r"[A-Z]{2,3}-\d+[a-z]?")
_NEEDED: Final = ("id", "title", "statement", "level", "releases", "source", "evidence")
_ALLOWED: Final = frozenset({*_NEEDED, "promise", "promises", "reason", "ticket", "trace", "excuses", "not_exercised"})


class CatalogueError(ToolError):
    """Contradiction in the catalogue: the message names the file, the clause and the mistake."""


@dataclass(frozen=True, slots=True)
class Clause:
    """One numbered statement.

    Attributes:
        id: The id, e.g. ``"AI-16c"``; the letters before the dash name the chapter, a letter at the end a variant.
        chapter: The name of its file, e.g. ``"abstract_index"``.
        section: The section that it belongs to, e.g. ``"1.1"``.
        title: A title of three to eight words.
        statement: The full requirement.
        level: ``"MUST"``, ``"API"`` or ``"OBSERVED"``.
        releases: The releases that it applies to.
        source: Kafka's file, class and method.
        evidence: ``E``, ``S``, ``I`` or ``U``, see :data:`EVIDENCE`.
        not_exercised: The reason why no step of a machine can exercise it; empty if one can.
        promise: The source of the guarantee of a MUST or API clause, or the part of Kafka that depends on it.
        promises: ``"kind"`` if a MUST clause guarantees the kind of an error, ``"length"`` for a length of a file.
        reason: The reason why another clause is not a MUST.
        ticket: Kafka's issue about it, if one is known.
        trace: The smallest recorded trace that shows it, ``<machine>-<id>`` in ``conformance/traces``.
        excuses: The facets, or parts of them, in which a step may differ because of an API or OBSERVED clause.
    """

    id: str
    chapter: str
    section: str
    title: str
    statement: str
    level: Level
    releases: ReleaseRange
    source: str
    evidence: str
    not_exercised: str = ""
    promise: str = ""
    reason: str = ""
    ticket: str = ""
    trace: str = ""
    excuses: frozenset[str] = frozenset()
    promises: frozenset[str] = frozenset()

    def applies_to(self, release: str) -> bool:
        """Return True if the clause applies to a release."""
        return release in self.releases

    def counts(self, level: str) -> bool:
        """Return True if the clause counts at a level of the verdict: ``"must"``, ``"api"`` or ``"observed"``."""
        return LEVELS.index(self.level) <= LEVELS.index(level.upper())


@cache
def load_clauses() -> dict[str, Clause]:
    """Return the whole catalogue by id, in the order of its sections. The dictionary is shared: do not change it.

    Raises:
        CatalogueError: The packaged data is malformed.
    """
    chapters = {
        entry.name.removesuffix(".toml"): entry.read_text("utf-8")
        for entry in files(__package__).iterdir()
        if entry.name.endswith(".toml")
    }
    return read_catalogue(chapters)


@cache
def load_chapters() -> dict[str, str]:
    """Return the title of each chapter by its name, e.g. ``"offset_index"``: ``"OffsetIndex"``; do not change it."""
    chapters = (entry for entry in files(__package__).iterdir() if entry.name.endswith(".toml"))
    return {e.name.removesuffix(".toml"): str(tomllib.loads(e.read_text("utf-8")).get("title", "")) for e in chapters}


def family(clause: str) -> str:
    """Return an id without the letter of its variant."""
    return clause.rstrip(ascii_lowercase)


def read_catalogue(chapters: Mapping[str, str]) -> dict[str, Clause]:
    """Parse a catalogue from the texts of its chapters.

    Args:
        chapters: The TOML text of each chapter by its name.

    Raises:
        CatalogueError: A text is not TOML, a clause is malformed, or two clauses have the same id.
    """
    found: list[Clause] = []
    for chapter, text in chapters.items():
        try:
            table = tomllib.loads(text)
        except tomllib.TOMLDecodeError as error:
            raise CatalogueError(f"{chapter}.toml is not TOML: {error}") from None
        section = table.get("section")
        if not isinstance(section, str):
            raise CatalogueError(
                f"conformance/clauses/{chapter}.toml has no section; begin it with a line such as section = '3.2'"
            )
        found += [_read_clause(chapter, section, entry) for entry in table.get("clause", [])]
    catalogue: dict[str, Clause] = {}
    for clause in sorted(found, key=_reading_order):
        if clause.id in catalogue:
            raise CatalogueError(
                f"clause {clause.id} is in {catalogue[clause.id].chapter}.toml and {clause.chapter}.toml"
            )
        catalogue[clause.id] = clause
    return catalogue


def _reading_order(clause: Clause) -> tuple[list[int], str, int, str]:
    family, _, number = clause.id.partition("-")
    digits = number.rstrip(ascii_lowercase)
    return [int(part) for part in clause.section.split(".")], family, int(digits), number[len(digits) :]


def _read_clause(chapter: str, section: str, entry: Mapping[str, Any]) -> Clause:
    where = f"{chapter}.toml, clause {entry.get('id', '(without id)')}"
    _check_keys(where, entry)
    _check_values(where, entry)
    try:
        releases = parse_range(entry["releases"])
    except ReleaseRangeError as error:
        raise CatalogueError(f"{where}: {error}") from None
    by_default = FACETS if entry["level"] == "OBSERVED" else ()
    return Clause(
        chapter=chapter,
        section=section,
        releases=releases,
        excuses=frozenset(entry.get("excuses", by_default)),
        promises=frozenset(entry.get("promises", ())),
        **{key: entry[key] for key in ("id", "title", "statement", "level", "source", "evidence")},
        **{key: entry.get(key, "") for key in ("not_exercised", "promise", "reason", "ticket", "trace")},
    )


def _check_keys(where: str, entry: Mapping[str, Any]) -> None:
    if missing := [key for key in _NEEDED if not entry.get(key)]:
        raise CatalogueError(f"{where} has no {', '.join(missing)}")
    if unknown := sorted(set(entry) - _ALLOWED):
        raise CatalogueError(f"{where} has unknown keys: {', '.join(unknown)}")
    level = entry["level"]
    _one_of(where, "level", [level], LEVELS)
    if (level != "MUST") != bool(entry.get("reason")):
        raise CatalogueError(f"{where} is {level}: a clause of API or OBSERVED requires a reason, a MUST has none")
    if (level != "OBSERVED") != bool(entry.get("promise")):
        raise CatalogueError(f"{where} is {level}: a clause of MUST or API requires a promise, an OBSERVED has none")
    if "excuses" in entry and level == "MUST":
        raise CatalogueError(f"{where} is MUST and cannot have excuses")
    if "promises" in entry and level != "MUST":
        raise CatalogueError(f"{where} is {level} and cannot promise the kind of an error or a length")


def _check_values(where: str, entry: Mapping[str, Any]) -> None:
    if not _ID.fullmatch(entry["id"]):
        raise CatalogueError(f"{where}: an id is two or three letters, a number and perhaps a letter, such as AI-16c")
    _one_of(where, "evidence", [entry["evidence"]], EVIDENCE)
    _one_of(where, "promise", entry.get("promises", ()), ("kind", "length"))
    _one_of(where, "facet", (each.partition("/")[0] for each in entry.get("excuses", ())), FACETS)


def _one_of(where: str, what: str, values: Iterable[str], known: Iterable[str]) -> None:
    for value in values:
        if value not in known:
            raise CatalogueError(f"{where}: unknown {what} {value!r}; choose from {', '.join(known)}")
