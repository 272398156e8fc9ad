"""Construction of the scoreboard from the event streams of test runs.

A row is an implementation compared with one Kafka release, and a column is an area such as ``time index``.

Areas of the scoreboard, read from ``areas.toml``: clauses, state machines, and the meaning of a divergence.

Test runs for the scoreboard: each implementation alone. Known divergences count, too: no expectations are used.
"""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from msgspec import convert

from conformance.attribution.baseline import MACHINE, Score, score
from conformance.clauses import load_clauses
from conformance.expectations import load_expectations
from conformance.implementations.forms import form_of, is_server
from conformance.report.divergence import format_divergence
from conformance.report.rendering import trace_text
from conformance.report.scoreboard.board import Board, BoardDivergence, Cell, KnownReason, Row, RunProvenance
from conformance.report.stream import NdjsonWriter, Stream, read_stream
from conformance.runs.completeness import compared_in
from conformance.runs.plan import Plan
from conformance.runs.runner import run
from conformance.subjects import Subject, load_subjects

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from pathlib import Path

    from conformance.events import Diverged, Result
    from conformance.expectations import Expectation
    from conformance.kafka.jar_fetch import Progress
    from conformance.runs.profiles import Profile, SeedRequest
    from conformance.runs.wire_options import WireOptions


@dataclass(frozen=True, slots=True)
class Area:
    """Column of the scoreboard.

    Attributes:
        name: The heading.
        place: The number of the column.
        clauses: Shell patterns of the ids of clauses.
        means: The consequence of a divergence for a consumer, in one sentence.
        machines: The state machines whose results belong to the area; empty for all.
    """

    name: str
    place: int
    clauses: tuple[str, ...]
    means: str
    machines: tuple[str, ...] = ()

    def has(self, machine: str, clause: str) -> bool:
        """Return True if the area includes a clause of a machine, unless an earlier area does."""
        is_machine = not self.machines or machine in self.machines
        return is_machine and any(fnmatchcase(clause, pattern) for pattern in self.clauses)


@dataclass(frozen=True, slots=True)
class Meaning:
    """Consequence of a divergence in some clauses for a consumer.

    Attributes:
        clauses: Shell patterns of the ids of clauses.
        says: The consequence, in one sentence.
    """

    clauses: tuple[str, ...]
    says: str


@dataclass(frozen=True, slots=True)
class Areas:
    """Content of ``areas.toml``; a clause belongs to the first area in ``area`` that includes it."""

    area: tuple[Area, ...]
    meaning: tuple[Meaning, ...]

    @property
    def columns(self) -> list[Area]:
        """Areas in the order of the board's columns."""
        return sorted(self.area, key=lambda area: area.place)

    def of(self, machine: str, clause: str) -> Area:
        """Return the area of a clause of a machine; a divergence without a clause has the clause ``""``."""
        return next(area for area in self.area if area.has(machine, clause))

    def meaning_of(self, area: Area, clauses: Iterable[str]) -> str:
        """Return the consequence of a divergence for a consumer: of the first clause that has one, or of the area."""
        for clause in clauses:
            for meaning in self.meaning:
                if any(fnmatchcase(clause, pattern) for pattern in meaning.clauses):
                    return meaning.says
        return area.means


@cache
def load_areas() -> Areas:
    """Return the packaged areas."""
    return convert(tomllib.loads((files(__package__) / "areas.toml").read_text("utf-8")), Areas)


_BY_PROTOCOL: Final = "its protocol alone does not show it"
_AREAS_OF: Final = {
    "timestamps": "lookup by time",
    "transactions": "transactions",
    "delete-records": "retention",
}
"""For each feature that a run can skip, the area that depends on it."""
_TOLERATED: Final = {
    "without": "skipped because it lacks them: {}",
    "refused_settings": "settings that it rejects, which are skipped: {}",
    "unstamped": "topics treated as CreateTime from their first batch on: {}",
    "left": "topics abandoned because their records differed: {}",
    "capabilities": "declared capabilities: {}",
    "excused": "tolerated because a capability is missing, with the number of steps: {}",
    "why": "not run: {}",
}
"""Texts about the details of a result that limit what it shows."""


class Source(NamedTuple):
    """Runs for the scoreboard; ``label`` is the name of their rows, or empty to use the implementation's name."""

    label: str
    streams: Sequence[Stream]


class _Key(NamedTuple):
    """Row of the scoreboard."""

    label: str
    release: str


