"""``conformance scoreboard``: comparison of implementations, area by area."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from conformance.commands.options import (
    AllowIncompleteOption,
    JsonOption,
    QuietOption,
    ReleaseOption,
    SeedOption,
    echo,
    plain_console,
    resolve_machines,
    resolve_releases,
)
from conformance.commands.run import ProfileName
from conformance.commands.wire_options import CommandConfigOption, SkipFeatureOption, StartCommandOption, wire_options
from conformance.errors import ToolError
from conformance.experiments.output_files import write_texts
from conformance.implementations.forms import form_of
from conformance.kafka.progress import show_progress
from conformance.report.stream import read_streams
from conformance.runs.profiles import PROFILES
from conformance.scratch import state_directory
from conformance.subjects import load_subject
from kidx.printable import printable

if TYPE_CHECKING:
    from collections.abc import Sequence

    from conformance.experiments.scoreboard.making import RunBudget, Source
    from conformance.report.scoreboard.board import Board
    from conformance.runs.wire_options import WireOptions

_DEV = ProfileName("dev")


def scoreboard_command(
    names: Annotated[
        list[str],
        typer.Argument(
            metavar="NAME...",
            help="A report directory (`run --report DIR`), or an IMPL to run now; LABEL=NAME names its rows.",
        ),
    ],
    html: Annotated[Path | None, typer.Option(metavar="FILE", help="Write one HTML page.")] = None,
    markdown: Annotated[Path | None, typer.Option(metavar="FILE", help="Write a Markdown page.")] = None,
    kafka: ReleaseOption = None,
    machine: Annotated[
        list[str] | None, typer.Option("--machine", metavar="NAME", help="Machines of the runs that are made now.")
    ] = None,
    profile: Annotated[ProfileName, typer.Option(help="Size of the runs that are made now.")] = _DEV,
    seed: SeedOption = None,
    max_examples: Annotated[int | None, typer.Option(min=1, help="Examples for each machine.")] = None,
    max_time: Annotated[float | None, typer.Option(min=0.1, help="Seconds for each implementation.")] = None,
    command_config: CommandConfigOption = None,
    start_command: StartCommandOption = "",
    without: SkipFeatureOption = None,
    report: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Write events and traces of the runs made now here.")
    ] = None,
    allow_incomplete: AllowIncompleteOption = False,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> int:
    """Compare implementations, or Kafka's releases, side by side: verdict and divergences in every area.

    Results of earlier runs are read from their directories. New runs have no expectations, so known divergences are
    shown like the others. Exit code 0: all conform, 1: one diverges, 2: a run failed, was cut off
    or compared nothing, 3: a run is incomplete.

    Example: `conformance scoreboard jvm subject:fluss "my broker=out/wire" --kafka 4.3.1 --html board.html`
    """
    from conformance.experiments.scoreboard.making import (  # noqa: PLC0415 -- only where it is wanted
        RunBudget,
        Source,
        board_of,
    )

    labelled = [_split_label(name) for name in names]
    running = [name for _, name in labelled if form_of(name) is not None]
    wire = wire_options(running, command_config, tuple(without or ()), start_command)
    budget = RunBudget(PROFILES[profile.value], seed, max_examples, max_time)
    place = (report if report is not None else state_directory()) / "scoreboard"
    sources: list[Source] = []
    for label, name in labelled:
        if form_of(name) is None:
            sources.append(Source(label, read_streams([Path(name)])))
        else:
            sources.append(_run_now(label, name, kafka, machine, budget, place, wire, quiet=quiet or as_json))
    board = board_of(sources)
    texts = _texts(board, html=html, markdown=markdown)
    write_texts(texts)
    if as_json:
        typer.echo(json.dumps(_document(board)))
    elif not texts:
        from conformance.report.scoreboard.pages import markdown as summary  # noqa: PLC0415

        plain_console().print(summary(board), markup=False, highlight=False, soft_wrap=True, end="")
    elif not quiet:
        differences = sum(len(row.faults) for row in board.rows)
        echo(f"{len(board.rows)} rows · {differences} divergences · {', '.join(map(str, texts))}")
    if board.verdict == "incomplete" and board.cut_off:
        raise ToolError("; ".join(board.cut_off))
    return board.comparison.settle(allow_incomplete=allow_incomplete)


def _split_label(name: str) -> tuple[str, str]:
    """Split an argument into label and NAME; a value of ``-i`` or an existing path has no label.

    Raises:
        ToolError: One part is empty.
    """
    if form_of(name) is not None or Path(name).exists() or "=" not in name:
        return "", name
    label, _, rest = name.partition("=")
    if not label.strip() or not rest:
        raise ToolError(f"{name!r} is not LABEL=REPORT or LABEL=IMPL, such as mine=out/report or mine=exec:./my-index")
    return label.strip(), rest


def _run_now(
    label: str,
    name: str,
    kafka: list[str] | None,
    machine: list[str] | None,
    budget: RunBudget,
    place: Path,
    wire: WireOptions | None,
    *,
    quiet: bool,
) -> Source:
    """Run an implementation, and return the results; an argument of None selects the default."""
    from conformance.experiments.scoreboard.making import Source, run_implementation  # noqa: PLC0415

    if kafka is None and name.startswith("subject:"):
        kafka = list(load_subject(name.partition(":")[2]).releases)
    releases = resolve_releases(kafka, (name,))
    machines = resolve_machines(None, (name,))
    chosen: Sequence[str] = [each for each in machines if not machine or each in machine]
    if not chosen:
        raise ToolError(
            f"{name} cannot be tested by the machine {', '.join(machine or ())}; choose from {', '.join(machines)}"
        )

    def announce(text: str) -> None:
        if not quiet:
            typer.echo(printable(text), err=True)

    with show_progress("Kafka's jars") as progress:
        stream = run_implementation(
            name, releases, tuple(chosen), budget, place, wire=wire, progress=progress, announce=announce
        )
    return Source(label, [stream])


def _texts(board: Board, *, html: Path | None, markdown: Path | None) -> dict[Path, str]:
    """Return the files to write and their texts: all texts are rendered before a file is written."""
    from conformance.report.scoreboard import pages  # noqa: PLC0415 -- imports jinja2, which takes time

    if html is not None and html == markdown:
        raise ToolError(f"{html} is given for --html and --markdown; choose two files")
    texts = {html: pages.html(board)} if html is not None else {}
    return texts | ({markdown: pages.markdown(board)} if markdown is not None else {})


def _document(board: Board) -> dict[str, Any]:
    return {
        "verdict": board.verdict,
        "cut_off": board.cut_off,
        "areas": [name for name, _ in board.areas],
        "rows": [
            {
                "label": row.label,
                "release": row.release,
                "version": row.version,
                "wire_baseline": row.baseline and row.baseline._asdict(),
                "cells": {
                    cell.area: {
                        "verdict": cell.state,
                        "differences": [
                            {
                                "clause": fault.event.clause,
                                "shape": fault.event.signature,
                                "means": fault.means,
                                "trace": fault.event.trace,
                                "replay": fault.event.replay,
                                "known": None if fault.known is None else fault.known.link,
                            }
                            for fault in cell.faults
                        ],
                    }
                    for cell in row.cells
                },
                "runs": [
                    {
                        "implementation": made.implementation,
                        "started": made.started,
                        "command": made.command,
                        "versions": dict(made.versions),
                        "excused": list(made.excused),
                    }
                    for made in row.made
                ],
            }
            for row in board.rows
        ],
    }
