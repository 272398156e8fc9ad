"""``conformance tiers``: brokers with tiered storage, and corruption of their cache of remote index files."""

from __future__ import annotations

import json
from importlib.metadata import version
from pathlib import Path
from typing import Annotated

import typer

from conformance.commands.options import JsonOption, QuietOption, ReleaseOption, echo, resolve_releases
from conformance.commands.output_files import write_texts
from conformance.errors import ToolError


def tiers_command(
    kafka: ReleaseOption = None,
    report: Annotated[Path | None, typer.Option(metavar="DIR", help="Write tiered.md and tiered.json here.")] = None,
    only: Annotated[str | None, typer.Option(metavar="TEXT", help="Only cases with this in their names.")] = None,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> int:
    """Query brokers with tiered storage for offsets, and start them with a corrupt cache of remote index files.

    Each broker keeps its remote tier in a local directory, with Kafka's own test jar. Exit code 0: every start is as
    `kidx verify` predicts it, 1: not.

    Example: `conformance tiers --kafka 4.3.1 --report out/tiers`
    """
    from conformance.experiments.tiers import CASES, RELEASES, try_release  # noqa: PLC0415 -- part of an extra
    from conformance.experiments.tiers.table import markdown, to_json  # noqa: PLC0415

    releases = resolve_releases(kafka) if kafka else list(RELEASES)
    unknown = [release for release in releases if release not in RELEASES]
    if unknown:
        raise ToolError(f"no test jar is locked for Kafka {', '.join(unknown)}; choose from {', '.join(RELEASES)}")
    cases = [case for case in CASES if only is None or only in case.name]
    if not cases:
        raise ToolError(f"no case has {only!r} in its name")

    def show(line: str) -> None:
        if not (quiet or as_json):
            echo(line)

    results = [try_release(release, cases, show) for release in releases]
    is_right = all(outcome.is_right for result in results for outcome in result.outcomes)
    if report is not None:
        chosen = " ".join(f"--kafka {release}" for release in releases)
        made_by = f"Made by `conformance tiers {chosen}` with kidx {version('kidx')}."
        write_texts(
            {
                report / "tiered.md": f"# Tiered storage\n\n{made_by}\n\n{markdown(results)}",
                report / "tiered.json": json.dumps(to_json(results), indent=1) + "\n",
            }
        )
    if as_json:
        typer.echo(json.dumps({"verdict": "conforms" if is_right else "diverges", "releases": to_json(results)}))
    else:
        echo(markdown(results), nl=False)
    return 0 if is_right else 1
