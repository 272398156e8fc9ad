"""``conformance implementations list | build``: the third-party implementations of the catalogue."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Annotated

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from conformance.commands.options import JsonOption
from conformance.implementations.subject.build import build, missing_tools, place_of
from conformance.report.console import sanitizing
from conformance.subjects import load_subject, load_subjects

app = typer.Typer(
    help="Third-party implementations that can be built and run as -i subject:NAME.", no_args_is_help=True
)


@app.command("list")
def list_command(as_json: JsonOption = False) -> None:
    """List the third-party implementations: version, driver, and whether each is built.

    Example: `conformance implementations list`
    """
    found = [(subject, missing_tools(subject), place_of(subject).is_dir()) for subject in load_subjects().values()]
    if as_json:
        typer.echo(json.dumps([asdict(one) | {"missing": missing, "built": built} for one, missing, built in found]))
        return
    table = Table("subject", "version", "language", "driver", "status", box=None, pad_edge=False)
    for subject, missing, is_built in found:
        status = "built" if is_built else f"needs {', '.join(missing)}" if missing else "can be built"
        table.add_row(*map(escape, (subject.name, subject.version, subject.language, subject.driven, status)))
    sanitizing(Console()).print(table)


@app.command("build")
def build_command(name: Annotated[str, typer.Argument(metavar="NAME", help="Implementation to build.")]) -> None:
    """Build a third-party implementation with its language's own tools, into the cache.

    Example: `conformance implementations build kfake`
    """
    typer.echo(build(load_subject(name)))
