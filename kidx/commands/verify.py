"""``kidx verify``: the validity of segments' indexes, and for each fault its position and its effect on a consumer."""

from __future__ import annotations

import importlib
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple, cast

import typer

from kidx.commands.line import say, say_json
from kidx.commands.options import RemoteOption, resolve_dialect
from kidx.errors import ToolError
from kidx.findings import HARMLESS, Fault
from kidx.printable import counted, shell_word

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from kidx.dialect import Dialect
    from kidx.findings import Finding
    from kidx.repair import Advice
    from kidx.startup import Start
    from kidx.startup.gravity import Gravity
    from kidx.startup.mounting import Mounting
    from kidx.verify import Verification
    from kidx.verify.verdicts import Cause

_ENGINES = ("local", "spark")
_FORMATS = ("text", "json", "prometheus", "nagios")
_GRAVITIES = ("start", "loss", "broken", "sound-only", "remark")
_MAX_REASONS = 10
"""Maximum number of reasons for skipped paths that are listed."""
_MAX_CAUSES = 200
"""Maximum number of causes that are printed; all findings are in --json, --findings and --html."""
_MAX_GROUPED = 20_000
"""Maximum number of findings that are grouped by their causes."""


class Request(NamedTuple):
    """Request to verify some paths.

    Attributes:
        paths: the paths, as they are shown.
        dialect: rules of the requested release; None for any release.
        index_interval_bytes: the topics' setting; inferred if None.
        config: the broker's ``server.properties``, or None.
        remote: remote storage, or None.
        marked: True to verify directories of deleted topics and strays, too.
        records: True to read every record.
        processes: number of processes; None for one per processor.
        shown: True to show progress.
    """

    paths: list[str]
    dialect: Dialect | None
    index_interval_bytes: int | None
    config: Path | None
    remote: str | None
    marked: bool
    records: bool
    processes: int | None
    shown: bool

    @property
    def release(self) -> str | None:
        """The requested release; None for any."""
        return None if self.dialect is None else self.dialect.release

    def command(self) -> str:
        """Return the command line for people."""
        release = ("--kafka", self.release) if self.release else ()
        return " ".join(["kidx", "verify", *map(shell_word, self.paths), *release])

    def verify(self) -> Verification:
        """Verify the paths on this machine."""
        from kidx.verify.progress import verify_with_progress  # noqa: PLC0415 -- numpy is only loaded to work

        return verify_with_progress(
            self.paths, **self._options, processes=self.processes, shown=self.shown, marked=self.marked
        )

    def verify_on_spark(self, out: str | None, run_id: str | None) -> Verification:
        """Verify the paths on Spark, and keep the tables of this run in ``out``."""
        try:
            fleet: Any = importlib.import_module("kidx.spark.fleet.command")
        except ImportError as error:
            raise ToolError("the engine spark requires pyspark; install with: pip install 'kidx[spark]'") from error
        result: Verification = fleet.verify_paths(
            self.paths,
            release=self.dialect,
            index_interval_bytes=self.index_interval_bytes,
            out=out,
            run_id=run_id,
            shown=self.shown,
            marked=self.marked,
        )
        return result

    def predict(self, result: Verification) -> Start | None:
        """Return the effect of a start; None if no log directory was verified."""
        from kidx.startup import predict  # noqa: PLC0415 -- numpy is only loaded to work
        from kidx.verify.progress import counting  # noqa: PLC0415

        with counting("partitions whose start was predicted", result.partitions, shown=self.shown) as count:
            return predict(
                self.paths, result, self.dialect, self.index_interval_bytes, config=self.config, progress=count
            )

    def prepare(self, result: Verification, start: Start | None) -> Mounting:
        """Return what has to be done before the paths, which are a copy, are mounted."""
        from kidx.startup.mounting import Options, prepare  # noqa: PLC0415 -- numpy is only loaded to work

        if start is None:
            raise ToolError("--backup needs log directories")
        options = Options(
            self.dialect, self.index_interval_bytes, self.config, self.records, self.processes, self.marked
        )
        return prepare(result, start, options)

    def add_remote(self, result: Verification) -> None:
        """Add the verification of remote storage, which the prediction and the next steps do not consider."""
        if self.remote is not None:
            from kidx.verify.remote import verify_remote  # noqa: PLC0415 -- numpy is only loaded to work

            result.include(verify_remote(self.paths, self.remote, **self._options, processes=self.processes))

    @property
    def _options(self) -> dict[str, Any]:
        return {
            "release": self.dialect,
            "index_interval_bytes": self.index_interval_bytes,
            "records": self.records,
        }

    def advise(self, result: Verification, start: Start | None) -> Advice | None:
        """Return the next steps; None if nothing is to be done."""
        from kidx.repair import advice  # noqa: PLC0415 -- numpy is only loaded to work

        if start is None:
            return advice(result, self.paths, self.release)
        return advice(
            result,
            self.paths,
            self.release,
            may_start=start.answer != "no",
            has_steps=start.has_steps,
            rebuilt=start.rebuilt,
            treated=start.treated,
        )


