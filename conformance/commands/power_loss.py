"""``conformance power-loss``: Kafka's log after a power failure, in every state that the disk may have."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from conformance.commands.options import JsonOption, ReleaseOption, echo, resolve_releases, state_directory
from conformance.errors import ToolError
from conformance.experiments.power_loss import trace
from conformance.experiments.power_loss.cache import CacheExplorer, CachePlan, cache_lines, trace_of
from conformance.experiments.power_loss.experiment import Explored, Explorer, Plan
from conformance.experiments.power_loss.judging import Judge
from conformance.experiments.power_loss.known import Known, load_known
from conformance.experiments.power_loss.planted import PLANTED, find_planted
from conformance.experiments.power_loss.shrinking import shrunk
from conformance.experiments.power_loss.table import table
from conformance.kafka.progress import show_progress
from conformance.operations import Json
from conformance.runs.reproducers import write_text
from conformance.scratch import scratch_directory
from kidx.dialect import dialect_of

if TYPE_CHECKING:
    from conformance.experiments.power_loss.cache import CacheFinding
    from conformance.experiments.power_loss.signatures import Finding
    from conformance.kafka.jar_fetch import Progress


_LIVES = Plan().lives
_CACHES = CachePlan().lives


class Target(StrEnum):
    """Target of the power failures."""

    LOG = "log"
    CACHE = "cache"


def power_loss_command(
    kafka: ReleaseOption = None,
    machine: Annotated[Target, typer.Option(help="The log, or the cache of remote indexes.")] = Target.LOG,
    seed: Annotated[int, typer.Option(help="Random seed; a fixed seed reproduces the run.")] = 0,
    max_examples: Annotated[
        int | None, typer.Option(min=1, help=f"Examples for each release: {_LIVES} logs, or {_CACHES} caches.")
    ] = None,
    max_time: Annotated[float | None, typer.Option(min=0.1, help="Seconds for each release.")] = None,
    planted: Annotated[
        list[str] | None,
        typer.Option("--planted", metavar="GLOB", help="Search for these planted defects instead, to test the check."),
    ] = None,
    replay: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Replay one power failure, with the release in the file.")
    ] = None,
    shrink_time: Annotated[
        float,
        typer.Option(
            "--max-shrink-time", min=0, metavar="S", help="Seconds for shrinking the operations of each root cause."
        ),
    ] = 10,
    report: Annotated[Path | None, typer.Option(metavar="DIR", help="Write power failures and traces here.")] = None,
    markdown: Annotated[Path | None, typer.Option(metavar="FILE", help="Write a table of all releases here.")] = None,
    as_json: JsonOption = False,
) -> int:
    """Simulate power failures while Kafka's own log appends, rolls, truncates and closes; open every disk state.

    Every write, rename and sync of Kafka's classes is recorded. Unsynced data may be lost, page by page. The log has to
    open without a gap and with all synced data. Its lookups have to find what a scan finds. kidx has to get the same
    result. Exit code 0: only known causes (`conformance clauses PF-1`), 1: a new cause, 2: could not run.

    With `--machine cache`, the cache of remote index files has to open (PF-14), and to answer as remote storage does.

    Example: `conformance power-loss --kafka 4.3.1 --max-time 60`
    """
    if planted and machine is Target.CACHE:
        raise ToolError("--planted requires --machine log: no defect of the cache is planted")
    directory = (report or state_directory()) / "traces"
    with scratch_directory() as scratch, show_progress("Kafka's jars") as progress:
        if replay is not None:
            document = trace.load(replay)
            return _replay(document, Explorer(document["release"], scratch, progress), as_json=as_json)
        releases = resolve_releases(kafka)
        plan = Plan(seed, max_examples or _LIVES, seconds=max_time)
        if planted:
            explorer = Explorer(releases[-1], scratch, progress)
            return _planted(planted, explorer, plan, as_json=as_json)
        if machine is Target.CACHE:
            of_cache = CachePlan(seed, max_examples or _CACHES, seconds=max_time)
            rows = list(_caches(releases, of_cache, directory, scratch, progress, as_json=as_json))
        else:
            known, rows = load_known(), list[Json]()
            for release in releases:
                explorer = Explorer(release, scratch / release, progress)
                explored = explorer.explore(plan)
                findings = [shrunk(each, explorer, shrink_time) for each in explored.findings]
                explained = [(each, known.of(each.signature, release)) for each in findings]
                rows.append(_print_release(explored, explained, directory, as_json=as_json))
    new = sum(found["clause"] is None for row in rows for found in row["findings"])
    if markdown is not None:
        options = "".join(f" --kafka {name}" for name in kafka or ()) + f" --seed {seed}"
        options += f" --max-examples {max_examples}" if max_examples else ""
        options += f" --max-time {max_time:g}" if max_time else ""
        start = f"conformance power-loss{' --machine cache' if machine is Target.CACHE else ''}"
        write_text(markdown, table(rows, f"{start}{options} --markdown FILE"))
    if as_json:
        typer.echo(json.dumps(rows))
    else:
        causes = sum(len(row["findings"]) for row in rows)
        echo(f"{'NEW CAUSES' if new else 'no new cause'}: {new} of {causes} causes are not known")
    return 1 if new else 0


def _caches(
    releases: Sequence[str], plan: CachePlan, directory: Path, scratch: Path, progress: Progress, *, as_json: bool
) -> Iterator[Json]:
    """Print the results of each release that has the cache, and yield them as JSON.

    Raises:
        ToolError: no release has it.
    """
    known, having = load_known(), [each for each in releases if dialect_of(each).has_remote_index_cache]
    if not having:
        raise ToolError(f"Kafka {', '.join(releases)} has no cache of remote indexes: it came with 3.6")
    for release in having:
        explored = CacheExplorer(release, scratch / release, progress).explore(plan)
        row: Json = {"release": release, "lives": explored.lives, "states": explored.states, "findings": []}
        if not as_json:
            echo(f"Kafka {release}: {explored.lives} lives, {explored.states} states of the disk")
        for finding in explored.findings:
            found = known.of(finding.signature, release)
            path = trace_of(finding, release).save(directory)
            told = _finding_json(finding, found, path, finding.failure.described())
            row["findings"].append(told)
            if not as_json:
                echo(f"\n{told['clause'] or 'NEW'}  {told['signature']} ({finding.times} times)")
                echo("\n".join(f"  {line}" for line in cache_lines(finding)))
                echo(f"  replay       conformance replay {path}")
        yield row


def _finding_json(finding: Finding | CacheFinding, found: Known | None, path: Path, lost: list[str]) -> Json:
    return {
        "clause": None if found is None else found.clause,
        "signature": str(finding.signature),
        "times": finding.times,
        "shows": finding.text,
        "trace": str(path),
        "lost": lost,
        "steps": [operation.to_json() for operation in finding.life.operations],
    }


_MORE = 4
"""Factor by which the search for a planted defect executes more examples."""


def _print_release(
    explored: Explored, findings: Sequence[tuple[Finding, Known | None]], directory: Path, *, as_json: bool
) -> Json:
    """Print the results of one release, and return them as JSON."""
    row: Json = {"release": explored.release, "lives": explored.lives, "states": explored.states, "findings": []}
    if not as_json:
        echo(f"Kafka {explored.release}: {explored.lives} examples, {explored.states} states of the disk")
    for finding, found in findings:
        path = trace.save(finding, directory)
        of_log = trace.of_crash_state(finding).save(directory)
        lost = [each["what"] for each in trace.document(finding)["lost"]]
        told = _finding_json(finding, found, path, lost)
        row["findings"].append(told)
        if not as_json:
            echo("\n".join(_lines(finding, told["clause"], path, of_log)))
    return row


def _lines(finding: Finding, clause: str | None, path: Path, of_log: Path) -> list[str]:
    failure = finding.failure
    done = "after" if failure.moment.done else "during"
    start = (
        f"clean={failure.restart.clean}, recovery point {failure.restart.recovery_point}, start {failure.restart.start}"
    )
    return [
        "",
        f"{clause or 'NEW'}  {finding.signature} ({finding.times} times)",
        f"  shows        {finding.text}",
        "  steps",
        *(f"  {number:>5}  {step}" for number, step in enumerate(finding.life.operations, start=1)),
        f"  power fails  {done} step {failure.moment.step + 1}; {failure.moment.disk.event} writes, renames and syncs",
        *(f"  lost         {lost}" for lost in failure.described()),
        f"  start        {start}",
        f"  replay       conformance power-loss --replay {path}",
        f"  lockstep     conformance replay {of_log}",
    ]


def _replay(document: Json, explorer: Explorer, *, as_json: bool) -> int:
    finding = trace.performed(document, explorer.recorder)
    judge = Judge(finding.life, explorer.opener)
    shown = judge.shows(finding.failure, finding.signature.promise)
    if as_json:
        typer.echo(json.dumps({"shown": bool(shown), "text": shown}))
    else:
        echo(f"FAILED · {finding.signature}: {shown}" if shown else f"HOLDS · {len(document['steps'])} steps")
    return 1 if shown else 0


def _planted(globs: Sequence[str], explorer: Explorer, plan: Plan, *, as_json: bool) -> int:
    chosen = find_planted(globs)
    if not chosen:
        raise ToolError(f"unknown planted defect {', '.join(globs)}; choose from {', '.join(PLANTED)}")
    plan = plan._replace(lives=_MORE * plan.lives, lockstep=False)
    rows = []
    for name in chosen:
        found = explorer.explore(plan, PLANTED[name].change, lambda explored: bool(explored.findings))
        shown = str(found.findings[0].signature) if found.findings else None
        rows.append({"name": name, "title": PLANTED[name].title, "lives": found.lives, "found": shown})
        if not as_json:
            verdict = "found   " if shown else "SURVIVED"
            echo(f"{verdict}  {name}: {PLANTED[name].title} · {found.lives} examples · {shown or ''}")
    if as_json:
        typer.echo(json.dumps(rows))
    return 0 if all(row["found"] for row in rows) else 1
