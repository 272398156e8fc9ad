"""The clause catalogue: every numbered statement about Kafka's behaviour, as data.

One file a chapter, ``<chapter>.toml``; the file says which section of the behaviour it holds and then its clauses::

    section = "1"
    title = "AbstractIndex"

    [[clause]]
    id = "AI-16c"                     # the letter is a variant of AI-16, mostly one for other releases
    title = "Trimming an unmapped index does nothing"
    statement = "On an unmapped index …"
    level = "MUST"                    # or OBSERVED: then with a reason, and what it excuses
    releases = "3.9.2, 4.0.1.."       # see conformance.clauses.release_range
    promise = "files: …"              # of a MUST: its source, or what of Kafka depends on it
    source = "AbstractIndex.java: trimToValidSize"
    evidence = "E"                    # executed, S read in the source, I from an issue, U unverified
    trace = "log-cc64cea2742d"        # the smallest trace that shows it, where one is in conformance/traces
    exercised_by = ["offset", "time"] # or not_exercised = "why no machine can show it"

``MUST`` is what users and other tools depend on: ``promise`` names the KIP, the page of Kafka's documentation or the
public Javadoc that promises it, or begins with ``files:`` and says what of Kafka cannot read or believe other files.
``OBSERVED`` is an accident or a defect of Kafka that an implementation need not copy; ``excuses`` names the parts of a
step (:data:`FACETS`) in which it may do better, all of them if it is left out. A part of a part may stand there, too:
``state/FIELD``, ``bytes/SUFFIX`` for the files whose names end so, and ``bytes/room``, ``bytes/sound`` and
``bytes/absentSUFFIX`` by how a file differs (see :mod:`conformance.lockstep.file_differences`).
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

from conformance.clauses.release_range import ReleaseRange, ReleaseRangeError
from conformance.errors import ToolError

Level = Literal["MUST", "OBSERVED"]
LEVELS: Final = ("MUST", "OBSERVED")
EVIDENCE: Final = {"E": "executed", "S": "read in the source", "I": "from an issue", "U": "unverified"}
FACETS: Final = ("outcome", "text", "state", "bytes")
"""The parts of a step that are compared: value or error kind, Kafka's own text, the state after it, the files."""
MACHINES: Final = ("offset", "time", "transaction", "lazy", "segment", "log", "cleaned", "broker", "wire")

_ID: Final = re.compile(r"[A-Z]{2,3}-\d+[a-z]?")
_NEEDED: Final = ("id", "title", "statement", "level", "releases", "source", "evidence")
_ALLOWED: Final = frozenset(
    {*_NEEDED, "promise", "reason", "ticket", "trace", "excuses", "exercised_by", "not_exercised"}
)


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
        level: ``"MUST"`` or ``"OBSERVED"``.
        releases: where it holds.
        source: Kafka's file, class and method.
        evidence: ``E``, ``S``, ``I`` or ``U``, see :data:`EVIDENCE`.
        exercised_by: the machines whose steps can show it; empty if none can.
        not_exercised: why none can; empty if one can.
        promise: of a MUST clause, the source of the promise, or what depends on it.
        reason: of an OBSERVED clause, why an implementation need not copy it.
        ticket: Kafka's issue about it, where one is known.
        trace: the smallest recorded trace that shows it, ``<machine>-<id>`` in ``conformance/traces``.
        excuses: of an OBSERVED clause, the facets, or parts of them, in which a step may differ because of it.
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
    exercised_by: tuple[str, ...] = ()
    not_exercised: str = ""
    promise: str = ""
    reason: str = ""
    ticket: str = ""
    trace: str = ""
    excuses: frozenset[str] = frozenset()

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


def clauses_for(machine: str, release: str) -> tuple[Clause, ...]:
    """The clauses that a machine can exercise on a release, in the catalogue's order.

    Raises:
        ValueError: there is no such machine.
    """
    if machine not in MACHINES:
        raise ValueError(f"no machine {machine!r}; there are {', '.join(MACHINES)}")
    return tuple(
        clause for clause in load_clauses().values() if machine in clause.exercised_by and clause.applies_to(release)
    )


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
        releases = ReleaseRange.parse(entry["releases"])
    except ReleaseRangeError as error:
        raise CatalogueError(f"{where}: {error}") from None
    observed = entry["level"] == "OBSERVED"
    return Clause(
        chapter=chapter,
        section=section,
        releases=releases,
        exercised_by=tuple(entry.get("exercised_by", ())),
        excuses=frozenset(entry.get("excuses", FACETS) if observed else ()),
        **{key: entry[key] for key in ("id", "title", "statement", "level", "source", "evidence")},
        **{key: entry.get(key, "") for key in ("not_exercised", "promise", "reason", "ticket", "trace")},
    )


def _check_keys(where: str, entry: Mapping[str, Any]) -> None:
    if missing := [key for key in _NEEDED if not entry.get(key)]:
        raise CatalogueError(f"{where} has no {', '.join(missing)}")
    if unknown := sorted(set(entry) - _ALLOWED):
        raise CatalogueError(f"{where} has {', '.join(unknown)}, which no clause has")
    if bool(entry.get("exercised_by")) == bool(entry.get("not_exercised")):
        raise CatalogueError(f"{where} must say either exercised_by or not_exercised")
    observed = entry["level"] == "OBSERVED"
    if observed != bool(entry.get("reason")):
        raise CatalogueError(f"{where} is {entry['level']}: an OBSERVED clause has a reason, a MUST has none")
    if observed == bool(entry.get("promise")):
        raise CatalogueError(f"{where} is {entry['level']}: a MUST clause has a promise, an OBSERVED one has none")
    if "excuses" in entry and not observed:
        raise CatalogueError(f"{where} is {entry['level']} and excuses nothing")


def _check_values(where: str, entry: Mapping[str, Any]) -> None:
    if not _ID.fullmatch(entry["id"]):
        raise CatalogueError(f"{where}: an id is two or three letters, a number and perhaps a letter, such as AI-16c")
    _one_of(where, "level", [entry["level"]], LEVELS)
    _one_of(where, "evidence", [entry["evidence"]], EVIDENCE)
    _one_of(where, "machine", entry.get("exercised_by", ()), MACHINES)
    _one_of(where, "facet", (each.partition("/")[0] for each in entry.get("excuses", ())), FACETS)


def _one_of(where: str, what: str, values: Iterable[str], known: Iterable[str]) -> None:
    for value in values:
        if value not in known:
            raise CatalogueError(f"{where}: {what} {value!r} is none of {', '.join(known)}")