def verify_command(
    paths: Annotated[
        list[str], typer.Argument(metavar="PATH ...", help="Segments, partitions, log directories, or several disks.")
    ],
    *,
    release: Annotated[
        str | None, typer.Option("--kafka", metavar="RELEASE", help="Exact for this release; for any if not given.")
    ] = None,
    remote: RemoteOption = None,
    index_interval_bytes: Annotated[
        int | None,
        typer.Option(
            min=0, max=2**31 - 1, metavar="N", help="The topics' index.interval.bytes; inferred if not given."
        ),
    ] = None,
    config: Annotated[
        Path | None,
        typer.Option("--config", metavar="FILE", help="The broker's server.properties, for the prediction of a start."),
    ] = None,
    findings: Annotated[
        Path | None, typer.Option("--findings", metavar="FILE", help="Write the findings as .parquet or .ndjson.")
    ] = None,
    html: Annotated[Path | None, typer.Option("--html", metavar="FILE", help="Write an HTML report.")] = None,
    engine: Annotated[str, typer.Option(metavar="local|spark", help="Engine that does the work.")] = "local",
    out: Annotated[
        str | None, typer.Option(metavar="DIR|URL", help="With spark: keep tables and report of this run here.")
    ] = None,
    run_id: Annotated[
        str | None, typer.Option("--run-id", metavar="NAME", help="With spark: name of the run, to continue it.")
    ] = None,
    marked: Annotated[
        bool, typer.Option("--marked", help="Also directories of deleted topics (-delete) and strays (-stray).")
    ] = False,
    records: Annotated[
        bool,
        typer.Option(
            "--records", help="Also read every record: finds errors in batches with a valid checksum. Slower."
        ),
    ] = False,
    backup: Annotated[
        bool,
        typer.Option("--backup", help="The paths are a copy: which steps does it need before a broker mounts it?"),
    ] = False,
    processes: Annotated[
        int | None,
        typer.Option("-j", "--jobs", min=1, metavar="N", help="Number of processes; one per processor if not given."),
    ] = None,
    fail_on: Annotated[
        str,
        typer.Option(
            metavar="|".join(_GRAVITIES), help="Least grave result with the exit code 1; the gravest is named first."
        ),
    ] = "broken",
    form: Annotated[
        str, typer.Option("--format", metavar="|".join(_FORMATS), help="Output: for people, or for a program.")
    ] = "text",
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON document, as --format json.")] = False,
    quiet: Annotated[
        bool,
        typer.Option("-q", "--quiet", help="Print only faults and the verdict; the last line has the next command."),
    ] = False,
    verbose: Annotated[bool, typer.Option("-v", "--verbose", help="Print every file and every remark.")] = False,
) -> int:
    """Verify segments and their indexes, without ever changing them.

    A file is *exact* (byte-identical to the file that a release writes for this log), *sound* (different, but every
    lookup still gives a right result), *broken* (it can give a wrong one), *missing* or *unreadable*. A broker may be
    writing at the same time: a file that changes is read again, and is *changing* if it changes during every read.
    Skipped paths are listed. The last line states if the broker may be started, with the effect of its release on the
    files. Exit code 0: all is exact, sound or changing, 1: something is not, a start would do harm or is unknown, or
    records are lost (--fail-on chooses), 2: nothing could be read.

    With --backup the paths are log directories that were copied, or restored from a snapshot. The commands that a copy
    needs before a broker mounts it are tried on a view of it, and printed if they help; nothing is changed. Exit code
    0: it can be used without a change, 1: something has to be done, or is lost.

    Example: kidx verify /var/lib/kafka/data --findings findings.parquet --html findings.html
    """
    form = "json" if as_json else form
    _check_choice("format", form, _FORMATS)
    try:
        _check_choice("engine", engine, _ENGINES)
        _check_options(
            engine,
            of_local={"--records": records, "--remote": remote is not None, "--config": config is not None},
            of_spark={"--out": out is not None, "--run-id": run_id is not None},
        )
        _check_choice("gravity", fail_on, _GRAVITIES)
        if backup:
            others = {
                "--engine spark": engine == "spark",
                "--remote": remote is not None,
                "--html": html is not None,
                "--fail-on": fail_on != "broken",
                f"--format {form}": form not in {"text", "json"},
            }
            _check_alone("--backup", [option for option, is_given in others.items() if is_given])
        _check_targets(findings, html)
        request = Request(
            _as_shown(paths, html),
            None if release is None else resolve_dialect(release),
            index_interval_bytes,
            config,
            remote,
            marked,
            records,
            processes,
            shown=not quiet and form in {"text", "json"},
        )
        result = request.verify_on_spark(out, run_id) if engine == "spark" else request.verify()
        if backup:
            return _report_copy(request, result, findings, form, quiet, verbose)
        return _report(request, result, engine, findings, html, form, cast("Gravity", fail_on), quiet, verbose)
    except ToolError as error:
        if form == "nagios":
            from kidx.startup.gravity import nagios_line  # noqa: PLC0415 -- numpy is only loaded to work

            say(nagios_line("CRITICAL", str(error), {}))
        raise


