"""``conformance clauses``: the list of clauses."""

from __future__ import annotations

import json
from typing import Annotated

import typer
from rich.console import Console
from rich.markup import escape

from conformance.attribution.tables import machines_of
from conformance.clauses import EVIDENCE, LEVELS, Clause, family, load_chapters, load_clauses
from conformance.clauses.editions import frozen
from conformance.commands.options import JsonOption, ListVerboseOption
from conformance.errors import ToolError
from conformance.kafka.releases import load_release
from conformance.report.console import sanitizing

_LEVELS = tuple(each.lower() for each in LEVELS)


def clauses_command(
    clause: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="ID ...",
            help="Only these clauses and their variants: an id, a family such as `OI`, or a prefix such as `OI-1*`.",
            show_default="all",
        ),
    ] = None,
    kafka: Annotated[
        str | None, typer.Option("--kafka", metavar="RELEASE", help="Only clauses that apply to this release.")
    ] = None,
    level: Annotated[
        str, typer.Option("--level", metavar="LEVEL", help=f"Only clauses of this level: {', '.join(_LEVELS)}.")
    ] = "",
    grep: Annotated[
        str, typer.Option("--grep", metavar="TEXT", help="Only clauses whose title, statement or source contains TEXT.")
    ] = "",
    machine: Annotated[
        str, typer.Option("--machine", metavar="NAME", help="Only clauses that this machine can exercise.")
    ] = "",
    freeze: Annotated[
        str, typer.Option("--freeze", metavar="NAME", help="Print the clauses as an edition, for `run --edition FILE`.")
    ] = "",
    as_json: JsonOption = False,
    verbose: ListVerboseOption = False,
) -> None:
    """List the clauses by chapter: id, level, releases, and requirement. A single clause is printed in full.

    Example: `conformance clauses TI --kafka 3.9.2 --level must --grep "last entry"`
    """
    release = load_release(kafka).name if kafka else None
    if level and level.lower() not in _LEVELS:
        raise ToolError(f"unknown level {level!r}; choose from {', '.join(_LEVELS)}")
    chosen = [
        entry
        for entry in load_clauses().values()
        if any(is_selected(entry.id, each) for each in clause or [""])
        and (release is None or entry.applies_to(release))
        and level.upper() in ("", entry.level)
        and (not machine or machine in machines_of(entry.id))
        and grep.casefold() in f"{entry.title}\n{entry.statement}\n{entry.source}".casefold()
    ]
    if not chosen:
        conditions = {
            "matches": " or ".join(map(repr, clause or ())),
            "applies to": release,
            "has level": level.upper(),
            "is of machine": repr(machine) if machine else "",
            "contains": repr(grep) if grep else "",
        }
        raise ToolError("no clause " + " and ".join(f"{verb} {what}" for verb, what in conditions.items() if what))
    if freeze:
        typer.echo(frozen(freeze, chosen), nl=False)
        return
    if as_json:
        typer.echo(json.dumps([_document(entry.id) for entry in chosen]))
        return
    _print(chosen, in_full=verbose or len(chosen) == 1)


def _print(chosen: list[Clause], *, in_full: bool) -> None:
    """Print clauses below the titles of their chapters."""
    console = sanitizing(Console())
    chapter = ""
    for entry in chosen:
        if entry.chapter != chapter:
            chapter = entry.chapter
            console.print(f"[bold underline]{escape(load_chapters()[chapter])}[/]", soft_wrap=True)
        console.print(
            f"[bold]{entry.id}[/] {entry.level} [dim]{entry.releases}[/]  {escape(entry.title)}", soft_wrap=True
        )
        console.print(f"    {escape(entry.statement)}", highlight=False, soft_wrap=True)
        if in_full:
            machines = ", ".join(machines_of(entry.id)) or f"none: {entry.not_exercised}"
            text = f"    source {entry.source}; {EVIDENCE[entry.evidence]}; exercised by {machines}"
            console.print(f"[dim]{escape(text)}[/]", highlight=False, soft_wrap=True)
            if entry.promise:
                console.print(f"[dim]    promised by {escape(entry.promise)}[/]", highlight=False, soft_wrap=True)
            if entry.reason:
                console.print(f"[dim]    {escape(entry.reason)} {entry.ticket}[/]", highlight=False, soft_wrap=True)
            if entry.trace:
                console.print(f"[dim]    conformance replay {entry.trace}[/]", highlight=False, soft_wrap=True)
            if defects := _defects(entry.id):
                console.print(f"[dim]    planted defects: {', '.join(defects)}[/]", highlight=False, soft_wrap=True)


def _defects(clause: str) -> list[str]:
    """Return the mutants whose planted defect violates a clause."""
    from conformance.implementations.mutants import MUTANTS  # noqa: PLC0415 -- imports the whole reference

    return [f"mutant:{each.name}" for each in MUTANTS.values() if each.clause == clause]


def is_selected(clause: str, argument: str) -> bool:
    """Return True if an argument of the command line selects a clause.

    Args:
        clause: The id of the clause, such as ``OI-1``.
        argument: The id, the id without the variant (``OI-1``), the family (``OI``), or a prefix and ``*``; empty for
            all clauses.
    """
    if argument.endswith("*") or not argument:
        return clause.startswith(argument.removesuffix("*"))
    return argument in (clause, family(clause), clause.partition("-")[0])


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
        "exercised_by": list(machines_of(entry.id)),
        "not_exercised": entry.not_exercised,
        "promise": entry.promise,
        "reason": entry.reason,
        "ticket": entry.ticket,
        "trace": entry.trace,
    }
