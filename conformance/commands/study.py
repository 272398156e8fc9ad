"""Command of a study, derived from it: options, search of the releases, planted defects, replay, page, exit code."""

from __future__ import annotations

import inspect
import json
import secrets
import shlex
import shutil
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from datetime import UTC, datetime
from fnmatch import fnmatchcase
from importlib.metadata import version
from pathlib import Path
from typing import Annotated, Any, Final, NamedTuple, get_args, get_type_hints

import msgspec
import typer

from conformance.commands.options import (
    AllowIncompleteOption,
    BrokerChoice,
    BrokerOption,
    HangShrinkTimeOption,
    IndexImplementationOption,
    JsonOption,
    QuietOption,
    ReleaseOption,
    StepTimeoutOption,
    echo,
    hang_printer,
    resolve_releases,
)
from conformance.errors import ToolError
from conformance.events import Event, Result, RunFinished, RunStarted
from conformance.experiments.output_files import write_texts
from conformance.kafka.progress import show_progress
from conformance.lockstep.watchdog import STEP_TIMEOUT_S
from conformance.operations import Json
from conformance.report.stream import NdjsonWriter
from conformance.runs.hangs import exit_on_hang
from conformance.runs.plan import usable_cpus
from conformance.runs.reproducers import write_text
from conformance.runs.shrinking import SHRINK_SECONDS
from conformance.scratch import scratch_directory, state_directory
from conformance.studies.study import Request, Study, load, planted_page, search_releases
from conformance.verdict import Comparison, combined

_CONTINUED: Final = " The same command continues a run that was interrupted."
_SEEDS: Final = 5
"""Number of seeds with which ``--planted`` searches for each defect."""
JobsOption = Annotated[
    int | None,
    typer.Option("-j", "--jobs", min=1, help="Worker processes for several releases; one per CPU by default."),
]
MarkdownOption = Annotated[Path | None, typer.Option(metavar="FILE", help="Write a table of all releases here.")]
SeedOption = Annotated[int | None, typer.Option(help="Random seed; a fixed seed draws the same operations.")]


def command_of(study: Study[Any, Any, Any, Any]) -> Callable[..., int]:
    """Return the command of a study, for typer."""

    def command(
        kafka: ReleaseOption = None,
        implementation: IndexImplementationOption = None,
        broker: BrokerOption = BrokerChoice.auto,
        machine: Any = None,
        seed: SeedOption = 0,
        max_examples: Any = None,
        max_time: Any = None,
        planted: Any = None,
        replay: Any = None,
        export: Any = None,
        report: Any = None,
        markdown: MarkdownOption = None,
        jobs: JobsOption = None,
        step_timeout: StepTimeoutOption = STEP_TIMEOUT_S,
        shrink_time: HangShrinkTimeOption = SHRINK_SECONDS,
        allow_incomplete: AllowIncompleteOption = False,
        as_json: JsonOption = False,
        quiet: QuietOption = False,
        **own: Any,
    ) -> int:
        if export is not None and replay is None:
            raise ToolError("--export requires --replay FILE")
        if replay is not None:
            return _replay(study, replay, export, as_json=as_json)
        options = _Options(
            kafka,
            machine,
            secrets.randbelow(1 << 30) if seed is None else seed,
            max_examples,
            max_time,
            study.options(**own),
            implementation or (),
        )
        if planted:
            return _planted(study, planted, options, markdown, as_json=as_json)
        # Finding the smallest case of each finding takes time, so JSON alone comes without.
        saves = study.saves_with_json or ("replay" in study.takes and (report is not None or not as_json))
        directory = (report or state_directory()) / "traces" if saves else None
        told: dict[str, Any] = {} if as_json else {"found": echo} if quiet else {"show": echo, "found": echo}
        implementations = tuple(dict.fromkeys(implementation or ["jvm"]))
        machines = _machines(study, machine or list(study.chosen(implementations)))
        releases = resolve_releases(kafka or list(study.releases))
        told |= {
            "releases": releases,
            "implementations": implementations,
            "unfinished": report and report / "unfinished",
        }
        request = Request(machines, options.seed, max_examples, max_time, directory, options.own, broker.value, **told)
        workers = (jobs or usable_cpus()) if "jobs" in study.takes else study.jobs
        made_by = f"`{options._replace(kafka=list(releases)).command(study)}` with kidx {version('kidx')}"
        written = _Written(study, request, report, made_by)
        study.check(request, written.earlier)
        started = time.monotonic()
        with ExitStack() as stack:
            writes = report is not None and (study.report or study.profile)
            write = stack.enter_context(NdjsonWriter(report)) if writes else _ignored
            if "step_timeout" in study.takes:
                traces, printer = (report or state_directory()) / "traces", hang_printer(as_json=as_json)
                stack.enter_context(exit_on_hang(traces, printer, step_timeout, shrink_time))
            write(_header(study, request))
            rows, gaps, steps = _search(study, request, releases, workers, write, written, as_json=as_json, quiet=quiet)
            found = {row[study.machine] for row in rows} if machine else set()
            absent = [name for name in machine or () if not gaps and name not in found]
            idle = tuple(f"{name} does not apply to Kafka {', '.join(releases)}" for name in absent)
            compared = combined([study.comparison(rows), Comparison(0, gaps=gaps, idle=idle)])
            write(RunFinished(compared.conclusion, steps, time.monotonic() - started))
        if markdown is not None:
            write_text(markdown, study.page(rows, options.command(study)))
        if as_json:
            named = {"verdict": compared.conclusion, study.rows_name: rows}
            typer.echo(json.dumps(named if study.rows_name else rows))
        else:
            echo(study.page(rows, "") if study.prints_page else study.conclusion(rows), nl=False)
        return compared.settle(allow_incomplete=allow_incomplete)

    command.__doc__ = study.help
    command.__signature__ = signature = _signature(study, command)  # type: ignore[attr-defined]
    command.__annotations__ = {each.name: each.annotation for each in signature.parameters.values()}
    return command