def _report(
    request: Request,
    result: Verification,
    engine: str,
    findings: Path | None,
    html: Path | None,
    form: str,
    fail_on: Gravity,
    quiet: bool,
    verbose: bool,
) -> int:
    """Predict the start, print and write the results, and return the exit code."""
    _check_result(result)
    start = None if engine == "spark" else request.predict(result)
    next_steps = None if html is None and form != "text" else request.advise(result, start)
    request.add_remote(result)
    if findings is not None:
        from kidx.findings import write_findings  # noqa: PLC0415

        write_findings(result.findings, findings)
    if html is not None:
        _write_page(request, result, html, start, next_steps)
    if result.exit_code == 2 and form in {"prometheus", "nagios"}:
        raise ToolError("no file could be read; kidx verify without --format lists the reasons")
    from kidx.startup.gravity import is_failure  # noqa: PLC0415

    code = int(is_failure(result, start, fail_on))
    if form == "json":
        say_json(result.to_json() | ({"start": start.to_json()} if start else {}))
    elif form == "prometheus":
        from kidx.startup.gravity import prometheus  # noqa: PLC0415

        say(*prometheus(result, start, time.time()).splitlines())
    elif form == "nagios":
        from kidx.startup.gravity import nagios  # noqa: PLC0415

        answer = _alone(start.line if start else "", "")
        say(nagios(result, start, code, "; ".join([_verdict_line(result, start), *answer])))
    else:
        _print(result, quiet=quiet, verbose=verbose, start=start)
        _print_start(start, next_steps, _next_command(request, result, start, next_steps), quiet=quiet)
    sys.stdout.flush()
    if result.exit_code == 2:
        raise ToolError("no file could be read; the output lists the reasons")
    return code


def _check_result(result: Verification) -> None:
    """Raise ToolError if nothing was verified."""
    nothing = result.problems or (not result.partitions and result.left_out)
    if nothing and not result.files:
        raise ToolError("; ".join(f"{problem.path}: {problem.message}" for problem in nothing))


def _report_copy(
    request: Request, result: Verification, findings: Path | None, form: str, quiet: bool, verbose: bool
) -> int:
    """Print which steps a copy needs before it is mounted, and return the exit code."""
    _check_result(result)
    start = request.predict(result)
    mounting = request.prepare(result, start)
    if findings is not None:
        from kidx.findings import write_findings  # noqa: PLC0415

        write_findings(result.findings, findings)
    if form == "json":
        more = {"start": mounting.before.to_json(), "backup": mounting.to_json()}
        say_json(result.to_json() | more)
    else:
        _print(result, quiet=quiet, verbose=verbose, start=start)
        say(*mounting.lines())
    sys.stdout.flush()
    if result.exit_code == 2:
        raise ToolError("no file could be read; the output lists the reasons")
    return mounting.exit_code


