"""``conformance site``: the specification as pages."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Annotated

import typer

from conformance.commands.options import QuietOption, echo
from conformance.commands.output_files import write_texts
from conformance.errors import ToolError
from conformance.machines import MACHINES
from conformance.operations.trace_file import load_traces
from conformance.report.stream import read_streams
from conformance.runs.regression_traces import load_regression_traces


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
        typer.Option("--traces", metavar="FILE", help="Choose from the traces of this .ndjson file, too."),
    ] = None,
    quiet: QuietOption = False,
) -> None:
    """Write the specification in Markdown: a page per chapter, the byte layouts, and the changes between releases.

    Each clause has its releases, its source, the smallest trace that shows it with the answers of the releases, and the
    planted defects that violate it. RUNs add how often each clause was exercised. It takes about a minute.

    Example: `conformance site out/specification out/ci`
    """
    from conformance.experiments.specification.chapters import chapter_pages  # noqa: PLC0415 -- imports every mutant
    from conformance.experiments.specification.shown import smallest_traces  # noqa: PLC0415
    from conformance.experiments.specification.tables import changes_page, formats_page  # noqa: PLC0415

    if unknown := set(machine or ()) - MACHINES.keys():
        raise ToolError(f"unknown machine {min(unknown)!r}; choose from {', '.join(MACHINES)}")
    named = {f"{trace.machine}-{trace.id}": trace for each in MACHINES for trace in load_regression_traces(each)}
    for file in traces or ():
        named |= {f"{file}#{trace.id}": trace for trace in load_traces(file)}
    chosen = {name: trace for name, trace in named.items() if trace.machine in (machine or MACHINES)}
    exercised = Counter[str]()
    for stream in read_streams(runs) if runs else ():
        for result in stream.results:
            exercised.update(result.clauses)
    pages = chapter_pages(smallest_traces(chosen), exercised)
    pages |= {"formats.md": formats_page(), "changes.md": changes_page()}
    write_texts({directory / name: page for name, page in pages.items()})
    if not quiet:
        echo(f"{len(pages)} pages in {directory}")
