"""``conformance mutate``: mutation testing of the Hypothesis state machines."""

from __future__ import annotations

import json
from enum import StrEnum
from statistics import median
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.progress import Progress
from rich.table import Table

from conformance import events
from conformance.commands.options import (
    HangShrinkTimeOption,
    JsonOption,
    MetricsReportOption,
    QuietOption,
    StepTimeoutOption,
    echo,
    hang_printer,
    plain_console,
    resolve_machines,
)
from conformance.errors import ToolError
from conformance.experiments.mutation.choices import judge_all
from conformance.experiments.mutation.measuring import (
    MAX_EXAMPLES,
    MutantScore,
    chosen_mutants,
    measure,
    metrics_writer,
)
from conformance.lockstep.watchdog import STEP_TIMEOUT_S
from conformance.runs.hangs import WorkerHangError, report_hang
from conformance.runs.profiles import PROFILES
from conformance.runs.shrinking import SHRINK_SECONDS
from conformance.scratch import state_directory
from conformance.verdict import Comparison

if TYPE_CHECKING:
    from collections.abc import Sequence

    from conformance.implementations.mutants import Mutant

ProfileName = StrEnum("ProfileName", [(name, name) for name in PROFILES])  # type: ignore[misc]
_CI = ProfileName("ci")
_SEEDS = (0, 1, 2, 3, 4)
"""Seeds without ``--seed``."""


