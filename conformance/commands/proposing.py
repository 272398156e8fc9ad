"""``conformance kafka infer-dialect``: what the package's data would have to say of a release."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from conformance.commands.options import (
    JsonOption,
    chosen_machines,
    echo,
    state_directory,
)
from conformance.experiments.release_proposal.proposal import Plan, propose
from conformance.experiments.release_proposal.words import as_json, described
from conformance.kafka.builds import release_of
from conformance.kafka.progress import show_progress
from conformance.kafka.releases import load_release
from conformance.runs.script import write_text


def propose_command(
    release: Annotated[str, typer.Argument(metavar="RELEASE", help="A locked release: see `conformance kafka lock`.")],
    against: Annotated[
        str | None,
        typer.Option("--baseline", metavar="RELEASE", help="Release to compare with; the newest locked one before it."),
    ] = None,
    machine: Annotated[
        list[str] | None, typer.Option("--machine", metavar="NAME", help="Machine to run; several times for several.")
    ] = None,
    max_examples: Annotated[int | None, typer.Option(min=1, help="Examples for each machine and search.")] = None,
    patch: Annotated[Path | None, typer.Option(metavar="FILE", help="Write the diff here, for git apply.")] = None,
    report: Annotated[Path | None, typer.Option(metavar="DIR", help="Write traces here.")] = None,
    as_json_: JsonOption = False,
) -> int:
    """Propose a release's row of dialect data, and the clauses that begin or end with it, as a diff to apply.

    Its own classes are held to every value that a dialect can have. Exit code 0: a row of known values says all that
    it does, 1: there are steps that none explains, 2: could not do the work.

    Example: `conformance kafka infer-dialect 4.1.1`
    """
    name = load_release(release).name
    base = release_of(name, before=True) if against is None else load_release(against).name
    traces = (report or state_directory()) / "traces"
    plan = Plan(name, base, chosen_machines(machine), traces, max_examples)
    with show_progress("Kafka's jars") as progress:
        proposal = propose(plan, progress)
    if patch is not None:
        write_text(patch, proposal.patch)
    if as_json_:
        typer.echo(json.dumps(as_json(proposal)))
    else:
        echo(described(proposal))
        typer.echo(proposal.patch, nl=False)
    return 0 if proposal.complete else 1
