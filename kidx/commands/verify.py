"""``kidx verify``: are the indexes of these segments right, and if not, where and what would a consumer get wrong?"""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from kidx.commands.line import say, say_json
from kidx.commands.options import chosen_dialect
from kidx.errors import ToolError
from kidx.findings import HARMLESS
from kidx.printable import counted

if TYPE_CHECKING:
    from kidx.findings import Finding
    from kidx.verify import Verification

_ENGINES = ("local", "spark")
_SHOWN = 200
"""Findings that are printed; all of them are in --json, --findings and --html."""


def verify_command(
    paths: Annotated[
        list[str], typer.Argument(metavar="PATH ...", help="Segments, partitions, log directories, or several disks.")
    ],
    *,
    release: Annotated[
        str | None, typer.Option("--kafka", metavar="RELEASE", help="Exact for this release; for any if not given.")
    ] = None,
    index_interval_bytes: Annotated[
        int | None,
        typer.Option(
            min=0, max=2**31 - 1, metavar="N", help="The topics' index.interval.bytes; inferred if not given."
        ),
    ] = None,
    findings: Annotated[
        Path | None, typer.Option("--findings", metavar="FILE", help="Write the findings as .parquet or .ndjson.")
    ] = None,
    html: Annotated[Path | None, typer.Option("--html", metavar="FILE", help="Write a page with pictures.")] = None,
    engine: Annotated[str, typer.Option(metavar="local|spark", help="Where the work is done.")] = "local",
    out: Annotated[
        str | None, typer.Option(metavar="DIR|URL", help="With spark: keep tables and report of this run here.")
    ] = None,
    run_id: Annotated[
        str | None, typer.Option("--run-id", metavar="NAME", help="With spark: name of the run, to go on with it.")
    ] = None,
    processes: Annotated[
        int | None,
        typer.Option("-j", "--processes", min=1, metavar="N", help="Processes; one a processor if not given."),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON document instead of text.")] = False,
    quiet: Annotated[bool, typer.Option("-q", "--quiet", help="Faults and the verdict only.")] = False,
    verbose: Annotated[bool, typer.Option("-v", "--verbose", help="Every file and every remark.")] = False,
) -> int:
    """Verify segments and their indexes, without ever changing them.

    A file is *exact* (the very bytes that a release writes for this log), *sound* (others that still give every look-up
    a right answer), *broken* (it can give a wrong one), *missing* or *unreadable*. A broker may be writing meanwhile.
    Exit code 0: all is exact or sound, 1: something is not, 2: nothing could be read.

    Example: kidx verify /var/lib/kafka/data --findings findings.parquet --html findings.html
    """
    dialect = None if release is None else chosen_dialect(release)
    if engine not in _ENGINES:
        raise ToolError(f"there is no engine {engine!r}; there are {' and '.join(_ENGINES)}")
    _check_targets(findings, html)
    if engine == "spark":
        result = _on_spark(
            paths, release=dialect, index_interval_bytes=index_interval_bytes, out=out, run_id=run_id, shown=not quiet
        )
    elif out is not None or run_id is not None:
        raise ToolError("--out and --run-id go with --engine spark")
    else:
        from kidx.verify.progress import verify_with_progress  # noqa: PLC0415 -- numpy is only loaded to work

        result = verify_with_progress(
            paths, release=dialect, index_interval_bytes=index_interval_bytes, processes=processes, shown=not quiet
        )
    if result.problems and not result.files:
        raise ToolError("; ".join(f"{problem.path}: {problem.message}" for problem in result.problems))
    _write(result, findings, html, paths, release)
    if as_json:
        say_json(result.to_json())
    else:
        _print(result, quiet=quiet, verbose=verbose)
        if not quiet:
            _advise(result, paths, release)
    sys.stdout.flush()
    if result.exit_code == 2:
        raise ToolError(f"nothing could be read of {counted(len(result.files), 'file')}")
    return result.exit_code


def _on_spark(paths: list[str], **options: Any) -> Verification:
    try:
        fleet: Any = importlib.import_module("kidx.spark.fleet.command")
    except ImportError as error:
        raise ToolError("the engine spark needs pyspark: pip install 'kidx[spark]'") from error
    result: Verification = fleet.verify_paths(paths, **options)
    return result


def _check_targets(findings: Path | None, html: Path | None) -> None:
    """Refuses before the work what could not be written after it."""
    from kidx.findings import check_writable  # noqa: PLC0415

    if findings is not None:
        check_writable(findings)
    for path in (findings, html):
        if path is not None and not path.parent.is_dir():
            raise ToolError(f"{path.parent} is not a directory, so {path.name} cannot be written to it")


def _write(
    result: Verification, findings: Path | None, html: Path | None, paths: list[str], release: str | None
) -> None:
    if findings is not None:
        from kidx.findings import write_findings  # noqa: PLC0415

        write_findings(result.findings, findings)
    if html is not None:
        from kidx.repair import advice  # noqa: PLC0415
        from kidx.report.page import About, write_page  # noqa: PLC0415

        write_page(result, html, About(release or "", paths), advice(result, paths, release))


def _print(result: Verification, *, quiet: bool, verbose: bool) -> None:
    counts = result.finding_counts()
    remarks = sum(number for verdict, number in counts.items() if verdict in HARMLESS)
    faults = result.faults(None if verbose else _SHOWN)
    say(*map(_line, faults))
    if (more := counts.total() - remarks - len(faults)) > 0:
        say(f"... {more} more findings: see --verbose, --json, --findings or --html")
    if verbose:
        say(*(_line(finding) for finding in result.findings if finding.verdict in HARMLESS))
        say(*(f"{file.path}: {file.verdict}{_why(file.releases, file.why)}" for file in result.files))
    lines = [] if quiet else _tables(result)
    if remarks and not verbose and not quiet:
        lines.append(f"{counted(remarks, 'remark')}; --verbose shows {'it' if remarks == 1 else 'them'}")
    say(*lines, _last_line(result))


def _advise(result: Verification, paths: list[str], release: str | None) -> None:
    from kidx.repair import advice  # noqa: PLC0415

    found = advice(result, paths, release)
    if found is not None:
        say(*found.lines())


def _line(finding: Finding) -> str:
    return f"{finding.verdict:<10} {finding}"


def _why(releases: str, why: str) -> str:
    return f" for {releases}" if releases else f": {why}" if why else ""


def _tables(result: Verification) -> list[str]:
    counts = result.counts()
    kinds = sorted({kind for kind, _ in counts})
    lines = []
    for kind in kinds:
        parts = [f"{count} {verdict}" for (of, verdict), count in sorted(counts.items()) if of == kind]
        lines.append(f"{kind:<26} {', '.join(parts)}")
    return lines


def _last_line(result: Verification) -> str:
    counts = result.counts()
    bad = sum(number for (_, verdict), number in counts.items() if verdict not in HARMLESS)
    files = f"{bad} of {counted(counts.total(), 'file')}" if bad else counted(counts.total(), "file")
    work = f"{files}, {counted(result.segments, 'segment')}, {counted(result.batches, 'batch')}"
    return f"{result.verdict.upper()}: {work} in {counted(result.partitions, 'partition')}"
