"""``conformance fuzz``: comparison of kidx and implementations on corrupt files."""

from __future__ import annotations

import json
from contextlib import ExitStack
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer
from rich.table import Table

from conformance.commands.options import (
    AllowIncompleteOption,
    HangShrinkTimeOption,
    IndexImplementationOption,
    JsonOption,
    QuietOption,
    ReleaseOption,
    StepTimeoutOption,
    hang_printer,
    plain_console,
    resolve_releases,
    state_directory,
)
from conformance.errors import ToolError
from conformance.experiments.output_files import write_texts
from conformance.implementations.forms import is_server
from conformance.implementations.jvm.virtual_machine import enable_c2_compiler
from conformance.implementations.spec import parse_spec
from conformance.kafka.progress import show_progress
from conformance.lockstep.watchdog import STEP_TIMEOUT_S
from conformance.runs.hangs import exit_on_hang
from conformance.runs.shrinking import SHRINK_SECONDS
from conformance.verdict import VERDICT_LABELS, combined

if TYPE_CHECKING:
    from rich.console import Console

    from conformance.experiments.fuzz.runner import FuzzPlan, FuzzResult

_LONG_RUN_S: Final = 60.0
"""Shortest run in seconds that uses Java's second compiler, whose compilation takes time."""
FormatName = StrEnum("FormatName", [(name, name) for name in ("offset", "time", "txn", "log")])  # type: ignore[misc]


def fuzz_command(
    kafka: ReleaseOption = None,
    implementation: IndexImplementationOption = None,
    formats: Annotated[list[FormatName] | None, typer.Option("--format", help="Format; all four by default.")] = None,
    max_time: Annotated[float, typer.Option(min=1, metavar="S", help="Seconds for the whole run.")] = 60.0,
    max_examples: Annotated[
        int | None, typer.Option(min=0, help="Inputs for each format, in addition to every flipped bit.")
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Random seed; mutations also depend on the corpus.")] = 0,
    corpus: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Corpus directory, reused by the next run.")
    ] = None,
    report: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Write the traces of findings and the coverage of Kafka's classes here."),
    ] = None,
    guided: Annotated[
        bool, typer.Option("--coverage-guided", help="Use coverage-guided fuzzing (needs atheris).")
    ] = False,
    step_timeout: StepTimeoutOption = STEP_TIMEOUT_S,
    shrink_time: HangShrinkTimeOption = SHRINK_SECONDS,
    allow_incomplete: AllowIncompleteOption = False,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> int:
    """Mutate valid index and log files, and compare the outcomes of opening and querying them.

    The command first flips every bit of a small file of each format, and counts the outcomes. Then it mutates files at
    random: some mutations use the format, others do not. Inputs that produce a new outcome, or reach new code in Kafka,
    are added to the corpus and mutated further, in this run and in the next. Exit code 0: no divergence, crash or hang,
    1: a finding, with its trace, 2: could not run, or compared nothing, 3: the time ended before the flipped bits,
    the corpus or the requested inputs.

    Example: conformance fuzz --kafka 3.9.2 --format time --max-time 120
    """
    from conformance.experiments.fuzz.coverage_guided import fuzz_guided, has_atheris  # noqa: PLC0415
    from conformance.experiments.fuzz.runner import FuzzPlan, fuzz  # noqa: PLC0415

    implementations = tuple(dict.fromkeys(implementation or ["jvm"]))
    for text in implementations:
        parse_spec(text)
        if is_server(text):
            raise ToolError("a broker cannot open a given file: use jvm, exec:COMMAND or python:MODULE:FACTORY")
    if guided and not has_atheris():
        raise ToolError("--coverage-guided requires atheris; install with pip install atheris")
    # Only Kafka's classes open logs, so other implementations have index formats only, unless the user names formats.
    only_indexes = not formats and any(parse_spec(text).form != "jvm" for text in implementations)
    chosen = tuple(str(name) for name in formats or FormatName if not (only_indexes and name == "log"))
    home = state_directory()
    plan = FuzzPlan(
        chosen,
        resolve_releases(kafka),
        implementations,
        corpus or home / "fuzz",
        (report or home) / "traces",
        seed,
        max_time,
        max_examples,
    )
    if max_examples is None and max_time >= _LONG_RUN_S:
        enable_c2_compiler()
    console = plain_console()
    with ExitStack() as stack:
        progress = stack.enter_context(show_progress("Kafka's jars"))
        stack.enter_context(exit_on_hang(plan.findings, hang_printer(as_json=as_json), step_timeout, shrink_time))
        show = (lambda _: None) if as_json else (lambda line: console.print(line, highlight=False, markup=False))
        results = fuzz_guided(plan) if guided else fuzz(plan, show, progress)
    if report is not None:
        _write(report, plan, results)
    if as_json:
        typer.echo(json.dumps([result.to_json() for result in results]))
    elif not quiet:
        _show(console, results)
    comparison = combined(result.comparison for result in results)
    if not as_json:
        words = {"conforms": "no finding", "diverges": f"findings: {comparison.differences}"}
        text = words.get(comparison.conclusion, f"no finding, but {VERDICT_LABELS[comparison.conclusion]}")
        console.print(text, highlight=False)
    return comparison.settle(allow_incomplete=allow_incomplete)


def _write(directory: Path, plan: FuzzPlan, results: list[FuzzResult]) -> None:
    from conformance.experiments.fuzz.runner import markdown  # noqa: PLC0415

    figures = json.dumps([result.to_json() for result in results], indent=1)
    write_texts({directory / "fuzz.md": markdown(plan, results), directory / "fuzz.json": f"{figures}\n"})


def _show(console: Console, results: list[FuzzResult]) -> None:
    table = Table(box=None, pad_edge=False)
    for name, justify in (
        ("format", "left"),
        ("cases", "right"),
        ("compared", "right"),
        ("cases/s", "right"),
        ("corpus", "right"),
        ("new", "right"),
        ("memory", "right"),
        ("findings", "right"),
    ):
        table.add_column(name, justify=justify)  # type: ignore[arg-type]
    for result in results:
        table.add_row(
            result.format,
            f"{result.cases:,}",
            f"{result.compared:,}",
            f"{result.cases / max(result.seconds, 0.001):,.0f}",
            str(result.kept),
            str(result.new),
            f"{result.peak_bytes >> 20} MiB",
            str(len(result.findings)),
        )
    console.print(table)
    for result in results:
        for name, classes in result.coverage.items():
            sums = [sum(counts) for counts in zip(*(each[1:] for each in classes), strict=True)]
            reached = f"{sums[0]} of {sums[1]} lines, {sums[2]} of {sums[3]} branches" if sums else "nothing"
            console.print(f"{result.format}, coverage of {name}: {reached}", highlight=False, markup=False)
        size = sum(result.flips.values()) // 8
        console.print(f"{result.format}, every bit of {size} bytes flipped:", highlight=False)
        for what, count in result.flips.most_common():
            console.print(f"  {count:>6,}  {what}", highlight=False)
