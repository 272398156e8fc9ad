"""Options that several commands share, and the checks that make a bad one a clear line."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Sequence
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from platformdirs import user_state_path
from rich.console import Console

from conformance.errors import ToolError
from conformance.implementations.forms import FORMS, SERVER_MACHINES, directory_of, machine_of
from conformance.kafka.builds import open_build
from conformance.kafka.releases import RELEASES, load_release, newest
from conformance.machines import MACHINES
from conformance.report.console import shielded
from conformance.runs.seeds import Wish, read_seed
from kidx.dialect import DIALECTS, version_of
from kidx.printable import printable_lines

if TYPE_CHECKING:
    from conformance.runs.no_answer import NoAnswer

ReleaseOption = Annotated[
    list[str] | None,
    typer.Option(
        "--kafka", metavar="RELEASE|all", help="Kafka release; may be given several times. all: those of the package."
    ),
]
ImplementationOption = Annotated[
    list[str] | None,
    typer.Option(
        "-i",
        "--implementation",
        metavar="IMPL",
        help="jvm, broker, jvm:DIR or broker:DIR (a build's jars), wire:HOST:PORT, subject:NAME, exec:COMMAND,"
        " python:MODULE:FACTORY or mutant:NAME (see `conformance power`).",
    ),
]


class BrokerChoice(StrEnum):
    """Where a broker runs."""

    auto = "auto"
    container = "container"
    local = "local"


BrokerOption = Annotated[
    BrokerChoice, typer.Option("--broker", help="auto: in a container where an engine has the image, else local.")
]


def _seed(text: str) -> Wish:
    try:
        return read_seed(text)
    except ValueError as error:
        raise typer.BadParameter(str(error)) from None


SeedOption = Annotated[
    Any,
    typer.Option(
        "--seed",
        parser=_seed,
        metavar="N|random",
        help="Start here; the same seed does the same. Fixed for the profiles dev and ci, drawn for nightly.",
    ),
]
StepTimeoutOption = Annotated[
    float,
    typer.Option(
        "--step-timeout",
        min=0.1,
        metavar="S",
        help="Seconds that a step may take in this process; one that takes longer is a difference, and ends the run.",
    ),
]
HangShrinkTimeOption = Annotated[
    float,
    typer.Option("--shrink-time", min=0, metavar="S", help="Seconds for shrinking the steps to one without an answer."),
]
FiguresOption = Annotated[
    Path | None, typer.Option("--report", metavar="DIR", help="Write the figures for `conformance report`.")
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print one JSON document instead of text.")]
QuietOption = Annotated[bool, typer.Option("-q", "--quiet", help="Differences and the verdict only.")]
VerboseOption = Annotated[bool, typer.Option("-v", "--verbose", help="Also what was not exercised.")]


_WIDE = 120
"""Columns of a log file."""


def chosen_releases(names: list[str] | None, implementations: Sequence[str] = ()) -> tuple[str, ...]:
    """The releases of ``--kafka``, oldest first; by default the newest locked one, or the one that builds are of.

    Where builds are all that takes part, a release needs no lock.

    Raises:
        UnknownReleaseError: one is not locked.
        ToolError: two builds are of different releases, or one is no build of Kafka.
    """
    builds = {directory: open_build(directory) for text in implementations if (directory := directory_of(text))}
    if not names:
        mine = {build.release: build for build in builds.values()}
        if len(mine) > 1:
            said = ", ".join(f"{build.text} is {build.version}" for build in mine.values())
            raise ToolError(f"{said}: hold them to one release with --kafka, or run them one at a time")
        return tuple(mine) if mine else (newest(),)
    if "all" in names:
        return RELEASES
    only_builds = bool(builds) and all(map(directory_of, implementations))
    chosen = {name if only_builds and name in DIALECTS else load_release(name).name for name in names}
    return tuple(sorted(chosen, key=version_of))


def chosen_machines(names: list[str] | None, implementations: Collection[str] = ("jvm",)) -> tuple[str, ...]:
    """The machines of ``--machine``; by default all that drive one of the implementations.

    Raises:
        ToolError: there is no such machine, or it drives none of the implementations.
    """
    every = (*MACHINES, *SERVER_MACHINES)
    own = {machine_of(text) for text in implementations}
    fitting = tuple(name for name in every if (name if name in SERVER_MACHINES else "") in own)
    for name in names or ():
        if name not in every:
            raise ToolError(f"there is no machine {name!r}; there are {', '.join(every)}")
        if name not in fitting:
            missing = (
                f"-i {FORMS[name]}" if name in SERVER_MACHINES else "-i jvm, exec:COMMAND or python:MODULE:FACTORY"
            )
            raise ToolError(f"the {name} machine needs {missing}")
    return tuple(dict.fromkeys(names)) if names else fitting


def plain_console() -> Console:
    """Standard output; as wide as a table needs where it is not a terminal."""
    console = Console()
    return shielded(console if console.is_terminal else Console(width=_WIDE))


def echo(text: str, *, nl: bool = True) -> None:
    """Prints lines of text; what is not printable in them is shown as an escape."""
    typer.echo(printable_lines(text), nl=nl)


def no_answer_teller(*, as_json: bool) -> Callable[[NoAnswer], None]:
    """What prints a step that does not come back."""
    return lambda told: typer.echo(json.dumps(told.to_json())) if as_json else echo(str(told))


def state_directory() -> Path:
    """Where traces go that no report directory was given for."""
    return user_state_path("kidx")
