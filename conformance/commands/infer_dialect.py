"""``conformance kafka infer-dialect``: the dialect data and clauses that a release would need.

A dialect is the behaviour of one Kafka release, as the reference (kidx) implements it.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from conformance.commands.options import (
    JsonOption,
    echo,
    resolve_machines,
)
from conformance.experiments.release_proposal.proposal import Plan, as_json, format_proposal, propose
from conformance.kafka.builds import release_of
from conformance.kafka.progress import show_progress
from conformance.kafka.releases import load_release
from conformance.runs.reproducers import write_text
from conformance.scratch import state_directory


def infer_dialect_command(
    release: Annotated[str, typer.Argument(metavar="RELEASE", help="A locked release: see `conformance kafka lock`.")],
    against: Annotated[
        str | None,
        typer.Option("--baseline", metavar="RELEASE", help="Release to compare with; by default the previous one."),
    ] = None,
    machine: Annotated[
        list[str] | None, typer.Option("--machine", metavar="NAME", help="Machine to run (repeatable).")
    ] = None,
    max_examples: Annotated[int | None, typer.Option(min=1, help="Examples for each machine and search.")] = None,
    patch: Annotated[Path | None, typer.Option(metavar="FILE", help="Write the diff here, for git apply.")] = None,
    report: Annotated[Path | None, typer.Option(metavar="DIR", help="Write traces here.")] = None,
    as_json_: JsonOption = False,
) -> int:
    """Propose a release's row of dialect data, and the clauses that begin or end with it, as a diff to apply.

    The release's own classes are compared with every value that a dialect can have. Exit code 0: a row of known values
    explains all steps, 1: some steps remain unexplained, 2: could not run.

    Example: `conformance kafka infer-dialect 4.1.1`
    """
    name = load_release(release).name
    base = release_of(name, before=True) if against is None else load_release(against).name
    traces = (report or state_directory()) / "traces"
    plan = Plan(name, base, resolve_machines(machine), traces, max_examples)
    with show_progress("Kafka's jars") as progress:
        proposal = propose(plan, progress)
    if patch is not None:
        write_text(patch, proposal.patch)
    if as_json_:
        typer.echo(json.dumps(as_json(proposal)))
    else:
        echo(format_proposal(proposal))
        typer.echo(proposal.patch, nl=False)
    return 0 if proposal.complete else 1
