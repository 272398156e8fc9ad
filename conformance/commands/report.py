"""``conformance report``: results of runs with ``--report``, for people, pipelines and badges."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from conformance.commands.options import AllowIncompleteOption, JsonOption, QuietOption, echo, plain_console
from conformance.errors import ToolError
from conformance.experiments.output_files import write_texts
from conformance.report.combined import CombinedReport
from conformance.report.stream import read_streams
from conformance.verdict import VERDICT_LABELS
from kidx.commands.line import complain


def report_command(
    directories: Annotated[list[Path], typer.Argument(metavar="DIR...", help="Directories of `run --report DIR`.")],
    html: Annotated[Path | None, typer.Option(metavar="FILE", help="Write one HTML page.")] = None,
    junit: Annotated[Path | None, typer.Option(metavar="FILE", help="Write JUnit XML.")] = None,
    markdown: Annotated[Path | None, typer.Option(metavar="FILE", help="Write a summary for a CI page.")] = None,
    badge: Annotated[Path | None, typer.Option(metavar="FILE", help="Write JSON of a shields endpoint badge.")] = None,
    allow_incomplete: AllowIncompleteOption = False,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> int:
    """Report the results of runs; several directories, such as the shards of one campaign, become one report.

    If no file is given, the summary is printed. Exit code 0: conforms, 1: diverges, 2: a run was cut off, or nothing
    was compared, 3: a run is incomplete.

    Example: `conformance report out/ci --html report.html --junit report.xml`
    """
    report = CombinedReport(read_streams(directories), allow_incomplete=allow_incomplete)
    texts = _texts(report, html=html, junit=junit, markdown=markdown, badge=badge)
    write_texts(texts)
    if as_json:
        typer.echo(json.dumps(_document(report)))
    elif not texts:
        from conformance.report.markdown import markdown as summary  # noqa: PLC0415 -- keeps other reports quick

        plain_console().print(summary(report), markup=False, highlight=False, soft_wrap=True, end="")
    elif not quiet:
        names = ", ".join(str(path) for path in texts)
        echo(
            f"{VERDICT_LABELS[report.verdict]} · {len(report.divergences)} divergences · {report.steps} steps · {names}"
        )
    if report.verdict == "incomplete" and report.cut_off:
        raise ToolError("; ".join(report.cut_off))
    if report.cut_off:
        complain(*report.cut_off)
    return report.comparison.settle(allow_incomplete=allow_incomplete)


def _texts(report: CombinedReport, **wanted: Path | None) -> dict[Path, str]:
    """Return the files to write and their texts: all texts are rendered before a file is written."""
    import importlib  # noqa: PLC0415 -- the writers import jinja2, which takes time

    texts: dict[Path, str] = {}
    for name, path in wanted.items():
        if path is not None:
            if path in texts:
                raise ToolError(f"{path} is given for two formats; choose a different file for each")
            writer = getattr(importlib.import_module(f"conformance.report.{name}"), name)
            texts[path] = writer(report)
    return texts


def _document(report: CombinedReport) -> dict[str, Any]:
    """Return the report as one document: the verdict of every implementation, clause by clause."""
    matrix: dict[str, dict[str, dict[str, str]]] = {}
    for name in report.implementations:
        for release in report.tested(name):
            cells = {clause.id: report.verdict_of(name, release, clause) for clause in report.rows(name)}
            tested = {clause: verdict for clause, verdict in cells.items() if verdict is not None}
            matrix.setdefault(name, {})[release] = tested  # type: ignore[assignment]
    return {
        "verdict": report.verdict,
        "cut_off": report.cut_off,
        "missing": report.missing,
        "stale_expectations": report.stale,
        "releases": report.releases,
        "implementations": report.implementations,
        "matrix": matrix,
        "divergences": [divergence.to_json() for divergence in report.divergences],
        "measured": [row.to_json() for rows in report.measured.values() for row in rows],
        "machines": [pace._asdict() for pace in report.pace],
        "steps": report.steps,
        "seconds": report.seconds,
    }
