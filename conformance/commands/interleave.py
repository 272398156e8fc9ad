"""``conformance interleave``: atomicity of the operations of Kafka's indexes, segments and cache."""

from __future__ import annotations

import json
from collections.abc import Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from conformance.commands.options import JsonOption, ReleaseOption, echo, resolve_releases, state_directory
from conformance.errors import ToolError
from conformance.experiments.interleave import trace
from conformance.experiments.interleave.experiment import Interrupter, Result
from conformance.experiments.interleave.java_test import interleaving_test
from conformance.experiments.interleave.planted import PLANTED, RELEASE, find_planted
from conformance.experiments.interleave.releases import Search, search_releases
from conformance.experiments.interleave.scenarios import KINDS, LOGS
from conformance.experiments.interleave.table import table
from conformance.kafka.progress import show_progress
from conformance.operations import Json
from conformance.runs.reproducers import write_text
from conformance.runs.worker_count import usable_cpus
from conformance.scratch import scratch_directory
from conformance.verdict import Comparison

if TYPE_CHECKING:
    from conformance.kafka.jar_fetch import Progress


def interleave_command(
    kafka: ReleaseOption = None,
    machine: Annotated[
        list[str] | None,
        typer.Option("--machine", metavar="NAME", help=f"{', '.join(KINDS)}; all but {' and '.join(LOGS)} by default."),
    ] = None,
    seed: Annotated[int, typer.Option(help="Random seed; a fixed seed draws the same operations.")] = 0,
    max_examples: Annotated[int, typer.Option(min=1, help="Scenarios of each machine.")] = 1,
    planted: Annotated[
        list[str] | None,
        typer.Option(
            metavar="GLOB", help="Search for these planted races instead, with five seeds, to test the check."
        ),
    ] = None,
    replay: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Replay one interleaving in two threads, with its release.")
    ] = None,
    export: Annotated[
        Path | None, typer.Option(metavar="FILE", help="With --replay: also write a stand-alone JUnit test, .java.")
    ] = None,
    report: Annotated[Path | None, typer.Option(metavar="DIR", help="Write interleavings here.")] = None,
    markdown: Annotated[Path | None, typer.Option(metavar="FILE", help="Write a table of all releases here.")] = None,
    jobs: Annotated[
        int | None,
        typer.Option("-j", "--jobs", min=1, help="Worker processes for several releases; one per CPU by default."),
    ] = None,
    as_json: JsonOption = False,
) -> int:
    """Interrupt every operation at every access to a field, buffer or file, and execute other operations there.

    Kafka looks up indexes without a lock while another thread truncates and appends. A pair of operations is torn if
    no order of whole operations gives the same results. With `--machine log` two threads execute the operations of
    Kafka's own log; the name of a read says whether its offset is below or above the high watermark.

    Exit code 0: only known pairs (`conformance clauses IV-1`) are torn, 1: another pair is torn, 2: could not run, no
    pair was interrupted, or a planted race was not found.

    Example: `conformance interleave --kafka 4.3.1 --machine offset`
    """
    if export is not None and replay is None:
        raise ToolError("--export requires --replay FILE")
    with scratch_directory() as scratch, show_progress("Kafka's jars") as progress:
        if replay is not None:
            return _replay(trace.load(replay), export, scratch, progress, as_json=as_json)
        if planted:
            release = _single(resolve_releases(kafka)) if kafka else RELEASE
            return _planted(planted, range(seed, seed + _SEEDS), release, scratch, as_json=as_json)
        kinds = tuple(machine or (kind for kind in KINDS if kind not in LOGS))
        for name in kinds:
            if name not in KINDS:
                raise ToolError(f"unknown machine {name!r}; choose from {', '.join(KINDS)}")
        # Finding the shortest interleaving of each torn pair takes time, so JSON alone comes without.
        directory = None if as_json and report is None else (report or state_directory()) / "traces"
        search, rows = Search(kinds, seed, max_examples, directory), list[Json]()
        releases = resolve_releases(kafka)
        found = search_releases(search, releases, scratch, jobs or usable_cpus(), progress)
        for release, same, results in found:
            rows += [row | {"release": release} for row in results]
            if not as_json:
                _print_release(release, same, results)
    new = sum(row["torn"] > 0 and row["clause"] is None for row in rows)
    if markdown is not None:
        options = "".join(
            [*(f" --kafka {name}" for name in kafka or ()), *(f" --machine {name}" for name in machine or ())]
        )
        write_text(markdown, table(rows, f"conformance interleave{options} --seed {seed} --markdown FILE"))
    if as_json:
        typer.echo(json.dumps(rows))
    else:
        echo(f"{'NEW TORN PAIRS' if new else 'no new torn pair'}: {new} of {len(rows)} pairs are torn and not known")
    seen = {row["machine"] for row in rows}
    absent = tuple(
        f"{name} does not apply to Kafka {', '.join(releases)}" for name in machine or () if name not in seen
    )
    return Comparison(sum(row["points"] for row in rows), new, idle=absent).settle()