def _next_command(request: Request, result: Verification, start: Start | None, next_steps: Advice | None) -> str:
    """Return the one command to type next; empty if nothing is wrong.

    It is the first command of the advice on broken files, if nothing else is wrong or it prevents what a broker would
    do later; else a verification with all lines, which has the steps.
    """
    from kidx.startup.gravity import gravity_of, is_failure  # noqa: PLC0415

    if not is_failure(result, start):
        return ""
    is_repair = gravity_of(result, start) == "broken" or (start is not None and start.harms_only_later)
    if next_steps is not None and next_steps.commands and is_repair:
        return next_steps.commands[0]
    return request.command()


def _alone(line: str, command: str) -> list[str]:
    """Return the last line without references to other lines, with the next command."""
    from kidx.startup.start import without_references  # noqa: PLC0415 -- numpy is only loaded to work

    return ["; next: ".join(filter(None, (without_references(line), command)))] if line or command else []


def _print_start(start: Start | None, next_steps: Advice | None, command: str, *, quiet: bool) -> None:
    """Print the prediction of the start and the next steps; the answer is the last line."""
    *reasons, answer = [""] if start is None else start.lines()
    say(*reasons)
    if quiet:
        say(*_alone(answer, command))
        return
    if next_steps is not None:
        say(*next_steps.lines())
    if start is not None:
        say(*start.limits, answer)


def _as_shown(paths: list[str], html: Path | None) -> list[str]:
    """Return the paths as they are shown: absolute for a page, whose commands are copied into any shell."""
    if html is None:
        return paths
    return [path if "://" in path else str(Path(path).absolute()) for path in paths]


def _check_choice(name: str, value: str, choices: Sequence[str]) -> None:
    if value not in choices:
        raise ToolError(f"unknown {name} {value!r}; choose from {', '.join(choices)}")


def _check_alone(option: str, others: Sequence[str]) -> None:
    """Raise ToolError if an option is given together with others."""
    if others:
        raise ToolError(f"{option} cannot be given with {' and '.join(others)}")


def _check_options(engine: str, *, of_local: Mapping[str, bool], of_spark: Mapping[str, bool]) -> None:
    """Raise ToolError if one engine is given an option of the other."""
    if engine != "spark" and any(of_spark.values()):
        raise ToolError(f"{' and '.join(of_spark)} require --engine spark")
    for option, is_given in of_local.items():
        if engine == "spark" and is_given:
            raise ToolError(f"{option} requires --engine local")


def _check_targets(findings: Path | None, html: Path | None) -> None:
    """Check before the verification that the results can be written."""
    from kidx.findings import check_writable  # noqa: PLC0415

    if findings is not None:
        check_writable(findings)
    for path in (findings, html):
        if path is not None and not path.parent.is_dir():
            raise ToolError(f"cannot write {path.name}: {path.parent} is not a directory")


def _write_page(
    request: Request, result: Verification, html: Path, start: Start | None, next_steps: Advice | None
) -> None:
    from kidx.report.page import About, write_page  # noqa: PLC0415

    about = About(request.release or "", request.paths)
    if start is not None:
        reasons = [*start.lines()[:-1], *start.limits]
        about = About(request.release or "", request.paths, start.line, start.answer == "no", reasons)
    write_page(result, html, about, next_steps)


def _print(result: Verification, *, quiet: bool, verbose: bool, start: Start | None) -> None:
    counts = result.finding_counts()
    remarks = sum(number for verdict, number in counts.items() if verdict in HARMLESS)
    from kidx.verify.verdicts import alike, causes_of  # noqa: PLC0415

    faults = result.faults(None if verbose else _MAX_GROUPED)
    causes = causes_of(faults)
    if verbose:
        for cause in causes:
            say(_line(cause.finding), *(f"  follows  {_line(finding)}" for finding in cause.followers))
        printed = len(faults)
    else:
        groups = alike(causes)[:_MAX_CAUSES]
        for group in groups:
            say(*_folded(group))
        printed = sum(1 + len(cause.followers) for group in groups for cause in group)
    if (more := counts.total() - remarks - printed) > 0:
        say(f"... {more} more findings: see --verbose, --json, --findings or --html")
    if verbose:
        say(*(_line(finding) for finding in result.findings if finding.verdict in HARMLESS))
        say(*(f"{file.path}: {file.verdict}{_why(file.releases, file.why)}" for file in result.files))
    lines = [] if quiet else [*_remarks(result, verbose=verbose), *_tables(result), *_left_out(result, verbose=verbose)]
    if remarks and not verbose and not quiet:
        lines.append(f"{counted(remarks, 'remark')}; --verbose shows {'it' if remarks == 1 else 'them'}")
    say(*lines, _verdict_line(result, start))


