"""``conformance smoke``: check of an adapter, before its implementation is tested."""

from __future__ import annotations

import json
from typing import Annotated

import typer

from conformance.commands.options import JsonOption, ReleaseOption, echo, resolve_releases
from conformance.errors import ToolError
from conformance.experiments.smoke.checks import smoke
from conformance.implementations.process import DEADLINE, START_DEADLINE


def smoke_command(
    implementation: Annotated[
        str,
        typer.Option(
            "-i",
            "--implementation",
            metavar="IMPL",
            help="exec:COMMAND or python:MODULE:FACTORY; jvm, jvm:DIR and mutant:NAME work, too.",
        ),
    ],
    kafka: ReleaseOption = None,
    deadline: Annotated[
        float | None,
        typer.Option(
            min=0.1,
            metavar="S",
            help="Seconds for each reply, including the first one.",
            show_default=f"{DEADLINE:g}; {START_DEADLINE:g} for the start, as a program may have to be compiled",
        ),
    ] = None,
    as_json: JsonOption = False,
) -> int:
    """Check an adapter: does it start, reply, write to the given path, and stop?

    Exit code 0: OK, 1: problems found, 2: it could not be started.

    Example: `conformance smoke -i exec:./my-index`
    """
    releases = resolve_releases(kafka)
    if len(releases) > 1:
        raise ToolError("smoke accepts one release at a time")
    report = smoke(
        implementation, release=releases[0], deadline=deadline or DEADLINE, start_deadline=deadline or START_DEADLINE
    )
    if as_json:
        typer.echo(json.dumps(report.to_json()))
    else:
        for line in report.lines():
            echo(line)
    if not report.started:
        raise ToolError(f"{implementation} was started and did not reply: see the first check")
    return report.exit_code
