"""Command of a study, derived from it: options, search of the releases, planted defects, replay, page, exit code."""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Annotated, Any, Final

import typer

from conformance.commands.options import (
    AllowIncompleteOption,
    JsonOption,
    ReleaseOption,
    echo,
    resolve_releases,
    state_directory,
)
from conformance.errors import ToolError
from conformance.kafka.progress import show_progress
from conformance.operations import Json
from conformance.runs.reproducers import write_text
from conformance.runs.worker_count import usable_cpus
from conformance.scratch import scratch_directory
from conformance.studies.study import Request, Study, load, search_releases
from conformance.verdict import Comparison

_SEEDS: Final = 5
"""Number of seeds with which ``--planted`` searches for each defect."""
JobsOption = Annotated[
    int | None,
    typer.Option("-j", "--jobs", min=1, help="Worker processes for several releases; one per CPU by default."),
]
MarkdownOption = Annotated[Path | None, typer.Option(metavar="FILE", help="Write a table of all releases here.")]
MaxTimeOption = Annotated[float | None, typer.Option(min=0.1, help="Seconds for each release.")]
SeedOption = Annotated[int, typer.Option(help="Random seed; a fixed seed draws the same operations.")]


def command_of(study: Study[Any, Any, Any, Any]) -> Callable[..., int]:
    """Return the command of a study, for typer."""

    def command(
        kafka: ReleaseOption = None,
        machine: Any = None,
        seed: SeedOption = 0,
        max_examples: Any = 1,
        max_time: MaxTimeOption = None,
        planted: Any = None,
        replay: Any = None,
        export: Any = None,
        report: Any = None,
        markdown: MarkdownOption = None,
        jobs: JobsOption = None,
        allow_incomplete: AllowIncompleteOption = False,
        as_json: JsonOption = False,
    ) -> int:
        if export is not None and replay is None:
            raise ToolError("--export requires --replay FILE")
        if replay is not None:
            return _replay(study, replay, export, as_json=as_json)
        if planted:
            return _planted(study, planted, range(seed, seed + _SEEDS), kafka, as_json=as_json)
        # Finding the smallest case of each finding takes time, so JSON alone comes without.
        directory = None if as_json and report is None else (report or state_directory()) / "traces"
        request = Request(_machines(study, machine), seed, max_examples, max_time, directory)
        releases = resolve_releases(kafka)
        rows, gaps = _search(study, request, releases, jobs or usable_cpus(), as_json=as_json)
        new = sum(study.is_wrong(row) and row["clause"] is None for row in rows)
        if markdown is not None:
            named = [*(f"--kafka {name}" for name in kafka or ()), *(f"--machine {name}" for name in machine or ())]
            words = " ".join([f"conformance {study.name}", *named, f"--seed {seed} --markdown FILE"])
            write_text(markdown, study.page(rows, words))
        if as_json:
            typer.echo(json.dumps(rows))
        else:
            echo(study.verdict(new, len(rows)))
        seen, asked = {row["machine"] for row in rows}, ", ".join(releases)
        absent = [f"{name} does not apply to Kafka {asked}" for name in machine or () if not gaps and name not in seen]
        compared = Comparison(sum(map(study.count, rows)), new, gaps=gaps, idle=tuple(absent))
        return compared.settle(allow_incomplete=allow_incomplete)

    command.__doc__ = study.help
    command.__annotations__ |= _options(study)
    if study.export is None:
        signature = inspect.signature(command)
        kept = [each for name, each in signature.parameters.items() if name != "export"]
        command.__signature__ = signature.replace(parameters=kept)  # type: ignore[attr-defined]
    return command


def _machines(study: Study[Any, Any, Any, Any], names: list[str] | None) -> tuple[str, ...]:
    """Return the requested machines, each once.

    Raises:
        ToolError: one is unknown.
    """
    chosen = dict.fromkeys(names or (name for name in study.machines if name not in study.on_request))
    for name in chosen:
        if name not in study.machines:
            raise ToolError(f"unknown machine {name!r}; choose from {', '.join(study.machines)}")
    return tuple(chosen)


def _search(
    study: Study[Any, Any, Any, Any], request: Request, releases: Sequence[str], jobs: int, *, as_json: bool
) -> tuple[list[Json], tuple[str, ...]]:
    """Search the releases and print each; return the rows, and what is missing."""
    rows, gaps = list[Json](), list[str]()
    with scratch_directory() as scratch, show_progress("Kafka's jars") as progress:
        for found in search_releases(study, request, releases, scratch, jobs, progress):
            rows += [row | {"release": found.release} for row in found.rows]
            if found.is_cut:
                gaps.append(f"the search of Kafka {found.release} ended early (--max-time)")
            if not as_json and found.release != found.same:
                echo(f"Kafka {found.release}: the same classes as {found.same}")
            elif not as_json:
                for line in study.shown(found.release, found.rows):
                    echo(line)
    return rows, tuple(gaps)


def _options(study: Study[Any, Any, Any, Any]) -> dict[str, Any]:
    """Return the options whose help names what the study has."""
    requested = f" but {' and '.join(study.on_request)}" if study.on_request else ""
    return {
        "machine": Annotated[
            list[str] | None,
            typer.Option("--machine", metavar="NAME", help=f"{', '.join(study.machines)}; all{requested} by default."),
        ],
        "max_examples": Annotated[int, typer.Option(min=1, help=f"{study.example} of each machine.")],
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
        "report": Annotated[Path | None, typer.Option(metavar="DIR", help=f"Write {study.file_stem}s here.")],
    }


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
    study: Study[Any, Any, Any, Any],
    globs: Sequence[str],
    seeds: Sequence[int],
    kafka: list[str] | None,
    *,
    as_json: bool,
) -> int:
    names = [name for name in study.planted if any(fnmatchcase(name, glob) for glob in globs)]
    if not names:
        raise ToolError(f"unknown planted {study.defect} {', '.join(globs)}; choose from {', '.join(study.planted)}")
    releases = resolve_releases(kafka) if kafka else [study.planted_release]
    if len(releases) > 1:
        raise ToolError("--planted changes the classes of one release; choose one with --kafka")
    rows = list[Json]()
    with scratch_directory() as scratch:
        for found in study.search_planted(names, seeds, releases[0], scratch):
            rows.append({"name": found.name, "seed": found.seed, study.unit: found.looked, "found": found.found})
            if not as_json:
                verdict = "found   " if found.found else "SURVIVED"
                echo(f"{verdict}  {found.name}: seed {found.seed} · {found.looked} {study.unit} · {found.found or ''}")
    missed = sum(row["found"] is None for row in rows)
    if as_json:
        typer.echo(json.dumps(rows))
    else:
        searches = f"{len(rows) - missed} of {len(rows)} searches found their {study.defect}"
        echo(f"Kafka {releases[0]}: {searches} ({len(names)} planted {study.defect}s)")
    return 2 if missed else 0
