"""``conformance interleave``: atomicity of the operations of Kafka's index classes."""

from __future__ import annotations

import json
from typing import Annotated

import typer

from conformance.commands.options import JsonOption, ReleaseOption, echo, resolve_releases
from conformance.errors import ToolError
from conformance.experiments.interleave.experiment import Interrupter, Pair
from conformance.experiments.interleave.known import KnownPairs
from conformance.experiments.interleave.scenarios import SCENARIOS
from conformance.kafka.progress import show_progress
from conformance.operations import Json
from conformance.scratch import scratch_directory


def interleave_command(
    kafka: ReleaseOption = None,
    index: Annotated[
        list[str] | None, typer.Option("--machine", metavar="NAME", help="offset or time; both by default.")
    ] = None,
    as_json: JsonOption = False,
) -> int:
    """Interrupt every operation of an index at every access to a field or a buffer, and run others there.

    A fetch looks up an index without a lock while a replica truncates and appends. The results must be possible with
    whole operations in some order. A planted race has to be found first. Exit code 0: only known pairs (`conformance
    clauses IV-1`) are torn, 1: another pair is, 2: could not run, or the planted race was not found.

    Example: `conformance interleave --kafka 4.3.1 --machine offset`
    """
    releases = resolve_releases(kafka)
    kinds = tuple(index or SCENARIOS)
    for name in kinds:
        if name not in SCENARIOS:
            raise ToolError(f"unknown machine {name!r}; choose from {', '.join(SCENARIOS)}")
    known, rows, new = KnownPairs(), list[Json](), 0
    with scratch_directory() as scratch, show_progress("Kafka's jars") as progress:
        for release in releases:
            pairs = list(Interrupter(release, scratch / release, progress).explore(kinds))
            found = [_row(release, pair, known.clause_of(pair, release)) for pair in pairs]
            new += sum(row["torn"] > 0 and row["clause"] is None for row in found)
            rows += found
            if not as_json:
                _print(release, pairs, known)
    if as_json:
        typer.echo(json.dumps(rows))
    else:
        echo(f"{'NEW TORN PAIRS' if new else 'no new torn pair'}: {new} of {len(rows)} pairs are torn and not known")
    return 1 if new else 0


def _row(release: str, pair: Pair, clause: str | None) -> Json:
    return {
        "release": release,
        "index": pair.kind,
        "first": pair.first,
        "others": pair.others,
        "points": pair.points,
        "waits": pair.waits,
        "torn": len(pair.violations),
        "clause": clause if pair.violations else None,
        "where": sorted({violation.where for violation in pair.violations}),
    }


def _print(release: str, pairs: list[Pair], known: KnownPairs) -> None:
    torn = [pair for pair in pairs if pair.violations]
    points = sum(pair.points for pair in pairs)
    echo(f"Kafka {release}: {len(pairs)} pairs, {points} interruptions; {len(pairs) - len(torn)} pairs are atomic")
    for pair in torn:
        violation = pair.violations[0]
        echo(f"\n{known.clause_of(pair, release) or 'NEW'}  {pair.kind}: {pair.first}, interrupted by {pair.others}")
        echo(f"  interrupted  {violation.where} (and at {len(pair.violations) - 1} of {pair.points} other points)")
        echo(f"  result       {_format_result(*violation.seen)}")
        for order in sorted(pair.orders):
            echo(f"  in order     {_format_result(*order)}")


def _format_result(first: str, others: str, state: str) -> str:
    return f"{first} · {others} · {state}"
