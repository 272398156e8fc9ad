"""``conformance damage``: starts of brokers with corrupt log directories, compared with kidx's predictions."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from conformance.commands.options import JsonOption, QuietOption, ReleaseOption, echo, resolve_releases
from conformance.commands.output_files import write_texts
from conformance.errors import ToolError
from conformance.kafka.broker import default_mode
from conformance.verdict import Comparison

if TYPE_CHECKING:
    from conformance.experiments.start_damage import Outcome

_PARALLEL: Final = 2
"""Releases that are tried in parallel."""


def damage_command(
    kafka: ReleaseOption = None,
    report: Annotated[Path | None, typer.Option(metavar="DIR", help="Write damage.md and damage.json here.")] = None,
    only: Annotated[
        str | None,
        typer.Option(
            metavar="TEXT", help="Only cases whose names contain TEXT; DIR/damage.json keeps the results of the others."
        ),
    ] = None,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> int:
    """Corrupt log directories of a stopped broker, let `kidx verify` predict the next start, and start the broker.

    Each case corrupts the files of a real broker with KRaft that was stopped cleanly or killed. The command shows
    whether the broker starts, which log directory goes offline, and where the partition ends. Exit code 0: all as
    predicted, 1: not.

    Example: `conformance damage --kafka 3.9.2 --kafka 4.3.1 --report out/damage`
    """
    from conformance.experiments.start_damage import CASES, try_starts  # noqa: PLC0415 -- part of an extra
    from conformance.experiments.start_damage.table import markdown, merged, to_json  # noqa: PLC0415

    releases = resolve_releases(kafka)
    old = [release for release in releases if default_mode(release) != "kraft"]
    if old:
        raise ToolError(
            f"Kafka {', '.join(old)} runs with ZooKeeper, which stores the topics outside the log directories; choose"
            " releases that run with KRaft"
        )
    cases = [case for case in CASES if only is None or only in str(case)]
    if not cases:
        raise ToolError(f"no case has {only!r} in its name")

    def show(line: str) -> None:
        if not (quiet or as_json):
            echo(line)

    def start(release: str) -> list[Outcome]:
        return try_starts(release, cases, report=show)

    with ThreadPoolExecutor(_PARALLEL) as pool:  # a starting broker mostly waits
        outcomes = [outcome for each in pool.map(start, releases) for outcome in each]
    if only is not None and report is not None:
        outcomes = merged(report / "damage.json", outcomes)
    compared = Comparison(len(outcomes), sum(not outcome.is_right for outcome in outcomes))
    if report is not None:
        tried = dict.fromkeys(outcome.release for outcome in outcomes)
        chosen = " ".join(f"--kafka {release}" for release in tried)
        made_by = f"Made by `conformance damage {chosen}` with kidx {version('kidx')}."
        page = f"# Corruption and the next start\n\n{made_by}\n\n{markdown(outcomes)}"
        figures = json.dumps(to_json(outcomes), indent=1) + "\n"
        write_texts({report / "damage.md": page, report / "damage.json": figures})
    if as_json:
        typer.echo(json.dumps({"verdict": compared.conclusion, "cases": to_json(outcomes)}))
    else:
        echo(markdown(outcomes), nl=False)
    return compared.settle()
