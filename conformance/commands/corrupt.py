"""``conformance corrupt``: behaviour of a broker that starts with corrupt index files."""

from __future__ import annotations

import json
import time
from contextlib import ExitStack
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from conformance.commands.options import (
    BrokerChoice,
    BrokerOption,
    JsonOption,
    QuietOption,
    ReleaseOption,
    echo,
    resolve_releases,
)
from conformance.commands.output_files import write_texts
from conformance.events import Diverged, Measured, Result, RunFinished, RunStarted
from conformance.kafka.progress import show_progress
from conformance.report.ndjson import NdjsonWriter
from conformance.verdict import Comparison

if TYPE_CHECKING:
    from conformance.events import Event, Sink
    from conformance.experiments.index_corruption import Outcome

MACHINE = "hands"
"""Name in reports and events, which keep the name that the command had up to 0.1."""
CLAUSES = ("SEG-35", "SEG-36", "SEG-30", "LO-6")
"""Clauses about the index files that a starting broker trusts or rewrites, and about lookups in them."""


def corrupt_command(
    kafka: ReleaseOption = None,
    broker: BrokerOption = BrokerChoice.auto,
    report: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Write corrupt.md, corrupt.json and events.ndjson here.")
    ] = None,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> int:
    """Delete, rename, truncate, overwrite or falsify index files of a stopped broker, then start and query the broker.

    For every case, the command shows what the broker did with the file, how many records a consumer would miss or read
    again after `offsetsForTimes`, and whether kidx predicted this. Exit code 0: all as predicted, 1: not.

    Example: `conformance corrupt --kafka 2.4.1 --kafka 4.4.0 --report out/corrupt`
    """
    from conformance.experiments.index_corruption import run_corruption_cases  # noqa: PLC0415 -- part of an extra
    from conformance.experiments.index_corruption.table import markdown, to_json  # noqa: PLC0415
    from conformance.kafka.broker import new_broker  # noqa: PLC0415

    releases = resolve_releases(kafka)
    outcomes: list[Outcome] = []
    started = time.monotonic()
    with ExitStack() as stack:
        sinks: list[Sink] = [] if report is None else [stack.enter_context(NdjsonWriter(report))]

        def emit(event: Event) -> None:
            for sink in sinks:
                sink(event)

        def show(line: str) -> None:
            if not (quiet or as_json):
                echo(line)

        progress = stack.enter_context(show_progress("Kafka's jars"))
        now = datetime.now(UTC).isoformat(timespec="seconds")
        emit(RunStarted(releases, ("broker",), (MACHINE,), "", "observed", 0, {"kidx": version("kidx")}, now))
        for release in releases:
            begun = time.monotonic()
            with new_broker(release, broker.value, progress=progress) as running:
                found = run_corruption_cases(running, report=show)
            for event in _events(release, found, time.monotonic() - begun):
                emit(event)
            outcomes += found
        compared = Comparison(len(outcomes), sum(not outcome.as_predicted for outcome in outcomes))
        steps = sum(outcome.cost.lookups for outcome in outcomes)
        emit(RunFinished(compared.conclusion, steps, time.monotonic() - started))
    if report is not None:
        chosen = " ".join(f"--kafka {release}" for release in releases)
        made_by = f"Made by `conformance corrupt {chosen}` with kidx {version('kidx')}."
        page = f"# Index corruption\n\n{made_by}\n\n{markdown(outcomes)}"
        figures = json.dumps(to_json(outcomes), indent=1) + "\n"
        write_texts({report / "corrupt.md": page, report / "corrupt.json": figures})
    if as_json:
        typer.echo(json.dumps({"verdict": compared.conclusion, "cases": to_json(outcomes)}))
    else:
        echo(markdown(outcomes), nl=False)
    return compared.settle()


def _events(release: str, outcomes: list[Outcome], seconds: float) -> list[Event]:
    """Return a release's events: a divergence for each case that kidx did not predict, a metric, and the result."""
    events: list[Event] = []
    for outcome in outcomes:
        if not outcome.as_predicted:
            failure = {
                "step": 0,
                "participant": f"broker {release}",
                "release": release,
                "against": "kidx",
                "aspects": ["outcome"],
                "expected": "as kidx predicts",
                "actual": "; ".join(outcome.differences),
                "clauses": list(CLAUSES),
            }
            replay = f"conformance corrupt --kafka {release}"
            events.append(Diverged(MACHINE, failure, (), (str(outcome.case),), "", replay, "broker"))
    differing = len(events)
    details = {
        "cases": len(outcomes),
        "wrong": sum(outcome.cost.wrong > 0 or outcome.bad_fetches > 0 for outcome in outcomes),
        "missed": max(outcome.cost.missed for outcome in outcomes),
        "reread": max(outcome.cost.reread for outcome in outcomes),
    }
    events.append(Measured("hands on the files", release, not differing, details))
    lookups = sum(outcome.cost.lookups for outcome in outcomes)
    events.append(Result(MACHINE, "broker", release, len(outcomes), lookups, seconds, differing, {}, {}, details))
    return events
