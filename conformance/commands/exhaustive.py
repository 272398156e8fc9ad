"""``conformance exhaustive``: all short sequences and all crash points, instead of a random sample."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated

import typer

from conformance.commands.options import (
    AllowIncompleteOption,
    HangShrinkTimeOption,
    IndexImplementationOption,
    JsonOption,
    MetricsReportOption,
    ReleaseOption,
    StepTimeoutOption,
    echo,
    hang_printer,
    resolve_releases,
    state_directory,
)
from conformance.errors import ToolError
from conformance.events import Measured
from conformance.experiments.mutation.measuring import figures_to
from conformance.experiments.small_world.crashes import CrashResult, explore_crashes
from conformance.experiments.small_world.sequences import SequenceResult, check_all_sequences
from conformance.lockstep.divergence import failure_json
from conformance.lockstep.watchdog import STEP_TIMEOUT_S
from conformance.operations import KINDS
from conformance.report.divergence import indent_continuation_lines, sides
from conformance.runs.hang_report import exit_on_hang
from conformance.runs.shrinking import SHRINK_SECONDS
from conformance.verdict import VERDICT_LABELS, combined

if TYPE_CHECKING:
    from conformance.lockstep import DivergenceError


def exhaustive_command(
    kafka: ReleaseOption = None,
    implementation: IndexImplementationOption = None,
    kind: Annotated[
        list[str] | None, typer.Option("--machine", metavar="NAME", help="offset, time, transaction or segment.")
    ] = None,
    length: Annotated[int, typer.Option(min=1, max=5, help="Operations per sequence; 4 takes minutes.")] = 3,
    report: MetricsReportOption = None,
    step_timeout: StepTimeoutOption = STEP_TIMEOUT_S,
    shrink_time: HangShrinkTimeOption = SHRINK_SECONDS,
    allow_incomplete: AllowIncompleteOption = False,
    as_json: JsonOption = False,
) -> int:
    """Execute every short sequence of operations, and every crash of a segment, in lockstep with Kafka's own classes.

    Index: all sequences over an alphabet of a dozen operations. Segment: append, truncate, resize and roll are
    interrupted at every point, with none, the first or only the last bytes on disk; then the segment is opened, queried
    and recovered. Exit code 0: all agree, 1: one diverges, 2: could not run, or compared
    nothing, 3: an implementation lacks an operation that is needed.

    Example: `conformance exhaustive --kafka 3.9.2 --kafka 4.4.0 --machine offset`
    """
    releases = resolve_releases(kafka)
    implementations = tuple(dict.fromkeys(implementation or ["jvm"]))
    for name in kind or ():
        if name not in (*KINDS, "segment"):
            raise ToolError(f"unknown machine {name!r}; choose from {', '.join((*KINDS, 'segment'))}")
    chosen = tuple(kind or (*KINDS, "segment"))
    traces = (report or state_directory()) / "traces"
    with (
        figures_to(report, chosen, profile="exhaustive") as emit,
        exit_on_hang(traces, hang_printer(as_json=as_json), step_timeout, shrink_time),
    ):
        rows: list[SequenceResult | CrashResult] = [
            check_all_sequences(name, length, releases, implementations) for name in chosen if name in KINDS
        ]
        if "segment" in chosen:
            for release in releases:
                rows += explore_crashes(release, implementations)
        for row in rows:
            emit(_measured(row))
    if as_json:
        typer.echo(json.dumps([_row(row) for row in rows]))
    else:
        for row in rows:
            echo(_line(row))
            if row.failure is not None:
                echo(_format_divergence(row, row.failure))
    return combined(row.compared for row in rows).settle(allow_incomplete=allow_incomplete)


def _line(row: SequenceResult | CrashResult) -> str:
    words = {"conforms": "agree", "diverges": "DIVERGE"}
    verdict = words.get(row.compared.conclusion, VERDICT_LABELS[row.compared.conclusion])
    if isinstance(row, CrashResult):
        return f"segment {row.release}: {row.points} crash points of {row.operation}, {row.steps} steps: {verdict}"
    return f"{row.kind} index: {row.sequences} sequences, {row.steps} steps: {verdict}"


def _measured(row: SequenceResult | CrashResult) -> Measured:
    passed = row.compared.conclusion == "conforms"
    if isinstance(row, CrashResult):
        name = f"crash points of {row.operation}, segment {row.release}"
        return Measured("small world", name, passed, {"cases": row.points, "steps": row.steps})
    return Measured("small world", f"sequences, {row.kind} index", passed, {"cases": row.sequences, "steps": row.steps})


def _format_divergence(row: SequenceResult | CrashResult, failure: DivergenceError) -> str:
    found = failure_json(failure.divergence)
    steps = [str(step) for step in failure.operations]
    machine = "segment" if isinstance(row, CrashResult) else row.kind
    lines = [
        f"{found['participant']} diverges",
        *sides(
            machine,
            steps[: found["step"] + 1],
            found["aspects"],
            found["expected"],
            found["actual"],
        ),
        *(f"{number:>3}  {step}" for number, step in enumerate(steps, start=1)),
    ]
    return "\n".join(indent_continuation_lines((f"  {line}" for line in lines), indent=" " * 17))


def _row(row: SequenceResult | CrashResult) -> dict[str, object]:
    failure = row.failure
    common: dict[str, object] = {
        "steps": row.steps,
        "agree": failure is None,
        "failure": None if failure is None else [operation.to_json() for operation in failure.operations],
    }
    if isinstance(row, CrashResult):
        return {"machine": "segment", "release": row.release, "operation": row.operation, "points": row.points} | common
    return {"machine": row.kind, "sequences": row.sequences} | common
