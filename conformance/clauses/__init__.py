"""The clause catalogue: every numbered statement about Kafka's behaviour, as data.

One file a chapter, ``<chapter>.toml``; the file says which section of the behaviour it holds and then its clauses::

    section = "1"
    title = "AbstractIndex"

    [[clause]]
    id = "AI-16c"                     # the letter is a variant of AI-16, mostly one for other releases
    title = "Trimming an unmapped index does nothing"
    statement = "On an unmapped index …"
    level = "MUST"                    # or API or OBSERVED: then with a reason, and what it excuses
    releases = "3.9.2, 4.0.1.."       # or "where close_trims": see kidx.dialect.release_range, behaviour_range
    promise = "files: …"              # of a MUST or API: its source, or what of Kafka depends on it
    promises = ["kind"]               # of a MUST that promises which kind of refusal it is, too
    source = "AbstractIndex.java: trimToValidSize"
    evidence = "E"                    # executed, S read in the source, I from an issue, U unverified
    trace = "log-cc64cea2742d"        # the smallest trace that shows it, where one is in conformance/traces
    not_exercised = "…"               # of a clause that no machine can show: why

``MUST`` is what users and other tools depend on: ``promise`` names the KIP, the page of Kafka's documentation or the
public Javadoc that promises it, or begins with ``files:`` and says what of Kafka cannot read or believe other files.
``API`` is promised as well, but to callers of Kafka's Java classes alone: nobody notices it who reads the files with
Kafka, or consumes from the log. Which kind of refusal it is, how much room there is behind the entries of an index, and
what a closed index answers is theirs, too, whatever clause speaks of it.
``OBSERVED`` is an accident or a defect of Kafka that an implementation need not copy. ``reason`` says of both why.
``excuses`` names the parts of a step (:data:`FACETS`) in which it may do better: if it is left out, all of them for an
OBSERVED clause, none for one of the API. A part of a part may stand there, too:
``state/FIELD``, ``bytes/SUFFIX`` for the files whose names end so, and ``bytes/room``, ``bytes/sound``,
``bytes/sparseSUFFIX`` and ``bytes/absentSUFFIX`` by how a file differs (see
:mod:`conformance.lockstep.file_differences`).
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

from conformance.clauses.behaviour_range import parse_range
from conformance.errors import ToolError
from kidx.dialect.release_range import ReleaseRange, ReleaseRangeError

Level = Literal["MUST", "API", "OBSERVED"]
LEVELS: Final = ("MUST", "API", "OBSERVED")
"""From what everyone is promised to what Kafka merely does; a verdict at one of them leaves the later ones out."""
EVIDENCE: Final = {"E": "executed", "S": "read in the source", "I": "from an issue", "U": "unverified"}
FACETS: Final = ("outcome", "text", "state", "bytes")
"""The parts of a step that are compared: value or error kind, Kafka's own text, the state after it, the files."""
MACHINES: Final = ("offset", "time", "transaction", "segment", "log", "cleaned", "cache", "broker", "wire")

_ID: Final = re.compile(r"[A-Z]{2,3}-\d+[a-z]?")
_NEEDED: Final = ("id", "title", "statement", "level", "releases", "source", "evidence")
_ALLOWED: Final = frozenset({*_NEEDED, "promise", "promises", "reason", "ticket", "trace", "excuses", "not_exercised"})


class CatalogueError(ToolError):
    """The catalogue contradicts itself: the message names the file, the clause and what is wrong with it."""


