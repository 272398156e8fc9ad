"""``conformance list``: the clauses."""

from __future__ import annotations

import json
from typing import Annotated

import typer
from rich.console import Console
from rich.markup import escape

from conformance.clauses import load_clauses
from conformance.commands.options import JsonOption, VerboseOption
from conformance.errors import ToolError
from conformance.kafka.releases import load_release
from conformance.report.console import shielded


def list_command(
    clause: Annotated[str, typer.Option("--clause", metavar="PREFIX", help="Only ids that start like this.")] = "",
    kafka: Annotated[str | None, typer.Option("--kafka", metavar="RELEASE", help="Only what holds there.")] = None,
    as_json: JsonOption = False,
    verbose: VerboseOption = False,
) -> None:
    """List the clauses: id, level, releases, and what must hold.

    Example: `conformance list --clause TI --kafka 3.9.2`
    """
    release = load_release(kafka).name if kafka else None
    chosen = [
        entry
        for entry in load_clauses().values()
        if entry.id.startswith(clause) and (release is None or entry.applies_to(release))
    ]
    if not chosen:
        raise ToolError(f"no clause starts with {clause!r}" + (f" and holds in {release}" if release else ""))
    if as_json:
        typer.echo(json.dumps([_document(entry.id) for entry in chosen]))
        return
    console = shielded(Console())
    for entry in chosen:
        console.print(
            f"[bold]{entry.id}[/] {entry.level} [dim]{entry.releases}[/]  {escape(entry.title)}", soft_wrap=True
        )
        console.print(f"    {escape(entry.statement)}", highlight=False, soft_wrap=True)
        if verbose:
            machines = ", ".join(entry.exercised_by) or f"none: {entry.not_exercised}"
            said = f"    source {entry.source}; evidence {entry.evidence}; exercised by {machines}"
            console.print(f"[dim]{escape(said)}[/]", highlight=False, soft_wrap=True)
            if entry.promise:
                console.print(f"[dim]    promised by {escape(entry.promise)}[/]", highlight=False, soft_wrap=True)
            if entry.reason:
                console.print(f"[dim]    {escape(entry.reason)} {entry.ticket}[/]", highlight=False, soft_wrap=True)
            if entry.trace:
                console.print(f"[dim]    conformance replay {entry.trace}[/]", highlight=False, soft_wrap=True)


def _document(clause: str) -> dict[str, object]:
    entry = load_clauses()[clause]
    return {
        "id": entry.id,
        "level": entry.level,
        "title": entry.title,
        "statement": entry.statement,
        "releases": str(entry.releases),
        "source": entry.source,
        "evidence": entry.evidence,
        "exercised_by": list(entry.exercised_by),
        "not_exercised": entry.not_exercised,
        "promise": entry.promise,
        "reason": entry.reason,
        "ticket": entry.ticket,
        "trace": entry.trace,
    }
