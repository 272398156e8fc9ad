"""``conformance run --engine spark``: the grid release × machine × seed as Spark tasks.

All the runs of the grid are a campaign.
"""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import typer
from rich.console import Console

from conformance.commands.options import plain_console
from conformance.errors import ToolError
from conformance.report.console import sanitizing
from conformance.scratch import state_directory

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from conformance.runs.runner import Plan


def run_campaign(
    plan: Plan, seeds: Sequence[int], report: Path | None, *, as_json: bool, quiet: bool, allow_incomplete: bool
) -> int:
    """Run a campaign, print its results and return the exit code.

    Args:
        plan: The plan of every run.
        report: The campaign's directory, or None for one named after the time.
        as_json: True to print one JSON document instead of text.
        quiet: True to print no progress.
        allow_incomplete: True to accept a campaign that ``--max-time`` ended.

    Raises:
        ToolError: Spark cannot run, a run failed and none diverged, nothing was compared, or ``--max-time`` ended the
            campaign.
    """
    try:
        from conformance.experiments.campaign import document, run_on_spark  # noqa: PLC0415 -- part of an extra
        from kidx.spark.starting import session_for  # noqa: PLC0415
    except ImportError as error:
        raise ToolError("--engine spark requires pyspark; install with pip install 'kidx[spark]'") from error
    from conformance.report.markdown import markdown  # noqa: PLC0415 -- jinja2, which only this needs

    directory = report or state_directory() / "campaigns" / datetime.now(UTC).strftime("%Y-%m-%dT%H.%M.%SZ")
    console = sanitizing(Console(stderr=True, quiet=quiet))
    printed = -1

    def show(done: int, total: int) -> None:
        nonlocal printed
        if done != printed:
            printed = done
            console.print(f"{done} of {total} runs", highlight=False)

    with session_for("conformance run") as spark:
        campaign = run_on_spark(spark, plan, seeds, directory, progress=show)
    if as_json:
        typer.echo(json.dumps(document(campaign)))
    elif campaign.done or campaign.cut:
        plain_console().print(markdown(campaign.report), markup=False, highlight=False, soft_wrap=True, end="")
    console.print(
        f"{len(campaign.done)} runs in {campaign.seconds:.0f} s: {directory}", highlight=False, soft_wrap=True
    )
    return campaign.settle(allow_incomplete=allow_incomplete)