@dataclass(frozen=True, slots=True)
class Clause:
    """One numbered statement.

    Attributes:
        id: e.g. ``"AI-16c"``; the letters before the dash name the chapter, a letter at the end a part.
        chapter: the file it is in, e.g. ``"abstract_index"``.
        section: the section it belongs to, e.g. ``"1.1"``.
        title: three to eight words.
        statement: what holds, in full.
        level: ``"MUST"``, ``"API"`` or ``"OBSERVED"``.
        releases: where it holds.
        source: Kafka's file, class and method.
        evidence: ``E``, ``S``, ``I`` or ``U``, see :data:`EVIDENCE`.
        not_exercised: why no step of a machine can show it; empty if one can.
        promise: of a MUST or API clause, the source of the promise, or what depends on it.
        promises_kind: whether a MUST clause promises which kind of refusal it is.
        reason: of another one, why it is none.
        ticket: Kafka's issue about it, where one is known.
        trace: the smallest recorded trace that shows it, ``<machine>-<id>`` in ``conformance/traces``.
        excuses: of such a clause, the facets, or parts of them, in which a step may differ because of it.
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
    promises_kind: bool = False

    def applies_to(self, release: str) -> bool:
        """Whether the clause says something about a release."""
        return release in self.releases


@cache
def load_clauses() -> dict[str, Clause]:
    """The whole catalogue by id, in the order of its sections. The dictionary is shared: do not change it.

    Raises:
        CatalogueError: the packaged data is malformed.
    """
    chapters = {
        entry.name.removesuffix(".toml"): entry.read_text("utf-8")
        for entry in files(__package__).iterdir()
        if entry.name.endswith(".toml")
    }
    return read_catalogue(chapters)


@cache
def load_chapters() -> dict[str, str]:
    """The title of each chapter by its name, e.g. ``"offset_index"``: ``"OffsetIndex"``; do not change it."""
    chapters = (entry for entry in files(__package__).iterdir() if entry.name.endswith(".toml"))
    return {e.name.removesuffix(".toml"): str(tomllib.loads(e.read_text("utf-8")).get("title", "")) for e in chapters}


def family(clause: str) -> str:
    """Return an id without the letter of its variant."""
    return clause.rstrip(ascii_lowercase)


def read_catalogue(chapters: Mapping[str, str]) -> dict[str, Clause]:
    """A catalogue from the texts of its chapters.

    Args:
        chapters: the TOML text of each chapter by its name.

    Raises:
        CatalogueError: a text is no TOML, a clause is malformed, or two clauses have one id.
    """
    found: list[Clause] = []
    for chapter, text in chapters.items():
        try:
            table = tomllib.loads(text)
        except tomllib.TOMLDecodeError as error:
            raise CatalogueError(f"{chapter}.toml is not TOML: {error}") from None
        section = table.get("section")
        if not isinstance(section, str):
            raise CatalogueError(f"{chapter}.toml does not say which section it holds")
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
        promises_kind="kind" in entry.get("promises", ()),
        **{key: entry[key] for key in ("id", "title", "statement", "level", "source", "evidence")},
        **{key: entry.get(key, "") for key in ("not_exercised", "promise", "reason", "ticket", "trace")},
    )


def _check_keys(where: str, entry: Mapping[str, Any]) -> None:
    if missing := [key for key in _NEEDED if not entry.get(key)]:
        raise CatalogueError(f"{where} has no {', '.join(missing)}")
    if unknown := sorted(set(entry) - _ALLOWED):
        raise CatalogueError(f"{where} has {', '.join(unknown)}, which no clause has")
    level = entry["level"]
    _one_of(where, "level", [level], LEVELS)
    if (level != "MUST") != bool(entry.get("reason")):
        raise CatalogueError(f"{where} is {level}: a clause of API or OBSERVED has a reason, a MUST has none")
    if (level != "OBSERVED") != bool(entry.get("promise")):
        raise CatalogueError(f"{where} is {level}: a clause of MUST or API has a promise, an OBSERVED one has none")
    if "excuses" in entry and level == "MUST":
        raise CatalogueError(f"{where} is MUST and excuses nothing")
    if "promises" in entry and level != "MUST":
        raise CatalogueError(f"{where} is {level} and promises no kind of refusal")


def _check_values(where: str, entry: Mapping[str, Any]) -> None:
    if not _ID.fullmatch(entry["id"]):
        raise CatalogueError(f"{where}: an id is two or three letters, a number and perhaps a letter, such as AI-16c")
    _one_of(where, "evidence", [entry["evidence"]], EVIDENCE)
    _one_of(where, "promise", entry.get("promises", ()), ("kind",))
    _one_of(where, "facet", (each.partition("/")[0] for each in entry.get("excuses", ())), FACETS)


def _one_of(where: str, what: str, values: Iterable[str], known: Iterable[str]) -> None:
    for value in values:
        if value not in known:
            raise CatalogueError(f"{where}: {what} {value!r} is none of {', '.join(known)}")