@dataclass(frozen=True)
class _Piece:
    """Results and divergences (``faults``) of one run for one implementation compared with one release."""

    stream: Stream
    implementation: str
    results: tuple[Result, ...]
    faults: tuple[Diverged, ...]


def board_of(sources: Iterable[Source]) -> Board:
    """Return the scoreboard of some runs; runs with the same label and release share a row."""
    pieces: dict[_Key, list[_Piece]] = {}
    for source in sources:
        for stream in source.streams:
            for implementation in stream.header.implementations:
                for release in stream.header.releases:
                    label = source.label or _own_label(implementation)
                    pieces.setdefault(_Key(label, release), []).append(_piece(stream, implementation, release))
    areas = load_areas()
    return Board(
        [(area.name, area.means) for area in areas.columns], [_row(key, some) for key, some in pieces.items() if some]
    )


def _piece(stream: Stream, implementation: str, release: str) -> _Piece:
    results = tuple(r for r in stream.results if (r.implementation, r.release) == (implementation, release))
    faults = tuple(
        event
        for event in stream.divergences
        if event.implementation == implementation and release in (event.releases or (event.failure["release"],))
    )
    return _Piece(stream, implementation, results, faults)


def _subject(implementation: str) -> Subject | None:
    return load_subjects().get(implementation.removeprefix("subject:")) if form_of(implementation) else None


def _own_label(implementation: str) -> str:
    if implementation in ("jvm", "broker"):
        return "Apache Kafka" if implementation == "jvm" else "Apache Kafka (brokers)"
    subject = _subject(implementation)
    return implementation if subject is None else subject.title


def _row(key: _Key, pieces: Sequence[_Piece]) -> Row:
    known = [_subject(piece.implementation) for piece in pieces]
    subject = next((one for one in known if one is not None), None)
    versions = [_version(piece) for piece in pieces]
    return Row(
        key.label,
        key.release,
        next(filter(None, versions), ""),
        "" if subject is None else f"{subject.about} · {subject.language} · {subject.home}",
        _cells(key.release, pieces),
        [_provenance(piece) for piece in pieces],
        _baseline(key.release, pieces),
    )


def _baseline(release: str, pieces: Sequence[_Piece]) -> Score | None:
    results = [result for piece in pieces for result in piece.results if result.machine == MACHINE]
    return score([result.verdicts for result in results], release) if results else None


def _version(piece: _Piece) -> str:
    """Return the implementation's version in the run, which may differ from the catalogue's current version."""
    versions = piece.stream.header.versions
    return versions.get(piece.implementation, piece.results[0].release if _is_kafka(piece) else "")


def _is_kafka(piece: _Piece) -> bool:
    return piece.implementation in ("jvm", "broker") and bool(piece.results)


def _cells(release: str, pieces: Sequence[_Piece]) -> list[Cell]:
    areas, only_protocol = load_areas(), all(is_server(piece.implementation) for piece in pieces)
    cells = {area.name: Cell(area.name) for area in areas.columns}
    for result in (result for piece in pieces for result in piece.results):
        for clause, verdict in result.verdicts.items():
            cells[areas.of(result.machine, clause).name].add_clause(clause, result.clauses.get(clause, 0), verdict)
    for piece, event in _distinct(pieces):
        clause = event.clause or next(iter(event.failure["clauses"]), "")
        fault = _fault(piece, event, areas.of(event.machine, clause), clause, release)
        for name in _shows_in(piece, event, clause):
            cells[name].faults.append(fault)
    for feature, name in _AREAS_OF.items():
        if not cells[name].faults and _is_skipped(feature, name, pieces):
            cells[name].mark_skipped(feature)
    for cell in cells.values():
        if cell.state == "not-run" and only_protocol and not cell.clauses:
            cell.why, cell.absent = _BY_PROTOCOL, True
    return list(cells.values())


def _is_skipped(feature: str, area: str, pieces: Iterable[_Piece]) -> bool:
    """Return True if all runs with results in an area skipped its feature.

    If no run has results in the area, all runs with any result must have skipped it.
    """
    areas = load_areas()
    results = [result for piece in pieces for result in piece.results if any(result.clauses.values())]
    shown = [
        result
        for result in results
        if any(areas.of(result.machine, clause).name == area for clause, steps in result.clauses.items() if steps)
    ]
    return bool(results) and all(feature in result.details.get("without", ()) for result in shown or results)


