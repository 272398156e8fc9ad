"""``conformance power-loss``: Kafka's log after a power failure, in every state that the disk may have.

A *history* is one example: the operations on a log from its creation to the power failure.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

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
from conformance.experiments.power_loss import trace
from conformance.experiments.power_loss.checking import Checker
from conformance.experiments.power_loss.experiment import Explorer, Plan
from conformance.experiments.power_loss.planted import PLANTED, find_planted
from conformance.experiments.power_loss.search import EXAMPLES, Search, search_planted, search_releases
from conformance.experiments.power_loss.table import planted_table, table
from conformance.kafka.progress import show_progress
from conformance.operations import Json
from conformance.runs.reproducers import write_text
from conformance.runs.worker_count import usable_cpus
from conformance.scratch import scratch_directory
from conformance.verdict import Comparison

if TYPE_CHECKING:
    from conformance.kafka.jar_fetch import Progress

_SEEDS = 5
"""Number of seeds with which ``--planted`` searches for each defect."""
_SHRINK_TIME = 10


def power_loss_command(
    kafka: ReleaseOption = None,
    machine: Annotated[
        list[str] | None,
        typer.Option("--machine", metavar="NAME", help=f"{', '.join(EXAMPLES)}; log by default. Repeatable."),
    ] = None,
    seed: Annotated[int, typer.Option(help="Random seed; a fixed seed reproduces the run.")] = 0,
    max_examples: Annotated[
        int | None,
        typer.Option(min=1, help=f"Examples for each release: {EXAMPLES['log']}; {EXAMPLES['cache']} of a cache."),
    ] = None,
    max_time: Annotated[float | None, typer.Option(min=0.1, help="Seconds for each release.")] = None,
    planted: Annotated[
        list[str] | None,
        typer.Option(
            "--planted",
            metavar="GLOB",
            help="Search for these planted defects of a log instead, from five seeds, to test the check.",
        ),
    ] = None,
    replay: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Replay one power failure, with the release in the file.")
    ] = None,
    shrink_time: Annotated[
        float,
        typer.Option(
            "--max-shrink-time", min=0, metavar="S", help="Seconds for shrinking the operations of each root cause."
        ),
    ] = _SHRINK_TIME,
    report: Annotated[Path | None, typer.Option(metavar="DIR", help="Write power failures and traces here.")] = None,
    markdown: Annotated[Path | None, typer.Option(metavar="FILE", help="Write a table of all releases here.")] = None,
    jobs: Annotated[
        int | None,
        typer.Option("-j", "--jobs", min=1, help="Worker processes for several releases; one per CPU by default."),
    ] = None,
    allow_incomplete: AllowIncompleteOption = False,
    as_json: JsonOption = False,
) -> int:
    """Simulate power failures while Kafka's own log appends, rolls, truncates and closes; open every disk state.

    Every write, rename and sync of Kafka's classes is recorded. Unsynced data may be lost, page by page. The log has to
    open without a gap and with all synced data. Its lookups have to find what a scan finds. kidx has to get the same
    result. Exit code 0: only known causes (`conformance clauses PF-1`), 1: a new cause, 2: could not run,
    or compared no state of the disk, 3: --max-time ended the search early.

    With `--machine cleaned`, the cleaner compacts the log, and each key has to have its latest value. With `--machine
    segment`, one segment is trusted or recovered, as a broker does it. With `--machine cache`, the cache of remote
    index files has to open (PF-14), and to answer as remote storage does.

    Example: `conformance power-loss --kafka 4.3.1 --max-time 60`
    """
    machines = _machines(machine)
    if planted and machines != ["log"]:
        raise ToolError(
            f"--planted requires --machine log, not {', '.join(machines)}: its defects are in the code of logs"
        )
    directory = (report or state_directory()) / "traces"
    with scratch_directory() as scratch, show_progress("Kafka's jars") as progress:
        if replay is not None:
            document = trace.load(replay)
            return _replay(document, Explorer(document["release"], scratch, progress), as_json=as_json)
        releases = resolve_releases(kafka)
        if planted:
            plan, seeds = Plan(examples=max_examples or EXAMPLES["log"], seconds=max_time), range(seed, seed + _SEEDS)
            compared = _planted(planted, seeds, releases[-1], scratch, plan, progress, markdown, as_json=as_json)
            return compared.settle(allow_incomplete=allow_incomplete)
        searches = [Search(name, seed, max_examples, max_time, shrink_time, directory) for name in machines]
        for search in searches:
            if not any(map(search.applies_to, releases)):
                raise ToolError(f"Kafka {', '.join(releases)} has no cache of remote indexes: it came with 3.6")
        rows = list[Json]()
        for row in search_releases(searches, releases, scratch, jobs or usable_cpus(), progress):
            rows.append(row)
            if not as_json:
                _print_row(row)
    new = sum(found["clause"] is None for row in rows for found in row["findings"])
    if markdown is not None:
        shrink = f" --max-shrink-time {shrink_time:g}" if shrink_time != _SHRINK_TIME else ""
        write_text(
            markdown, table(rows, _command(machine, kafka, seed, max_examples, max_time) + f"{shrink} --markdown FILE")
        )
    if as_json:
        typer.echo(json.dumps(rows))
    else:
        causes = sum(len(row["findings"]) for row in rows)
        echo(f"{'NEW CAUSES' if new else 'no new cause'}: {new} of {causes} causes are not known")
    gaps = [
        _cut(row["lives"], max_examples or EXAMPLES[row["machine"]], f"Kafka {row['release']}, {row['machine']}")
        for row in rows
    ]
    states = sum(row["states"] for row in rows)
    return Comparison(states, new, tuple(filter(None, gaps))).settle(allow_incomplete=allow_incomplete)


def _cut(lives: int, wanted: int, what: str) -> str:
    """Return what is missing of a search that --max-time has ended early; empty if it was not."""
    return f"{wanted - lives} of {wanted} examples of {what} not run (--max-time)" if lives < wanted else ""


def _machines(names: list[str] | None) -> list[str]:
    """Return the machines, each once.

    Raises:
        ToolError: one is unknown.
    """
    machines = list(dict.fromkeys(names or ["log"]))
    for name in machines:
        if name not in EXAMPLES:
            raise ToolError(f"unknown machine {name!r}; choose from {', '.join(EXAMPLES)}")
    return machines


def _command(
    machine: list[str] | None, kafka: list[str] | None, seed: int, examples: int | None, seconds: float | None
) -> str:
    options = [*(f"--machine {name}" for name in machine or ()), *(f"--kafka {name}" for name in kafka or ())]
    options.append(f"--seed {seed}")
    if examples:
        options.append(f"--max-examples {examples}")
    if seconds:
        options.append(f"--max-time {seconds:g}")
    return f"conformance power-loss {' '.join(options)}"


def _print_row(row: Json) -> None:
    echo(f"Kafka {row['release']}, {row['machine']}: {row['lives']} examples, {row['states']} states of the disk")
    for found in row["findings"]:
        echo(f"\n{found['clause'] or 'NEW'}  {found['signature']} ({found['times']} times)")
        echo("\n".join(f"  {line}" for line in found["lines"]))
        if "crash" in found:
            echo(f"  replay       conformance power-loss --replay {found['trace']}")
        echo(f"  lockstep     conformance replay {found.get('crash', found['trace'])}")


def _replay(document: Json, explorer: Explorer, *, as_json: bool) -> int:
    finding = trace.performed(document, explorer.recorder)
    checker = Checker(finding.history, explorer.opener)
    shown = checker.shows(finding.failure, finding.signature.guarantee)
    if as_json:
        typer.echo(json.dumps({"shown": bool(shown), "text": shown}))
    else:
        echo(f"FAILED · {finding.signature}: {shown}" if shown else f"HOLDS · {len(document['steps'])} steps")
    return 1 if shown else 0


def _planted(
    globs: Sequence[str],
    seeds: Sequence[int],
    release: str,
    scratch: Path,
    plan: Plan,
    progress: Progress,
    markdown: Path | None,
    *,
    as_json: bool,
) -> Comparison:
    chosen = find_planted(globs)
    if not chosen:
        raise ToolError(f"unknown planted defect {', '.join(globs)}; choose from {', '.join(PLANTED)}")
    rows = list[Json]()
    for row in search_planted(chosen, seeds, release, scratch, plan, progress):
        rows.append(row)
        if not as_json:
            verdict = "found   " if row["found"] else "SURVIVED"
            echo(f"{verdict}  {row['name']}: seed {row['seed']} · {row['lives']} examples · {row['found'] or ''}")
    missed = sum(row["found"] is None for row in rows)
    if markdown is not None:
        shown = " ".join(f"--planted '{glob}'" for glob in globs)
        command = f"conformance power-loss {shown} --kafka {release} --seed {seeds[0]} --markdown FILE"
        write_text(markdown, planted_table(rows, command))
    if as_json:
        typer.echo(json.dumps(rows))
    else:
        echo(
            f"Kafka {release}: {len(rows) - missed} of {len(rows)} searches found their defect ({len(chosen)} defects)"
        )
    return Comparison(sum(row["lives"] for row in rows), missed)