def _signature(study: Study[Any, Any, Any, Any], command: Callable[..., int]) -> inspect.Signature:
    shown = get_type_hints(command, include_extras=True) | _options(study)
    absent = ({"export"} if study.export is None else set()) | (set() if study.planted else {"planted"})
    defaults = {"max_examples": study.examples, "seed": study.seed, "max_time": study.seconds}
    kept = [
        each.replace(annotation=shown[name], default=defaults.get(name, each.default))
        for name, each in inspect.signature(command).parameters.items()
        if name in study.takes and name not in absent
    ]
    for each in msgspec.structs.fields(study.options):
        assert each.name not in shown, f"{each.name} is an option of the frame"
        kind, meta = get_args(each.type)
        name = f"--{each.name.replace('_', '-')}"  # without --no-NAME of a flag
        option = typer.Option(name, min=meta.ge, max=meta.le, metavar=meta.title, help=meta.description)
        of_kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
        kept.append(inspect.Parameter(each.name, of_kind, default=each.default, annotation=Annotated[kind, option]))
    return inspect.Signature(kept)


class _Options(NamedTuple):
    kafka: list[str] | None
    machine: list[str] | None
    seed: int
    examples: int | None
    seconds: float | None
    own: Any
    implementations: Sequence[str]

    def command(self, study: Study[Any, Any, Any, Any], *more: str) -> str:
        """Return the command that writes the same page."""
        words = [f"conformance {study.name}", *more, *(f"--kafka {name}" for name in self.kafka or ())]
        words += (f"-i {shlex.quote(name)}" for name in self.implementations)
        words += (f"--{study.machine} {name}" for name in self.machine or ())
        if "seed" in study.takes:
            words.append(f"--seed {self.seed}")
        if self.examples not in (None, study.examples):
            words.append(f"--max-examples {self.examples}")
        if self.seconds not in (None, study.seconds):
            words.append(f"--max-time {self.seconds:g}")
        for field in msgspec.structs.fields(study.options):
            if (value := getattr(self.own, field.name)) != field.default:
                words.append(f"--{field.name.replace('_', '-')}")
                if value is not True:
                    words.append(f"{value:g}" if isinstance(value, float) else shlex.quote(str(value)))
        return " ".join(words + ["--markdown FILE"] * ("markdown" in study.takes))


