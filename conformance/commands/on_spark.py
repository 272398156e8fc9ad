"""``conformance run --engine spark``: the grid release × machine × seed as tasks."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import typer
from rich.console import Console

from conformance.commands.options import plain_console, state_directory
from conformance.errors import ToolError
from conformance.report.console import sanitizing

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from conformance.runs.campaign import Plan


def run_campaign(plan: Plan, seeds: Sequence[int], report: Path | None, *, as_json: bool, quiet: bool) -> int:
    """Runs a campaign and prints its results; returns the exit code.

    Args:
        plan: what every cell does.
        seeds: of the cells.
        report: directory of the campaign; one named after the time if None.
        as_json: print one document instead of text.
        quiet: no progress.

    Raises:
        ToolError: as :func:`conformance.experiments.campaign.run.run_on_spark`; or some cells could not do their work.
    """
    try:
        from conformance.experiments.campaign.run import document, run_on_spark  # noqa: PLC0415 -- part of an extra
        from kidx.spark.starting import session_for  # noqa: PLC0415
    except ImportError as error:
        raise ToolError("the engine spark needs pyspark: pip install 'kidx[spark]'") from error
    from conformance.report.markdown import markdown  # noqa: PLC0415 -- jinja2, which only this needs

    directory = report or state_directory() / "campaigns" / datetime.now(UTC).strftime("%Y-%m-%dT%H.%M.%SZ")
    console = sanitizing(Console(stderr=True, quiet=quiet))
    said = -1

    def tell(done: int, total: int) -> None:
        nonlocal said
        if done != said:
            said = done
            console.print(f"{done} of {total} cells", highlight=False)

    with session_for("conformance run") as spark:
        campaign = run_on_spark(spark, plan, seeds, directory, progress=tell)
    if as_json:
        typer.echo(json.dumps(document(campaign)))
    elif campaign.done or campaign.cut:
        plain_console().print(markdown(campaign.report), markup=False, highlight=False, soft_wrap=True, end="")
    console.print(
        f"{len(campaign.done)} cells in {campaign.seconds:.0f} s: {directory}", highlight=False, soft_wrap=True
    )
    if campaign.errors:
        name, why = next(iter(campaign.errors.items()))
        raise ToolError(f"{len(campaign.errors)} cells could not do their work, such as {name}: {why}")
    if (campaign.cut or campaign.left) and not campaign.report.divergences:
        raise ToolError(
            f"--max-time cut {len(campaign.cut)} cells short and left {len(campaign.left)} out; "
            f"the same command with --report {directory} goes on"
        )
    return campaign.exit_code
