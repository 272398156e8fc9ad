"""``conformance replay``: replay of a recorded trace, step by step."""

from __future__ import annotations

import json
from dataclasses import replace
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from conformance.commands.options import (
    EDITION_HELP,
    ImplementationOption,
    JsonOption,
    Level,
    QuietOption,
    ShrinkTimeOption,
    StepTimeoutOption,
    TraceReleaseOption,
    echo,
    resolve_releases,
)
from conformance.commands.wire_options import CommandConfigOption, SkipFeatureOption, StartCommandOption, wire_options
from conformance.errors import ToolError
from conformance.kafka.progress import show_progress
from conformance.lockstep.divergence import failure_json, plain
from conformance.lockstep.watchdog import STEP_TIMEOUT_S, Hang, exit_process, watch_steps
from conformance.report.divergence import format_divergence, indent_continuation_lines, sides
from conformance.report.fields import fields_of_value, in_one_line
from conformance.runs.plan import Plan
from conformance.runs.profiles import PROFILES
from conformance.runs.replay import Replayed, edition_of, find_trace, level_of, replay
from conformance.runs.runner import divergences_of
from conformance.runs.shrinking import SHRINK_SECONDS
from conformance.scratch import state_directory
from kidx.printable import printable

if TYPE_CHECKING:
    from conformance.events import Diverged
    from conformance.lockstep import Divergence
    from conformance.operations import Observation, Operation
    from conformance.operations.trace import Trace