class _Written:
    """Page and JSON of a report, written after each release so that a failure of the next one loses nothing.

    Attributes:
        earlier: rows of an earlier report that the results may be merged with; None without a report.

    Raises:
        ToolError: the earlier report cannot be read.
    """

    def __init__(self, study: Study[Any, Any, Any, Any], request: Request, report: Path | None, made_by: str) -> None:
        self._study, self._request, self._made_by = study, request, made_by
        self._path = report / f"{study.report}.json" if report is not None and study.report else None
        self.earlier = None if report is None else list[Json]()
        if self._path is not None and study.merges and self._path.exists():
            try:
                self.earlier = json.loads(self._path.read_text("utf-8"))
                study.page(self.earlier or [], "")
            except (OSError, ValueError, LookupError, TypeError) as error:
                raise ToolError(f"cannot read {self._path}: {error!r}") from error

    def row(self, row: Json, release: str) -> Json:
        """Return a row with its release, and with its command if other reports may have it."""
        named = {"release": release} if release else {}
        return row | named | ({"provenance": self._made_by} if self._study.merges else {})

    def __call__(self, rows: Sequence[Json]) -> None:
        """Write the results so far."""
        if self._path is None:
            return
        kept = self._study.merged(self.earlier or [], rows, self._request) if self._study.merges else rows
        made_by = ", ".join(dict.fromkeys(row["provenance"] for row in kept if "provenance" in row)) or self._made_by
        page = f"# {self._study.title}\n\nMade by {made_by}.\n\n{self._study.page(kept, '')}"
        write_texts({self._path.with_suffix(".md"): page, self._path: json.dumps(kept, indent=1) + "\n"})


def _machines(study: Study[Any, Any, Any, Any], names: list[str]) -> tuple[str, ...]:
    """Return the requested machines, each once.

    Raises:
        ToolError: one is unknown.
    """
    for name in names:
        if name not in study.machines:
            raise ToolError(f"unknown {study.machine} {name!r}; choose from {', '.join(study.machines)}")
    return tuple(dict.fromkeys(names))


def _search(
    study: Study[Any, Any, Any, Any],
    request: Request,
    releases: Sequence[str],
    jobs: int,
    write: Callable[[Event], None],
    written: _Written,
    *,
    as_json: bool,
    quiet: bool,
) -> tuple[list[Json], tuple[str, ...], int]:
    """Search the releases and print each; return the rows, what is missing, and the number of steps of the events."""
    rows, gaps, steps, started = list[Json](), list[str](), 0, time.monotonic()
    with scratch_directory() as scratch, show_progress("Kafka's jars") as progress:
        for found in search_releases(study, request, releases, scratch, jobs, progress):
            rows += [written.row(row, found.release) for row in found.rows]
            written(rows)
            for event in study.events(found.release, found.rows, time.monotonic() - started):
                write(event)
                steps += event.steps if isinstance(event, Result) else 0
            started = time.monotonic()
            if found.is_cut:
                gaps.append(f"the search of Kafka {found.release} ended early (--max-time)")
            if not as_json and found.release != found.same:
                echo(f"Kafka {found.release}: the same classes as {found.same}")
            elif not (as_json or quiet or study.prints_page):
                for line in study.shown(found.release, found.rows):
                    echo(line)
    if request.unfinished is not None:
        shutil.rmtree(request.unfinished, ignore_errors=True)
    return rows, tuple(gaps), steps


def _header(study: Study[Any, Any, Any, Any], request: Request) -> RunStarted:
    releases, subjects = ((), ()) if study.profile else (request.releases, (study.implementation,))
    versions, now = {"kidx": version("kidx")}, datetime.now(UTC).isoformat(timespec="seconds")
    return RunStarted(releases, subjects, request.machines, study.profile, "observed", request.seed, versions, now)


def _ignored(event: Event) -> None:
    """Ignore an event, without a report."""