def mutate_command(
    mutant: Annotated[
        list[str] | None, typer.Option("--mutant", metavar="GLOB", help="Mutants to run (repeatable).")
    ] = None,
    machine: Annotated[
        list[str] | None, typer.Option("--machine", metavar="NAME", help="Mutants of this machine only.")
    ] = None,
    seed: Annotated[list[int] | None, typer.Option(help="Random seed (repeatable); five seeds by default.")] = None,
    profile: Annotated[ProfileName, typer.Option(help="Profile that sets the steps of an example.")] = _CI,
    max_examples: Annotated[
        int, typer.Option(min=1, help="Count a mutant as survived after this many examples.")
    ] = MAX_EXAMPLES,
    jobs: Annotated[int | None, typer.Option(min=1, help="Worker processes; one per CPU by default.")] = None,
    choices: Annotated[
        bool,
        typer.Option(
            "--choices",
            help="Instead of defects, plant behaviour that a clause below MUST leaves open: it must conform at level"
            " must in all releases, and be found at the level of its clause.",
        ),
    ] = False,
    listed: Annotated[bool, typer.Option("--list", help="List the mutants without running them.")] = False,
    report: MetricsReportOption = None,
    step_timeout: StepTimeoutOption = STEP_TIMEOUT_S,
    shrink_time: HangShrinkTimeOption = SHRINK_SECONDS,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> int:
    """Insert defects into the Python reference, one at a time, and count the examples until a machine detects each.

    The defects are hand-written. A machine is a Hypothesis state machine. A mutant is compared with the unchanged
    reference, so neither Java nor Kafka's jars are needed. `conformance run -i mutant:NAME` tests one mutant as an
    implementation. With --choices, max-examples applies to level must; the profile sets it by default. Exit code 0: all
    are killed, or all choices have the expected results, 1: a mutant survives, a choice has another result, or a step
    hangs, 2: could not run.

    Example: `conformance mutate --mutant 'warm-*' --seed 7`
    """
    machines = resolve_machines(machine) if machine else ()
    mutants = chosen_mutants(mutant or ("*",), machines, choices=choices)
    if listed:
        _list(mutants, as_json=as_json)
        return 0
    seeds = tuple(dict.fromkeys(seed or _SEEDS))
    if choices and report is not None:
        raise ToolError("--report writes the metrics of defects, which --choices does not measure")
    options: dict[str, Any] = {"jobs": jobs, "step_timeout": step_timeout, "profile": profile.value}
    console = plain_console()
    shown = console.is_terminal and not (as_json or quiet)
    try:
        if choices:
            examples = None if max_examples == MAX_EXAMPLES else max_examples
            return _judge(mutants, seeds, as_json=as_json, examples=examples, **options)
        with (
            metrics_writer(report, [m.machine for m in mutants], profile=profile.value, seed=seeds[0]) as emit,
            Progress(console=console, transient=True, disable=not shown) as progress,
        ):
            task = progress.add_task(f"{len(mutants)} mutants", total=len(mutants) * len(seeds))
            measured = measure(
                mutants, seeds, limit=max_examples, on_result=lambda _: progress.advance(task), **options
            )
            for each in measured:
                emit(events.Measured("mutants", each.mutant.name, not each.survived, each.figures))
    except WorkerHangError as error:  # and the stream of events has no footer, as it was cut off
        traces = (report or state_directory()) / "traces"
        implementation = (f"mutant:{error.task}", error.hang.divergence.release)
        hang_printer(as_json=as_json)(report_hang(error.hang, traces, step_timeout, shrink_time, implementation))
        return 1
    survivors = [each for each in measured if each.survived]
    if as_json:
        document = {
            "verdict": "survivors" if survivors else "killed",
            "profile": profile.value,
            "max_examples": max_examples,
            "seeds": list(seeds),
            "mutants": [each.to_json() for each in measured],
        }
        typer.echo(json.dumps(document))
    else:
        if not quiet:
            console.print(_table(measured))
        for each in survivors:
            console.print(f"SURVIVED {each.mutant.name}: {each.mutant.title}", markup=False, highlight=False)
        console.print(_summary(measured, seeds, max_examples), highlight=False)
    return Comparison(sum(len(each.searches) for each in measured), len(survivors)).settle()


def _judge(mutants: Sequence[Mutant], seeds: Sequence[int], *, as_json: bool, **options: Any) -> int:
    """Run choices, and print those that do not have the expected results."""
    results = judge_all([each.name for each in mutants], seeds, **options)
    wrong = [each for each in results if not (each.conforms and each.found)]
    if as_json:
        typer.echo(json.dumps({"choices": [each.to_json() for each in results]}))
        return 1 if wrong else 0
    for each in wrong:
        clause = next(one.clause for one in mutants if one.name == each.choice)
        if not each.found:
            echo(f"NOT FOUND  {each.choice} ({clause}), seed {each.seed}: conforms at the level of its clause")
        if not each.conforms:
            echo(f"DIVERGES   {each.choice} ({clause}), seed {each.seed}: at level must, on {each.release}")
            echo(f"           {', '.join(each.clauses)}: expected {each.differs[0]}, actual {each.differs[1]}")
            for step in each.steps:
                echo(f"             {step}")
    echo(f"{len(results) - len(wrong)} of {len(results)} runs of {len(mutants)} choices as they have to be")
    return 1 if wrong else 0


def _list(mutants: Sequence[Mutant], *, as_json: bool) -> None:
    if as_json:
        rows = [{"name": m.name, "machine": m.machine, "clause": m.clause, "title": m.title} for m in mutants]
        typer.echo(json.dumps(rows))
        return
    for mutant in mutants:
        echo(f"{mutant.machine:<12} {mutant.clause:<7} {mutant.name}\n    {mutant.title}")


def _table(measured: Sequence[MutantScore]) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("machine", no_wrap=True)
    table.add_column("mutant", no_wrap=True)
    table.add_column("clause", no_wrap=True)
    for heading in ("median", "worst"):
        table.add_column(heading, justify="right", no_wrap=True)
    table.add_column("detected by", no_wrap=True)
    for each in measured:
        seen = ", ".join(dict.fromkeys(aspect for search in each.searches for aspect in search.aspects[:1]))
        counts = ("-", "[bold red]survived[/]") if each.survived else (f"{each.median:g}", str(each.worst))
        table.add_row(each.mutant.machine, each.mutant.name, each.mutant.clause, *counts, seen)
    return table


def _summary(measured: Sequence[MutantScore], seeds: Sequence[int], limit: int) -> str:
    killed = [each for each in measured if not each.survived]
    counts = [each.median or 0 for each in killed]
    worst = max((each.worst or 0 for each in killed), default=0)
    middle = f"{median(counts):g}" if counts else "-"
    summary = f"{len(killed)} of {len(measured)} mutants killed with every one of {len(seeds)} seeds"
    return f"{summary}, each within {limit} examples · examples to kill: median {middle}, worst {worst}"
