"""``conformance diff``: differences in behaviour between two releases or builds."""

from __future__ import annotations

import json
from contextlib import ExitStack
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from conformance.commands.options import (
    AllowIncompleteOption,
    DiffVerboseOption,
    HangShrinkTimeOption,
    JsonOption,
    QuietOption,
    StepTimeoutOption,
    echo,
    resolve_machines,
)
from conformance.experiments.release_diff import (
    Comparison,
    Plan,
    classify,
    compare,
    describe,
    describe_texts,
    events_of,
    load_expected,
    to_json,
    to_markdown,
)
from conformance.experiments.release_diff.expected import ClassifiedDifferences, signature_text
from conformance.experiments.release_diff.sides import common_machines, side_of
from conformance.kafka.progress import show_progress
from conformance.lockstep.watchdog import STEP_TIMEOUT_S, Hang, exit_process, watch_steps
from conformance.operations import Json
from conformance.report.console import sanitizing
from conformance.report.stream import NdjsonWriter
from conformance.report.terminal import TerminalWriter
from conformance.runs.hangs import HangReport, report_hang, step_limit
from conformance.runs.reproducers import write_text
from conformance.runs.shrinking import SHRINK_SECONDS
from conformance.scratch import state_directory


def diff_command(
    old: Annotated[str, typer.Argument(metavar="RELEASE|jvm:DIR", help="Baseline release or build.")],
    new: Annotated[str, typer.Argument(metavar="RELEASE|jvm:DIR", help="Release or build to compare with it.")],
    machine: Annotated[
        list[str] | None,
        typer.Option(
            "--machine",
            metavar="NAME",
            help="Machine to run (repeatable).",
            show_default="all that drive both; cache and tiered only from 3.6 or 3.7 on",
        ),
    ] = None,
    seed: Annotated[int, typer.Option(help="Random seed; a fixed seed reproduces the run.")] = Plan.seed,
    max_examples: Annotated[
        int | None,
        typer.Option(min=1, help="Examples for each machine. By default a search ends when it finds nothing new."),
    ] = None,
    max_time: Annotated[float | None, typer.Option(min=0.1, help="Seconds for the whole run.")] = None,
    expectations: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Expected differences. With this, exit code 1 means: a difference is new or stale."
        ),
    ] = None,
    markdown: Annotated[Path | None, typer.Option(metavar="FILE", help="Write a pull request comment here.")] = None,
    report: Annotated[Path | None, typer.Option(metavar="DIR", help="Write events and traces here.")] = None,
    step_timeout: StepTimeoutOption = STEP_TIMEOUT_S,
    shrink_time: HangShrinkTimeOption = SHRINK_SECONDS,
    allow_incomplete: AllowIncompleteOption = False,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
    verbose: DiffVerboseOption = False,
) -> int:
    """Show the differences between Kafka's own classes of two releases or builds, each with a trace of a few steps.

    Exit code 0: no difference, or only expected ones, 1: differences are printed, 2: could not run, 3: incomplete.

    Example: `conformance diff 4.4.0 jvm:kafka/build --expectations expected.toml`
    """
    entries = None if expectations is None else load_expected(expectations)
    sides = side_of(old), side_of(new)
    plan = Plan(
        sides[0].label,
        sides[1].label,
        resolve_machines(machine) if machine else common_machines(*sides),
        (report or state_directory()) / "traces",
        seed,
        max_examples,
        max_time,
    )
    console = sanitizing(Console())
    with ExitStack() as stack:
        writer = stack.enter_context(TerminalWriter(console, quiet=quiet or as_json))
        progress = stack.enter_context(show_progress("Kafka's jars"))

        def give_up(hang: Hang) -> None:
            stack.close()
            old_side, new_side = plan.sides
            side = new_side if " in place of " in hang.divergence.participant else old_side
            limit, implementation = step_limit(step_timeout, max_time), (side.specification, side.release)
            found = report_hang(hang, plan.traces, limit, shrink_time, implementation)
            commands = [each.replay(found.trace) for each in plan.sides]
            if as_json:
                document = found.to_json() | {"verdict": "differs", "replay": commands}
                del document["steps"]
                typer.echo(json.dumps(document))
            else:
                echo(_format_hang(found, commands))
            exit_process(1)

        stack.enter_context(watch_steps(step_limit(step_timeout, max_time), give_up))
        comparison = compare(plan, writer, progress)
    classified = None if entries is None else classify(comparison, entries)
    passed = not comparison.differs if classified is None else not (classified.new or classified.stale)
    if markdown is not None:
        write_text(markdown, to_markdown(comparison, classified))
    if report is not None:
        with NdjsonWriter(report) as events:
            for event in events_of(comparison, all_expected=passed):
                events(event)
    if as_json:
        document = to_json(comparison)
        typer.echo(
            json.dumps(document if classified is None else document | {"expected": _classified_json(classified)})
        )
    else:
        _print(console, comparison, classified, verbose=verbose)
    return comparison.compared(int(not passed)).settle(allow_incomplete=allow_incomplete)


def _classified_json(classified: ClassifiedDifferences) -> Json:
    return {
        "meant": [signature_text(one) for one in classified.expected],
        "new": [signature_text(one) for one in classified.new],
        "stale": [str(entry) for entry in classified.stale],
    }


def _format_hang(found: HangReport, commands: list[str]) -> str:
    failure = found.hang.divergence
    lines = [
        f"{failure.participant} did not return ({found.machine} machine), step {failure.step + 1}",
        f"  expected     {failure.expected}",
        *(f"  {line}" for line in str(failure.actual).splitlines()),
        f"  trace        {found.trace} ({found.hang.shrinking})",
        *(f"  replay       {command}" for command in commands),
        "differs: a step did not return; the comparison ended with this step",
    ]
    return "\n".join(lines)


def _print(
    console: Console, comparison: Comparison, classified: ClassifiedDifferences | None, *, verbose: bool
) -> None:
    expected = () if classified is None else classified.expected
    shown = [one for one in comparison.differences if verbose or not any(one is other for other in expected)]
    entries = [describe(difference) for difference in shown]
    if any(not any(one is other for other in expected) for one in comparison.texts):
        entries.append(describe_texts(comparison, verbose=verbose))
    for number, entry in enumerate(entries):
        console.print(f"\n{number + 1}. {entry}", markup=False, highlight=False, soft_wrap=True)
    for stale in () if classified is None else classified.stale:
        text = f"stale: no difference matches {stale}"
        console.print(text, markup=False, highlight=False, soft_wrap=True)
    if entries:
        console.print()
    console.print(verdict_line(comparison, classified), highlight=False, soft_wrap=True)


def verdict_line(comparison: Comparison, classified: ClassifiedDifferences | None) -> str:
    """Return the last line of the output."""
    plan, differences, texts = comparison.plan, len(comparison.differences), len(comparison.texts)
    parts = [f"{differences} difference{'s' * (differences != 1)}"] if differences else []
    parts += [f"messages of {texts} error{'s' * (texts != 1)} changed"] if texts else []
    if classified is not None:
        parts.append(f"{len(classified.expected)} expected, {len(classified.new)} new, {len(classified.stale)} stale")
    found = ", ".join(parts) or "no difference"
    if comparison.missing:
        found = f"INCOMPLETE: {found} in what was compared"
    tried = f"{comparison.examples} examples, {comparison.steps} steps in {comparison.seconds:.1f} s"
    not_compared = "".join(f" · {reason}" for reason in comparison.missing)
    return f"{plan.old} → {plan.new}: {found} · seed {plan.seed} · {tried}{not_compared}"
