"""``conformance diff``: what changed between two releases, as executed behaviour."""

from __future__ import annotations

import json
from contextlib import ExitStack
from typing import Annotated

import typer
from rich.console import Console

from conformance.commands.options import (
    JsonOption,
    QuietOption,
    VerboseOption,
    chosen_machines,
    state_directory,
)
from conformance.experiments.release_diff import Comparison, Plan, compare, describe, describe_texts, to_json
from conformance.kafka.progress import show_progress
from conformance.kafka.releases import load_release
from conformance.report.console import shielded
from conformance.report.terminal import TerminalWriter


def diff_command(
    old: Annotated[str, typer.Argument(metavar="RELEASE", help="The release whose behaviour is the measure.")],
    new: Annotated[str, typer.Argument(metavar="RELEASE", help="The release that is held to it.")],
    machine: Annotated[
        list[str] | None, typer.Option("--machine", metavar="NAME", help="Machine to run; several times for several.")
    ] = None,
    seed: Annotated[int, typer.Option(help="Start here; the same seed finds the same.")] = Plan.seed,
    max_examples: Annotated[int, typer.Option(min=1, help="Examples for each machine.")] = Plan.max_examples,
    max_time: Annotated[float | None, typer.Option(min=0.1, help="Seconds for everything.")] = None,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
    verbose: VerboseOption = False,
) -> int:
    """Show what Kafka's own classes of two releases do differently, each with a trace of a few steps.

    Exit code 0: nothing differs, 1: differences are printed, 2: could not do the work.

    Example: `conformance diff 3.9.1 3.9.2 --machine offset`
    """
    plan = Plan(
        load_release(old).name,
        load_release(new).name,
        chosen_machines(machine),
        state_directory() / "traces",
        seed,
        max_examples,
        max_time,
    )
    console = shielded(Console())
    with ExitStack() as stack:
        writer = stack.enter_context(TerminalWriter(console, quiet=quiet or as_json))
        progress = stack.enter_context(show_progress("Kafka's jars"))
        comparison = compare(plan, writer, progress)
    if as_json:
        typer.echo(json.dumps(to_json(comparison)))
    else:
        _print(console, comparison, verbose=verbose)
    return 1 if comparison.differs else 0


def _print(console: Console, comparison: Comparison, *, verbose: bool) -> None:
    entries = [describe(difference) for difference in comparison.differences]
    if comparison.texts:
        entries.append(describe_texts(comparison, verbose=verbose))
    for number, entry in enumerate(entries):
        console.print(f"\n{number + 1}. {entry}", markup=False, highlight=False, soft_wrap=True)
    if entries:
        console.print()
    console.print(_verdict(comparison), highlight=False, soft_wrap=True)


def _verdict(comparison: Comparison) -> str:
    plan, differences, texts = comparison.plan, len(comparison.differences), len(comparison.texts)
    said = [f"{differences} difference{'s' * (differences != 1)}"] if differences else []
    said += [f"texts of {texts} refusal{'s' * (texts != 1)} changed"] if texts else []
    tried = f"{comparison.examples} examples, {comparison.steps} steps in {comparison.seconds:.1f} s"
    return f"{plan.old} → {plan.new}: {', '.join(said) or 'nothing differs'} · seed {plan.seed} · {tried}"