def replay_command(
    trace: Annotated[str, typer.Argument(metavar="TRACE|ID", help="A trace file, FILE.ndjson#ID, or a trace's id.")],
    kafka: TraceReleaseOption = None,
    implementation: ImplementationOption = None,
    directories: Annotated[
        list[str] | None, typer.Argument(metavar="[DIR ...]", help="With --each: builds, replayed one after the other.")
    ] = None,
    each: Annotated[
        bool,
        typer.Option("--each", help="Replay with every following build DIR; print one line for each."),
    ] = False,
    script: Annotated[
        list[Path] | None,
        typer.Option("--export", metavar="FILE", help="Also write a stand-alone reproducer: .py or .java."),
    ] = None,
    command_config: CommandConfigOption = None,
    start_command: StartCommandOption = "",
    without: SkipFeatureOption = None,
    level: Annotated[
        Level | None,
        typer.Option(
            help="must ignores differences that no MUST clause covers.", show_default="as in the recorded run"
        ),
    ] = None,
    edition: Annotated[
        str | None,
        typer.Option(metavar="NAME|FILE", help=f"{EDITION_HELP}.", show_default="as in the recorded run"),
    ] = None,
    shrink: Annotated[
        bool,
        typer.Option(
            "--shrink",
            help="If it is FAILED, also shrink the trace, such as one of `run --no-shrink`, and save the result.",
        ),
    ] = False,
    shrink_time: ShrinkTimeOption = SHRINK_SECONDS,
    step_timeout: StepTimeoutOption = STEP_TIMEOUT_S,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> int:
    """Replay a recorded trace: FIXED (no implementation diverges), FAILED, or an error.

    Without `--kafka` the trace runs with the release that it was recorded for. Exit code 0: FIXED, 1: FAILED, 2: ERROR.

    With `--each` the command prints one line for every build; exit code 1 if one is FAILED, else 2 if one is ERROR.

    Example: `conformance replay log-cc64cea2742d`
    """
    places = [state_directory() / "traces", Path(str(files("conformance") / "traces"))]
    recorded = find_trace(trace, places)
    wire = wire_options(implementation or (), command_config, without or (), start_command)
    counted: Any = None if level is None else level.value
    if each or directories:
        return _replay_each(
            recorded,
            directories or [],
            kafka,
            each=each,
            as_json=as_json,
            step_timeout=step_timeout,
            level=counted,
            edition=edition,
        )
    implementations = implementation or ["jvm"]
    releases = resolve_releases(kafka or [recorded.release], implementations)
    programs = _programs(script or [], recorded, releases[-1], implementations[0], counted, edition)
    steps: list[dict[str, Any]] = []

    def show(number: int, step: Operation, seen: Observation | None, difference: Divergence | None) -> None:
        if as_json:
            steps.append(_step(step, seen, difference))
        elif not quiet:
            echo(_line(recorded.machine, number, step, seen, difference))

    def conclude(result: Replayed, shrunk: list[Diverged]) -> None:
        if as_json:
            document = {"verdict": result.verdict, "id": recorded.id, "machine": recorded.machine, "releases": releases}
            smaller = {"shrunk": [event.to_json() for event in shrunk]} if shrink else {}
            typer.echo(json.dumps(document | {"steps": steps} | smaller))
        else:
            title = f" · {printable(recorded.title)}" if recorded.title else ""
            echo(f"{result.verdict} · {result.steps} of {len(recorded.operations)} steps{title}")
            for event in shrunk:
                echo(f"shrunk to {len(event.steps)} steps ({event.shrinking})\n\n{format_divergence(event)}")

    def give_up(hang: Hang) -> None:
        show(hang.divergence.step, hang.divergence.operation, None, hang.divergence)
        conclude(Replayed("FAILED", hang.divergence, hang.divergence.step + 1), [])
        exit_process(1)

    with show_progress("Kafka's jars") as progress, watch_steps(step_timeout, give_up):
        result = replay(recorded, releases, implementations, show, progress, wire, counted, edition)
    _write(programs)  # after the replay, so that an error leaves no file
    plan = Plan(
        releases,
        tuple(implementations),
        (recorded.machine,),
        PROFILES["dev"],
        Path(trace).parent if Path(trace).is_file() else state_directory() / "traces",
        recorded.provenance.get("seed"),
        level=level_of(recorded, counted),
        shrink_time=shrink_time,
        step_timeout=step_timeout,
        wire=wire,
        trace=recorded,
        edition=edition_of(recorded, edition),
    )
    conclude(result, divergences_of(plan) if shrink and result.divergence is not None else [])
    return 0 if result.verdict == "FIXED" else 1


def _write(programs: list[tuple[Path, str]]) -> None:
    if programs:
        from conformance.runs.reproducers import write_text  # noqa: PLC0415 -- only where one is wanted

        for path, text in programs:
            write_text(path, text)


def _programs(
    paths: list[Path], recorded: Trace, release: str, implementation: str, level: str | None, edition: str | None
) -> list[tuple[Path, str]]:
    """Return the trace as programs, each with its path; by default they check at the trace's own level and edition."""
    if not paths:
        return []
    from conformance.runs.reproducers import render_reproducer  # noqa: PLC0415 -- only where one is wanted

    given = {name: value for name, value in (("level", level), ("edition", edition)) if value is not None}
    recorded = replace(recorded, provenance={**recorded.provenance, **given})
    return [(path, render_reproducer(path, recorded, release, implementation)) for path in paths]


def _replay_each(
    recorded: Trace,
    directories: list[str],
    kafka: list[str] | None,
    *,
    each: bool,
    as_json: bool,
    step_timeout: float,
    level: Any,
    edition: str | None,
) -> int:
    """Replay one trace with several builds, in one process.

    Raises:
        ToolError: No build is given, or ``--each`` is missing.
    """
    if not each or not directories:
        raise ToolError("builds require --each: conformance replay TRACE --each DIR ...")
    verdicts: list[str] = []

    def show(directory: str, verdict: str, explanation: str) -> None:
        verdicts.append(verdict)
        document = {"build": directory, "verdict": verdict, "said": explanation}
        typer.echo(json.dumps(document)) if as_json else echo(
            f"{verdict:6}  {directory}{explanation and '  ' + explanation}"
        )

    def give_up(hang: Hang) -> None:
        show(directory, "FAILED", f"step {hang.divergence.step + 1} did not return; the builds after it were not tried")
        exit_process(1)

    with watch_steps(step_timeout, give_up):
        for directory in directories:
            try:
                releases = resolve_releases(kafka or [recorded.release], [f"jvm:{directory}"])
                result = replay(recorded, releases, [f"jvm:{directory}"], level=level, edition=edition)
            except ToolError as error:
                show(directory, "ERROR", str(error))
            else:
                difference = result.divergence
                explanation = "" if difference is None else f"step {result.steps}: {', '.join(difference.aspects)}"
                show(directory, result.verdict, explanation)
    return 1 if "FAILED" in verdicts else 2 if "ERROR" in verdicts else 0


def _step(step: Operation, seen: Observation | None, difference: Divergence | None) -> dict[str, Any]:
    document: dict[str, Any] = {"request": step.to_json()}
    if seen is not None:
        document["reply"] = seen.outcome.to_json()
        document["state"] = None if seen.state is None else seen.state.to_json()
    if difference is not None:
        document["divergence"] = failure_json(difference)
    return document


def _line(machine: str, number: int, step: Operation, seen: Observation | None, difference: Divergence | None) -> str:
    if difference is None:
        return printable(f"  {number + 1:3}  {step}  →  {_answer(machine, step, seen)}")
    failure = failure_json(difference)
    # The steps before this one have been printed already.
    differing = sides(machine, [str(step)], failure["aspects"], failure["expected"], failure["actual"])
    lines = [f"> {number + 1:3}  {step}", *(f"       {line}" for line in differing)]
    against = " (expected: the model's result)" if difference.against == "model" else ""
    lines.append(f"       of           {difference.participant}{against}")
    return "\n".join(indent_continuation_lines(lines, indent=" " * 20))


def _answer(machine: str, step: Operation, seen: Observation | None) -> str:
    """Return the reference's result, with which every implementation agrees; error texts are its own."""
    if seen is None:
        return ""
    outcome = seen.outcome
    if outcome.error is not None:
        return f"{outcome.error} (kidx: {outcome.text})" if outcome.text else outcome.error
    return in_one_line(fields_of_value(machine, str(step), plain(outcome.value))) or str(outcome)
