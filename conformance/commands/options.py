"""Options that several commands share, with their validation.

A release is locked if a lock file lists its jars with their hashes, so that they can be downloaded and checked.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Sequence
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer
from rich.console import Console

from conformance.clauses.editions import edition_names
from conformance.clauses.machines import DEFAULT_MACHINES, FILE_MACHINES, SERVER_MACHINES
from conformance.errors import ToolError
from conformance.implementations.forms import FORMS, directory_of, machine_of
from conformance.kafka.builds import open_build
from conformance.kafka.lock_file import published_release
from conformance.kafka.releases import RELEASES, newest
from conformance.operations.operation import operations_of
from conformance.report.console import sanitizing
from conformance.runs.profiles import PROFILES, SeedRequest, parse_seed
from conformance.verdict import ALLOW_INCOMPLETE
from kidx.dialect import DIALECTS, PUBLISHED, version_of
from kidx.printable import printable_lines

if TYPE_CHECKING:
    from conformance.runs.hangs import HangReport

run_option, verdict_option, broker_option, output_option = (
    partial(typer.Option, rich_help_panel=panel)
    for panel in ("Selection", "Verdict", "Real brokers (-i broker)", "Output")
)
"""Options of the groups in help texts."""
_REPEATABLE = "Repeatable."


def _releases(default: str, option: Callable[..., Any] = typer.Option) -> Any:
    return option(
        "--kafka",
        metavar="RELEASE|all|every",
        help=f"Kafka release from 2.4.0 on. {_REPEATABLE} all: the package's locked releases, see `conformance kafka"
        " list`; every: each published release. A release without a lock is locked on first use.",
        show_default=default,
    )


def _implementations(text: str, option: Callable[..., Any] = typer.Option) -> Any:
    return option("-i", "--implementation", metavar="IMPL", help=f"{text} {_REPEATABLE}", show_default="jvm")


# Forms of the value of -i, as help.
_LOCAL_FORMS = (
    "jvm (Kafka's own classes), jvm:DIR (a build's classes), exec:COMMAND (your program; {release} in it is replaced by"
    " the release), python:MODULE:FACTORY, mutant:NAME (see `conformance mutate --list`)"
)
_ALL_FORMS = (
    f"{_LOCAL_FORMS}, subject:NAME (see `conformance implementations list`), broker, broker:DIR or wire:HOST:PORT."
)
ReleaseOption = Annotated[list[str] | None, _releases(newest())]
RunReleaseOption = Annotated[list[str] | None, _releases(newest(), run_option)]
TraceReleaseOption = Annotated[list[str] | None, _releases("the trace's release")]
ImplementationOption = Annotated[list[str] | None, _implementations(_ALL_FORMS)]
RunImplementationOption = Annotated[list[str] | None, _implementations(_ALL_FORMS, run_option)]
IndexImplementationOption = Annotated[list[str] | None, _implementations(f"{_LOCAL_FORMS}.")]
_ON_REQUEST = tuple(name for name in FILE_MACHINES if name not in DEFAULT_MACHINES)
"""Machines that run only if the user names them."""
MachineOption = Annotated[
    list[str] | None,
    run_option(
        "--machine",
        metavar="NAME",
        help=f"Machine to run: {', '.join((*FILE_MACHINES, *SERVER_MACHINES))}. {_REPEATABLE}",
        show_default=f"all that can drive the implementation, except {' and '.join(_ON_REQUEST)}",
    ),
]


OperationOption = Annotated[
    list[str] | None,
    run_option(
        "--operation",
        metavar="NAME",
        help="Execute only this operation, and those that open or release files; without --machine with the machines"
        f" that have it. What is not run makes the verdict incomplete. {_REPEATABLE}",
        show_default="all",
    ),
]


Level = StrEnum("Level", ["must", "api", "observed"])
"""Clauses that count for the verdict: guarantees to users, also guarantees to callers of Kafka's classes, or all."""


def _profiles() -> str:
    each = (f"{one.name} {one.examples:,} of up to {one.steps} steps" for one in PROFILES.values())
    return f"Examples for each machine: {', '.join(each)}; fewer for segments and logs, where a step takes longer."


PROFILE_HELP = _profiles()


class BrokerChoice(StrEnum):
    """Place where brokers run."""

    auto = "auto"
    container = "container"
    local = "local"


BrokerOption = Annotated[
    BrokerChoice,
    broker_option(
        "--broker",
        help="Where brokers run; auto: in a container if a container engine has the image, else as local processes.",
    ),
]


def _seed(text: str) -> SeedRequest:
    try:
        return parse_seed(text)
    except ValueError as error:
        raise typer.BadParameter(str(error)) from None


