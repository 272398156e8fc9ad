"""Study of small worlds: every sequence of a few operations, and every crash point of a segment, in lockstep.

All releases of an index are in one lockstep; a segment has one for each release.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any, Final, NamedTuple

import msgspec

from conformance.events import Measured
from conformance.lockstep import DivergenceError
from conformance.lockstep.divergence import failure_json
from conformance.machines import MACHINES
from conformance.operations import KINDS
from conformance.report.divergence import indent_continuation_lines, sides
from conformance.runs.completeness import compared_by
from conformance.runs.shrinking.divergence import shrink_divergence
from conformance.studies.small_world.crashes import CRASHING, crash_examples
from conformance.studies.small_world.sequences import sequences
from conformance.studies.study import Request, Sameness, Study
from conformance.verdict import VERDICT_LABELS, Comparison, combined

if TYPE_CHECKING:
    from pathlib import Path

    from conformance.events import Event
    from conformance.kafka.jar_fetch import Progress
    from conformance.operations import Json, Operation


class Options(msgspec.Struct, frozen=True):
    """Options of the study.

    Attributes:
        length: number of operations in a sequence, after the opening.
    """

    length: Annotated[int, msgspec.Meta(ge=1, le=5, description="Operations per sequence; 4 takes minutes.")] = 3


class World(NamedTuple):
    """All sequences of an index, or all crash points of an operation of a segment in one release.

    Attributes:
        machine: kind of the index, or ``segment``.
        operation: the interrupted operation; empty for an index.
    """

    machine: str
    releases: tuple[str, ...]
    operation: str
    request: Request


class Bench:
    """Locksteps, which are made when they are needed; operations of a segment share one."""

    def __init__(self, release: str, scratch: Path, progress: Progress | None) -> None:
        self.release, self._scratch, self._progress = release, scratch, progress
        self._locksteps: dict[tuple[str, tuple[str, ...]], Any] = {}

    def lockstep(self, world: World) -> Any:
        """Return the lockstep of a world.

        Raises:
            ToolError: an implementation is not available here.
        """
        key = world.machine, world.releases
        if key not in self._locksteps:
            machine, names = MACHINES[world.machine], world.request.implementations
            subjects = [machine.subject(name, release, self._progress) for name in names for release in world.releases]
            directory = self._scratch / "-".join([world.machine, world.releases[0]])
            directory.mkdir(parents=True)
            self._locksteps[key] = machine.new_lockstep(subjects, directory, releases=world.releases)
        return self._locksteps[key]


class SmallWorld(Study[Bench, World, "Json", Any]):
    """Every short sequence of operations on an index, and every crash of a segment."""

    name = "exhaustive"
    help = """Execute every short sequence of operations, and every crash of a segment, in lockstep with Kafka's own classes.

    Index: all sequences over an alphabet of a dozen operations. Segment: append, truncate, resize and roll are
    interrupted at every point, with none, the first or only the last bytes on disk; then the segment is opened, queried
    and recovered. Exit code 0: all agree, 1: one diverges, 2: could not run, or compared
    nothing, 3: an implementation lacks an operation that is needed.

    Example: `conformance exhaustive --kafka 3.9.2 --kafka 4.4.0 --machine offset`
    """  # noqa: E501 -- the first line of the help is one line
    machines, options, together, profile = (*KINDS, "segment"), Options, True, "exhaustive"
    takes = (
        *("kafka", "implementation", "machine", "report", "step_timeout", "shrink_time"),
        *("allow_incomplete", "as_json"),
    )

    def open(
        self, release: str, scratch: Path, progress: Progress | None = None, change: Callable[[Any], Any] | None = None
    ) -> Bench:
        return Bench(release, scratch, progress)

    def cases(self, bench: Bench, request: Request) -> Iterator[World]:
        yield from (World(name, request.releases, "", request) for name in request.machines if name in KINDS)
        if "segment" in request.machines:
            for release in request.releases:
                yield from (World("segment", (release,), operation, request) for operation in CRASHING)

    def look(self, bench: Bench, case: World) -> Iterator[Json]:
        lockstep = bench.lockstep(case)
        examples: Iterator[tuple[Operation, ...]]
        if case.operation:
            examples = crash_examples(lockstep, case.operation)
        else:
            examples = sequences(case.machine, case.request.options.length)
        count, before, failure = 0, None, None
        for operations in examples:
            before = lockstep.statistics.steps if before is None else before
            count += 1
            try:
                with lockstep.example():
                    for operation in operations:
                        lockstep.perform(operation)
                    if not case.operation:
                        lockstep.compare_directories()
            except DivergenceError as error:
                failure = error
                break
        steps = lockstep.statistics.steps - (before or 0)
        compared = compared_by(lockstep, case.machine, int(failure is not None))
        if failure is not None and not case.operation:
            failure = shrink_divergence(lockstep, failure)
        told: Json = {"machine": case.machine, "sequences": count}
        if case.operation:
            told = {"machine": case.machine, "release": case.releases[0], "operation": case.operation, "points": count}
        yield told | {
            "steps": steps,
            "agree": failure is None,
            "failure": None if failure is None else [operation.to_json() for operation in failure.operations],
            "shows": [] if failure is None else _shown(case.machine, failure),
            "compared": asdict(compared),
        }

    def sameness(self, seen: Json) -> Sameness | None:
        return None if seen["agree"] else {"machine": seen["machine"]}

    def row(self, release: str, seen: Json, clause: str | None) -> Json:
        return seen

    def wrong(self, row: Json) -> list[str | None]:
        return [] if row["agree"] else [None]

    def comparison(self, rows: Sequence[Json]) -> Comparison:
        return combined(Comparison(**row["compared"]) for row in rows)

    def events(self, release: str, rows: Sequence[Json], seconds: float) -> Iterator[Event]:
        for row in rows:
            name, cases, _ = _named(row)
            passed = Comparison(**row["compared"]).conclusion == "conforms"
            yield Measured("small world", name, passed, {"cases": cases, "steps": row["steps"]})

    def shown(self, release: str, rows: Sequence[Json]) -> Iterator[str]:
        """Yield a line for each world, and its divergence."""
        for row in rows:
            conclusion = Comparison(**row["compared"]).conclusion
            verdict = {"conforms": "agree", "diverges": "DIVERGE"}.get(conclusion, VERDICT_LABELS[conclusion])
            yield f"{_named(row)[2]}, {row['steps']} steps: {verdict}"
            yield from row["shows"]

    def conclusion(self, rows: Sequence[Json]) -> str:
        return ""


def _named(row: Json) -> tuple[str, int, str]:
    """Return the name of a world in a report, the number of its cases, and both as a text."""
    if "points" in row:
        where, operation, points = f"segment {row['release']}", row["operation"], row["points"]
        return f"crash points of {operation}, {where}", points, f"{where}: {points} crash points of {operation}"
    where, count = f"{row['machine']} index", row["sequences"]
    return f"sequences, {where}", count, f"{where}: {count} sequences"


def _shown(machine: str, failure: DivergenceError) -> list[str]:
    found = failure_json(failure.divergence)
    steps = [str(step) for step in failure.operations]
    lines = [
        f"{found['participant']} diverges",
        *sides(machine, steps[: found["step"] + 1], found["aspects"], found["expected"], found["actual"]),
        *(f"{number:>3}  {step}" for number, step in enumerate(steps, start=1)),
    ]
    return list(indent_continuation_lines((f"  {line}" for line in lines), indent=" " * 17))


EXHAUSTIVE: Final = SmallWorld()