def _distinct(pieces: Iterable[_Piece]) -> Iterable[tuple[_Piece, Diverged]]:
    """Yield each unique divergence once, even if several runs have found it."""
    seen: set[tuple[str, str, str]] = set()
    for piece in pieces:
        for event in piece.faults:
            what = event.clause, event.signature, event.failure["aspects"][0]
            if what not in seen:
                seen.add(what)
                yield piece, event


def _shows_in(piece: _Piece, event: Diverged, clause: str) -> Iterable[str]:
    """Return the areas of a divergence: of its clause, and of its other clauses that diverge, for all its machines."""
    machines = event.machines or (event.machine,)
    failing = {id_ for result in piece.results for id_, verdict in result.verdicts.items() if verdict == "diverges"}
    clauses = [clause, *(each for each in event.clauses if each in failing)]
    return dict.fromkeys(load_areas().of(machine, each).name for each in clauses for machine in machines)


def _fault(piece: _Piece, event: Diverged, area: Any, clause: str, release: str) -> BoardDivergence:
    named = next((each for each in load_expectations() if _covers(each, event, release)), None)
    return BoardDivergence(
        event,
        load_areas().meaning_of(area, (clause, *event.clauses)),
        format_divergence(event),
        trace_text(piece.stream.path.parent, event.trace),
        None if named is None else KnownReason(named.reason, named.link),
    )


def _covers(expectation: Expectation, event: Diverged, release: str) -> bool:
    """Return True if an expectation declares a divergence as known."""
    clauses = [clause for clause in event.clauses if clause in load_clauses()]
    return expectation.applies_to(event.machine, event.implementation, release) and expectation.matches(
        clauses, event.signature, event.signature_detail
    )


def _provenance(piece: _Piece) -> RunProvenance:
    header, details = piece.stream.header, [result.details for result in piece.results]
    excused = [
        text.format(_format(found[name])) for found in details for name, text in _TOLERATED.items() if found.get(name)
    ]
    return RunProvenance(
        piece.implementation,
        header.started,
        header.command,
        header.versions,
        header.level,
        tuple(result.machine for result in piece.results if result.steps),
        sum(result.examples for result in piece.results),
        sum(result.steps for result in piece.results),
        tuple(fact for found in details for fact in _facts(found)),
        tuple(dict.fromkeys(excused)),
        piece.stream.cut_off,
        compared_in(piece.results, len(piece.faults)),
    )


def _facts(details: Mapping[str, Any]) -> Iterable[str]:
    """Yield texts about the amount of work of a result."""
    answers, versions = details.get("answers"), details.get("versions")
    stops, kills = details.get("restarts"), details.get("kills")
    if isinstance(answers, int):
        yield f"{answers:,} results compared with the reference"
    if isinstance(versions, list) and versions:
        yield f"ListOffsets versions {versions[0]} to {versions[-1]}"
    if isinstance(stops, int) and isinstance(kills, int):
        yield f"stopped {stops} times, killed {kills} times"


def _format(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{name} {each}" for name, each in value.items())
    return ", ".join(map(str, value)) if isinstance(value, (list, tuple)) else str(value)


@dataclass(frozen=True, slots=True)
class RunBudget:
    """Amount of work for each implementation: options of ``conformance run``."""

    profile: Profile
    seed: SeedRequest = None
    max_examples: int | None = None
    max_time: float | None = None


def run_implementation(
    implementation: str,
    releases: tuple[str, ...],
    machines: tuple[str, ...],
    budget: RunBudget,
    directory: Path,
    *,
    wire: WireOptions | None = None,
    progress: Progress | None = None,
    announce: Callable[[str], None] = lambda _: None,
) -> Stream:
    """Run one implementation, and write events and traces to a separate directory.

    Args:
        implementation: argument of ``-i``.
        releases: releases of Kafka, oldest first.
        machines: state machines to run.
        budget: amount of work.
        directory: parent of each implementation's directory.
        wire: options for the connection to a broker, or None.
        progress: called while jars are fetched.
        announce: called with the actions that the run will take on brokers that the harness did not start.

    Raises:
        ToolError: the run is not possible.
    """
    own = directory / (re.sub(r"[^A-Za-z0-9.]+", "-", implementation).strip("-")[:80] or "it")
    with NdjsonWriter(own) as writer:
        nothing_expected = own / "nothing-expected"
        nothing_expected.mkdir(exist_ok=True)
        plan = Plan(
            releases,
            (implementation,),
            machines,
            budget.profile,
            own / "traces",
            budget.seed,
            budget.max_examples,
            budget.max_time,
            expectations=nothing_expected,
            wire=wire,
        )
        run(plan, writer, progress, announce)
    return read_stream(writer.path)