def _remarks(result: Verification, *, verbose: bool) -> list[str]:
    """Return the remarks that spare a search: what answers badly, though no file is wrong."""
    from kidx.verify.verdicts import alike, causes_of  # noqa: PLC0415

    kinds = () if verbose else (Fault.LOOKUPS, Fault.RETENTION, Fault.OPEN_TRANSACTION)
    told = [each for each in result.findings if each.verdict == "sound" and each.kind in kinds]
    groups = alike(causes_of(told[:_MAX_GROUPED]))[:_MAX_REASONS]
    return [line for group in groups for line in _folded(group)]


def _line(finding: Finding) -> str:
    return f"{finding.verdict:<10} {finding}"


def _folded(group: Sequence[Cause]) -> list[str]:
    """Return the lines for causes that differ only in their locations: the first cause, and a count of the others."""
    first, *others = group
    lines = [_line(first.finding) + _follows(first)]
    if others:
        count = len(dict.fromkeys(each.finding.path for each in group))
        files = "in this file" if count == 1 else f"in {counted(count, 'file')}, this one included"
        ends = f", the last at {shell_word(others[-1].finding.path)}{_offset(others[-1].finding)}"
        lines.append(f"  and {len(others)} more like it {files}{ends}; --verbose shows them")
    return lines


def _offset(finding: Finding) -> str:
    return "" if finding.offset is None else f" offset {finding.offset}"


def _follows(cause: Cause) -> str:
    count = len(cause.followers)
    if not count:
        return ""
    verb = "follows" if count == 1 else "follow"
    return f" (and {counted(count, 'finding')} that {verb} from it)"


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


def _left_out(result: Verification, *, verbose: bool) -> list[str]:
    """Return the skipped paths with reasons: one line per reason, with --verbose one per path."""
    paths: dict[str, list[Path]] = {}
    for each in result.left_out:
        paths.setdefault(each.message, []).append(each.path)
    lines = []
    for message, places in paths.items():
        if verbose or len(places) == 1:
            lines += [f"skipped    {path}: {message}" for path in places]
        else:
            lines.append(f"skipped    {counted(len(places), 'path')}, such as {places[0]}: {message}")
    if not verbose and (more := len(lines) - _MAX_REASONS) > 0:
        lines[_MAX_REASONS:] = [f"skipped    for {counted(more, 'other reason')}; --verbose names all"]
    if changing := sum(number for (_, verdict), number in result.counts().items() if verdict == "changing"):
        lines.append(
            f"{counted(changing, 'file')} changed during every read, or a broker has them open, and may be right or "
            "not; verify again later, or after the broker was stopped"
        )
    return lines


def _verdict_line(result: Verification, start: Start | None) -> str:
    """Return the verdict on the files, with DO NOT START if a start would do harm, or else RECORDS LOST if any were.

    Args:
        start: effect of a start; None if it was not predicted.
    """
    counts = result.counts()
    bad, total = len(result.faulty_paths), counts.total()
    files = f"{bad} of {counted(total, 'file')}" if 0 < bad <= total else counted(total, "file")
    work = f"{files}, {counted(result.segments, 'segment')}, {counted(result.batches, 'batch')}"
    verdict = result.verdict.upper()
    if start is not None and start.answer == "no":
        message = f"though each single file is {result.verdict}"
        verdict = f"{verdict}, DO NOT START" if result.exit_code else f"DO NOT START, {message}"
    elif start is not None and start.lost:
        verdict = f"{verdict}, RECORDS LOST in {counted(len(start.lost), 'partition')}"
    return f"{verdict}: {work} in {counted(result.partitions, 'partition')}"