def _single(releases: Sequence[str]) -> str:
    """Return the only release.

    Raises:
        ToolError: there are several.
    """
    if len(releases) > 1:
        raise ToolError("--planted changes the classes of one release; choose one with --kafka")
    return releases[0]


_SEEDS = 5
"""Number of seeds with which ``--planted`` searches for each race."""


def _print_release(release: str, same: str, rows: Sequence[Json]) -> None:
    """Print the torn pairs of a release, or only that another release, ``same``, has equal classes and results."""
    if release != same:
        echo(f"Kafka {release}: the same classes as {same}")
        return
    points, torn = sum(row["points"] for row in rows), [row for row in rows if row["torn"]]
    echo(f"Kafka {release}: {len(rows)} pairs, {points} interruptions; {len(rows) - len(torn)} pairs are atomic")
    for row in torn:
        content = trace.load(Path(row["trace"]))
        named = f"{content['machine']}: {content['first']}, interrupted by {content['others']}"
        echo(f"\n{content['clause'] or 'NEW'}  {named}")
        echo(f"  torn at      {row['torn']} of {row['points']} points")
        echo(f"  before       {', '.join(content['setup']) or 'nothing'}")
        for line in trace.readable(content):
            echo(f"  {line}")
        echo(f"  result       {_text(content['result'])}")
        for order in content["orders"]:
            echo(f"  in order     {_text(order)}")
        echo(f"  replay       conformance interleave --replay {row['trace']}")


def _text(result: Json) -> str:
    return f"{result['first']} · {result['others']} · {result['state']}"


def _replay(content: Json, export: Path | None, scratch: Path, progress: Progress | None, *, as_json: bool) -> int:
    program = None if export is None else interleaving_test(content, export)
    interrupter = Interrupter(content["release"], scratch / "replay", progress)
    case, schedule = trace.case_of(content)
    orders = interrupter.orders(case)
    where, _, seen = interrupter.perform(case, schedule)
    torn, same = seen not in orders, (where, seen) == (content["where"], Result(**content["result"]))
    if export is not None and program is not None:  # only now: a rejected replay leaves no file
        write_text(export, program)
    if as_json:
        typer.echo(json.dumps({"torn": torn, "same": same, "where": where, "result": seen._asdict()}))
    else:
        verdict = "FAILED" if torn else "HOLDS"
        echo(f"{verdict} · {_text(seen._asdict())} · {'as recorded' if same else 'not as recorded'}")
    return 1 if torn else 0


def _planted(globs: Sequence[str], seeds: Sequence[int], release: str, scratch: Path, *, as_json: bool) -> int:
    if not any(fnmatchcase(name, glob) for name in PLANTED for glob in globs):
        raise ToolError(f"unknown planted race {', '.join(globs)}; choose from {', '.join(PLANTED)}")
    rows = []
    for found in find_planted(globs, seeds, release, scratch):
        case = found.pair.case if found.pair else None
        shown = f"{case.first}, interrupted by {case.others}" if case else None
        rows.append({"name": found.name, "seed": found.seed, "pairs": found.pairs, "found": shown})
        if not as_json:
            verdict = "found   " if shown else "SURVIVED"
            echo(f"{verdict}  {found.name}: seed {found.seed} · {found.pairs} pairs · {shown or ''}")
    missed = sum(row["found"] is None for row in rows)
    if as_json:
        typer.echo(json.dumps(rows))
    else:
        names = len({row["name"] for row in rows})
        echo(f"Kafka {release}: {len(rows) - missed} of {len(rows)} searches found their race ({names} planted races)")
    return 2 if missed else 0