def _options(study: Study[Any, Any, Any, Any]) -> dict[str, Any]:
    """Return the options whose help names what the study has."""
    requested = f" but {' and '.join(study.on_request)}" if study.on_request else ""
    return {
        "machine": Annotated[
            list[str] | None,
            typer.Option(
                f"--{study.machine}", metavar="NAME", help=f"{', '.join(study.machines)}; all{requested} by default."
            ),
        ],
        "max_examples": Annotated[
            int if study.examples else int | None, typer.Option(min=study.least, help=study.example)
        ],
        "max_time": Annotated[
            float | None if study.seconds is None else float, typer.Option(min=0.1, help=study.limited)
        ],
        "planted": Annotated[
            list[str] | None,
            typer.Option(
                metavar="GLOB",
                help=f"Search for these planted {study.defect}s instead, with five seeds, to test the check.",
            ),
        ],
        "replay": Annotated[
            Path | None, typer.Option(metavar="FILE", help=f"Replay one {study.file_stem}, with its release.")
        ],
        "export": Annotated[
            Path | None, typer.Option(metavar="FILE", help="With --replay: also write a stand-alone JUnit test, .java.")
        ],
        "report": Annotated[
            Path | None,
            typer.Option(metavar="DIR", help=f"Write {_written(study)} here.{_CONTINUED if study.continues else ''}"),
        ],
    }


def _written(study: Study[Any, Any, Any, Any]) -> str:
    if study.profile:
        return "metrics for `conformance report`"
    return f"{study.report}.md, {study.report}.json and events.ndjson" if study.report else f"{study.file_stem}s"


def _replay(study: Study[Any, Any, Any, Any], path: Path, export: Path | None, *, as_json: bool) -> int:
    content = load(study, path)
    program = None if export is None or study.export is None else study.export(content, export)
    with scratch_directory() as scratch, show_progress("Kafka's jars") as progress:
        fails, told, text = study.replayed(study.open(content.release, scratch / "replay", progress), content)
    if export is not None and program is not None:  # only now: a rejected replay leaves no file
        write_text(export, program)
    if as_json:
        typer.echo(json.dumps(told))
    else:
        echo(text)
    return 1 if fails else 0


def _planted(
    study: Study[Any, Any, Any, Any], globs: Sequence[str], options: _Options, markdown: Path | None, *, as_json: bool
) -> int:
    names = [name for name in study.planted if any(fnmatchcase(name, glob) for glob in globs)]
    if not names:
        raise ToolError(f"unknown planted {study.defect} {', '.join(globs)}; choose from {', '.join(study.planted)}")
    machines = {study.planted[name].machine for name in names}
    if options.machine and not machines <= set(options.machine):
        raise ToolError(
            f"--planted requires --machine {', '.join(sorted(machines))}: its {study.defect}s are in its code"
        )
    releases = resolve_releases(options.kafka) if options.kafka else [study.planted_release]
    if len(releases) > 1:
        raise ToolError("--planted changes the classes of one release; choose one with --kafka")
    seeds = range(options.seed, options.seed + _SEEDS)
    examples = None if options.examples == study.examples else options.examples
    rows = list[Json]()
    with scratch_directory() as scratch:
        for found in study.search_planted(names, seeds, releases[0], scratch, examples):
            told = {"name": found.name, "title": study.planted[found.name].title, "seed": found.seed}
            rows.append(told | {study.looked: found.looked, "found": found.found})
            if not as_json:
                verdict = "found   " if found.found else "SURVIVED"
                looked = f"{found.looked} {study.looked}"
                echo(f"{verdict}  {found.name}: seed {found.seed} · {looked} · {found.found or ''}")
    missed = sum(row["found"] is None for row in rows)
    if markdown is not None:
        command = options.command(study, *(f"--planted '{glob}'" for glob in globs))
        write_text(markdown, planted_page(study, rows, command))
    if as_json:
        typer.echo(json.dumps(rows))
    else:
        searches = f"{len(rows) - missed} of {len(rows)} searches found their {study.defect}"
        echo(f"Kafka {releases[0]}: {searches} ({len(names)} planted {study.defect}s)")
    return 2 if missed else 0