SeedOption = Annotated[
    Any,
    run_option(
        "--seed",
        parser=_seed,
        metavar="N|random",
        help="Random seed (N or random); a fixed seed reproduces the run.",
        show_default="0 for the profiles dev and ci, random for nightly",
    ),
]
StepTimeoutOption = Annotated[
    float,
    verdict_option(
        "--step-timeout",
        min=0.1,
        metavar="S",
        help="Seconds for a step of an implementation in this process (jvm, python, mutant). A longer step is a"
        " divergence and ends the run. A program (exec:) has 10 s for each reply; after that it is restarted.",
    ),
]
ShrinkTimeOption = Annotated[
    float,
    verdict_option("--max-shrink-time", min=0, metavar="S", help="Seconds for shrinking the trace of one divergence."),
]
HangShrinkTimeOption = Annotated[
    float,
    verdict_option(
        "--max-shrink-time", min=0, metavar="S", help="Seconds for finding a shorter sequence of steps after a hang."
    ),
]
EDITION_HELP: Final = (
    f"Count the clauses of this edition alone ({', '.join(edition_names())}, or a file of `conformance clauses"
    " --freeze`)"
)
AllowIncompleteOption = Annotated[
    bool,
    verdict_option(
        ALLOW_INCOMPLETE,
        help="Exit with 0 instead of 3 if nothing diverged and nothing failed, but a part was not run (--max-time).",
    ),
]
MetricsReportOption = Annotated[
    Path | None, output_option("--report", metavar="DIR", help="Write metrics for `conformance report` here.")
]
JsonOption = Annotated[bool, output_option("--json", help="Print one JSON document instead of text.")]
QuietOption = Annotated[bool, output_option("-q", "--quiet", help="Print divergences and the verdict only.")]


def _verbose(text: str) -> Any:
    return output_option("-v", "--verbose", help=text)


VerboseOption = Annotated[bool, _verbose("Also print the clauses that no step exercised.")]
ListVerboseOption = Annotated[bool, _verbose("Also print source, evidence, guarantee and machines.")]
DiffVerboseOption = Annotated[bool, _verbose("Also print expected differences.")]


_WIDE = 120
"""Width in columns of a table that is not printed to a terminal."""


def resolve_releases(names: list[str] | None, implementations: Sequence[str] = ()) -> tuple[str, ...]:
    """Return the releases of ``--kafka``, oldest first; by default the release of the builds, or the newest locked one.

    If all implementations are builds, a release needs no lock.

    Raises:
        UnknownReleaseError: A release is neither published nor locked.
        ToolError: Two builds have different releases and none is given, or a directory is no build of Kafka.
    """
    builds = {directory: open_build(directory) for text in implementations if (directory := directory_of(text))}
    if not names:
        by_release = {build.release: build for build in builds.values()}
        if len(by_release) > 1:
            versions = ", ".join(f"{build.text} is {build.version}" for build in by_release.values())
            raise ToolError(
                f"the builds have different versions ({versions}); choose one release with --kafka, or run one build at"
                " a time"
            )
        return tuple(by_release) or (newest(),)
    if "every" in names:
        names = [*PUBLISHED.split(), *RELEASES]
    elif "all" in names:
        return RELEASES
    only_builds = bool(builds) and all(map(directory_of, implementations))
    chosen = {name if only_builds and name in DIALECTS else published_release(name).name for name in names}
    return tuple(sorted(chosen, key=version_of))


def resolve_machines(names: list[str] | None, implementations: Collection[str] = ("jvm",)) -> tuple[str, ...]:
    """Return the machines of ``--machine``; by default the default ones that can drive one of the implementations.

    Raises:
        ToolError: A machine is unknown, or cannot drive any of the implementations.
    """
    every = (*FILE_MACHINES, *SERVER_MACHINES)
    driving = {machine_of(text) for text in implementations}  # the machine of a server; "" for what opens files
    fitting = tuple(name for name in every if (name if name in SERVER_MACHINES else "") in driving)
    for name in names or ():
        if name not in every:
            raise ToolError(f"unknown machine {name!r}; choose from {', '.join(every)}")
        if name not in fitting:
            missing = (
                f"-i {FORMS[name]}" if name in SERVER_MACHINES else "-i jvm, exec:COMMAND or python:MODULE:FACTORY"
            )
            raise ToolError(f"the {name} machine requires {missing}")
    return tuple(dict.fromkeys(names or (name for name in fitting if name not in _ON_REQUEST)))


def resolve_operations(
    names: list[str] | None, machines: tuple[str, ...], *, named: bool
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the operations of ``--operation``, and the machines that have one of them.

    Args:
        named: True if the user has named the machines, so that each needs one of the operations.

    Raises:
        ToolError: No machine has an operation, or a named machine has none of them.
    """
    known = {machine: sorted(operations_of(machine)) for machine in machines}
    for name in names or ():
        if not any(name in has for has in known.values()):
            every = ", ".join(sorted({each for has in known.values() for each in has}))
            raise ToolError(f"unknown operation {name!r} of {', '.join(machines)}; choose from {every}")
    fitting = tuple(machine for machine, has in known.items() if not names or set(names) & set(has))
    for machine in machines if named else ():
        if machine not in fitting:
            raise ToolError(
                f"the {machine} machine has none of the operations; choose from {', '.join(known[machine])}"
            )
    return tuple(dict.fromkeys(names or ())), fitting


def plain_console() -> Console:
    """Return a console for standard output; wide enough for a table if it is not a terminal."""
    console = Console()
    return sanitizing(console if console.is_terminal else Console(width=_WIDE))


def echo(text: str, *, nl: bool = True) -> None:
    """Print lines of text, with unprintable characters escaped."""
    typer.echo(printable_lines(text), nl=nl)


def hang_printer(*, as_json: bool) -> Callable[[HangReport], None]:
    """Return a callback that prints a hang."""
    return lambda hang: typer.echo(json.dumps(hang.to_json())) if as_json else echo(str(hang))
