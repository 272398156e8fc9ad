"""``conformance known-bugs``: a search for known bugs of Kafka's indexes, re-created in the reference."""

from __future__ import annotations

import json
from typing import Annotated

import typer
from rich.table import Table

from conformance.commands.options import JsonOption, MetricsReportOption, plain_console
from conformance.errors import ToolError
from conformance.events import Measured
from conformance.experiments.mutation.historical import KnownBug, load_bugs
from conformance.experiments.mutation.measuring import KillResult, metrics_writer, search_kill
from conformance.verdict import Comparison


def known_bugs_command(
    ticket: Annotated[list[str] | None, typer.Argument(metavar="TICKET...", help="Tickets; all by default.")] = None,
    seed: Annotated[int, typer.Option(help="Random seed.")] = 0,
    report: MetricsReportOption = None,
    as_json: JsonOption = False,
) -> int:
    """Re-create known bugs of Kafka in the reference, and find each with a minimal sequence of steps.

    Some are re-created exactly, others by an analogous defect: the table shows which, and the source for each.

    Exit code 0: all are found, 1: one survives, 2: could not run.

    Example: `conformance known-bugs KAFKA-588 KAFKA-6492`
    """
    bugs = _chosen(ticket)
    found = []
    with metrics_writer(report, [bug.planted.machine for bug in bugs], profile="ci", seed=seed) as emit:
        for bug in bugs:
            result = search_kill(bug.planted, seed, shrink=True)
            found.append((bug, result))
            emit(Measured("historical bugs", bug.ticket, result.examples is not None, _figures(bug, result)))
    if as_json:
        typer.echo(json.dumps([_row(bug, result) for bug, result in found]))
    else:
        plain_console().print(_table(found))
    return Comparison(len(found), sum(result.examples is None for _, result in found)).settle()


def _chosen(tickets: list[str] | None) -> list[KnownBug]:
    """Return the bugs of these tickets.

    Raises:
        ToolError: A ticket is not in the catalogue.
    """
    bugs = {bug.ticket: bug for bug in load_bugs()}
    for ticket in tickets or ():
        if ticket not in bugs:
            raise ToolError(f"unknown ticket {ticket!r}; choose from {', '.join(bugs)}")
    return [bugs[ticket] for ticket in tickets or bugs]


def _row(bug: KnownBug, result: KillResult) -> dict[str, object]:
    return {
        "ticket": bug.ticket,
        "link": bug.link,
        "title": bug.title,
        "affected": bug.affected,
        "fixed": bug.fixed,
        "verified": bug.verified,
        "read": bug.read,
        "shown": bug.shown,
        "doubt": bug.doubt,
        "recreation": bug.recreation,
        "planted": bug.planted.title,
        "mutant": bug.mutant,
        "machine": bug.planted.machine,
        "examples": result.examples,
        "seconds": round(result.seconds, 2),
        "steps": list(result.steps),
        "aspects": list(result.aspects),
    }


def _figures(bug: KnownBug, result: KillResult) -> dict[str, object]:
    counts = {"examples to kill": result.examples or "survived", "steps": len(result.steps)}
    origin = {"machine": bug.planted.machine, "verified by": bug.verified, "mutant is": _kind(bug)}
    return {**origin, **counts, "seconds": round(result.seconds, 1)}


def _kind(bug: KnownBug) -> str:
    return "the bug" if bug.is_the_bug else "an analogy"


def _table(found: list[tuple[KnownBug, KillResult]]) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    for heading, narrow in (("ticket", True), ("machine", True), ("bug", False), ("verified by", False)):
        table.add_column(heading, no_wrap=narrow)
    table.add_column("mutant is", no_wrap=True)
    for heading in ("examples", "seconds", "steps"):
        table.add_column(heading, justify="right", no_wrap=True)
    for bug, result in found:
        counts = (
            ("[bold red]survived[/]", "", "")
            if result.examples is None
            else (str(result.examples), f"{result.seconds:.1f}", str(len(result.steps)))
        )
        table.add_row(bug.ticket, bug.planted.machine, bug.title, bug.verified, _kind(bug), *counts)
    return table
