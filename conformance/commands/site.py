"""``conformance site``: pages of the specification and of the results."""

from __future__ import annotations

from collections import Counter
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from conformance.clauses.machines import FILE_MACHINES
from conformance.commands.options import QuietOption, echo
from conformance.errors import ToolError
from conformance.experiments.output_files import write_texts
from conformance.operations.trace_file import load_traces
from conformance.report.stream import read_streams
from conformance.runs.replay import load_regression_traces

if TYPE_CHECKING:
    from conformance.report.stream import Stream

_HISTORY: Final = "history.ndjson"
"""File of the results so far. An edition in it has the results that were published together."""


class SitePart(Enum):
    """Part of the site."""

    SPECIFICATION = "specification"
    RESULTS = "results"


def site_command(
    directory: Annotated[Path, typer.Argument(metavar="DIR", help="Directory that the pages are written to.")],
    runs: Annotated[
        list[Path] | None, typer.Argument(metavar="[RUN ...]", help="Directories of `run --report DIR`.")
    ] = None,
    machine: Annotated[
        list[str] | None,
        typer.Option("--machine", metavar="NAME", help="Execute the traces of these machines.", show_default="all"),
    ] = None,
    traces: Annotated[
        list[Path] | None,
        typer.Option("--traces", metavar="FILE", help="Also choose from the traces in this .ndjson file."),
    ] = None,
    history: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="File of the earlier results. The new results are added to it.",
            show_default="DIR/results/history.ndjson",
        ),
    ] = None,
    only: Annotated[SitePart | None, typer.Option(help="Write this part only.", show_default="all")] = None,
    quiet: QuietOption = False,
) -> None:
    """Write the specification and the results of runs in Markdown, with a scoreboard and badges.

    The specification is a page per chapter, the byte layouts, and the changes between releases. Each clause has its
    releases, its source, the smallest trace that exercises it with the results of the releases, and the planted defects
    that violate it. If a RUN is given, each clause also shows how often it was exercised. The command takes about a
    minute.

    The results list what changed since the earlier results. `results/drop.html` displays an `events.ndjson` file that
    is dropped on it.

    Example: `conformance site out/specification out/ci`
    """
    if unknown := set(machine or ()).difference(FILE_MACHINES):
        raise ToolError(f"unknown machine {min(unknown)!r}; choose from {', '.join(FILE_MACHINES)}")
    streams = read_streams(runs) if runs else []
    texts: dict[Path, str] = {}
    if only is not SitePart("results"):
        texts |= {directory / name: page for name, page in _specification(machine, traces, streams).items()}
    if only is not SitePart("specification"):
        texts |= _results(directory, history or directory / "results" / _HISTORY, streams)
    write_texts(texts)
    if not quiet:
        pages = sum(path.suffix in (".md", ".html") for path in texts)
        echo(f"{pages} pages in {directory}")


def _specification(machine: list[str] | None, traces: list[Path] | None, streams: list[Stream]) -> dict[str, str]:
    """Return the pages of the specification by file name."""
    from conformance.experiments.specification import (  # noqa: PLC0415
        changes_page,
        chapter_pages,
        formats_page,
        smallest_traces,
    )

    named = {f"{trace.machine}-{trace.id}": trace for each in FILE_MACHINES for trace in load_regression_traces(each)}
    for file in traces or ():
        named |= {f"{file}#{trace.id}": trace for trace in load_traces(file)}
    chosen = {name: trace for name, trace in named.items() if trace.machine in (machine or FILE_MACHINES)}
    exercised = Counter[str]()
    for stream in streams:
        for result in stream.results:
            exercised.update(result.clauses)
    pages = chapter_pages(smallest_traces(chosen), exercised)
    return pages | {"formats.md": formats_page(), "changes.md": changes_page()}


def _results(directory: Path, history: Path, streams: list[Stream]) -> dict[Path, str]:
    """Return the pages of the results and the new history by path."""
    from conformance.experiments import results  # noqa: PLC0415 -- imports jinja2, which takes time
    from conformance.experiments.scoreboard.making import Source, board_of  # noqa: PLC0415
    from conformance.report.html import drop_page  # noqa: PLC0415
    from conformance.report.scoreboard.pages import html  # noqa: PLC0415

    board = board_of([Source("", streams)])
    editions = results.load_history(history)
    shown = results.Edition.of_board(board) if streams else editions[-1] if editions else None
    if shown is not None:
        editions = results.with_edition(editions, shown)
    changes = results.changes_of(shown, editions) if shown else []
    place = directory / "results"
    texts = {
        directory / "results.md": results.results_page(shown, changes, editions),
        directory / "wire_baseline.md": results.baseline_page(),
        place / "scoreboard.html": html(board),
        place / "drop.html": drop_page(),
        **{place / path: badge for path, badge in results.badges(shown.rows if shown else ()).items()},
    }
    kept = results.text_of(editions)
    return texts | ({history: kept} if streams else {}) | {place / _HISTORY: kept}
