"""``kidx compare-replicas`` and ``kidx compare``: directories of one partition, and tables of findings or campaigns."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from kidx.commands.line import say, say_json
from kidx.errors import ToolError
from kidx.printable import counted, shell_word

if TYPE_CHECKING:
    from collections.abc import Sequence


def replicas_command(
    one: Annotated[Path, typer.Argument(metavar="ONE", help="Directory of a partition.")],
    two: Annotated[Path, typer.Argument(metavar="TWO", help="Directory of the same partition on another broker.")],
    *,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON document instead of text.")] = False,
) -> int:
    """Compare two directories of one partition, such as copies of two brokers; the files are only read.

    The first difference is named with both batches, the side that the leader epochs favour, and the offset to which
    each side would be truncated if the other one became the leader. Replicas of a compacted topic differ without harm.
    Batches with offsets of other batches are named: no compaction makes them.
    Exit code 0: all batches that both should have are the same, 1: they differ, or batches of one overlap.

    Example: kidx compare-replicas /broker-1/orders-0 /broker-2/orders-0
    """
    from kidx.verify.replicas import compare_replicas  # noqa: PLC0415 -- numpy is only loaded to work

    try:
        found = compare_replicas(one, two)
    except OSError as error:
        place = f"{shell_word(str(error.filename))}: " if error.filename else ""
        raise ToolError(f"cannot read {place}{error.strerror or error}") from error
    if as_json:
        say_json(found.to_json())
    else:
        say(*found.lines())
    return found.exit_code


_SHOWN = 100
"""Maximum number of new rows, and of rows that are gone, that are printed."""


def trends_command(
    earlier: Annotated[str, typer.Argument(metavar="EARLIER", help="A table: a Parquet file or directory.")],
    later: Annotated[str, typer.Argument(metavar="LATER", help="A table of the same kind.")],
    *,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON document instead of text.")] = False,
) -> int:
    """Compare two tables of findings, or of clauses of two campaigns, on Spark: new rows and rows that are gone.

    Exit code 0: no new row is bad, 1: one is.

    Example: kidx compare out/findings/run_id=monday out/findings/run_id=tuesday
    """
    try:
        from kidx.spark.fleet.trends import compare, other_topics, read_tables  # noqa: PLC0415 -- part of an extra
        from kidx.spark.starting import FEW_ROWS, session_for  # noqa: PLC0415
    except ImportError as error:
        raise ToolError("kidx compare requires pyspark; install with: pip install 'kidx[spark]'") from error
    with session_for("kidx compare", FEW_ROWS) as spark:
        trend = compare(*read_tables(spark, earlier, later))
        trend = replace(trend, other_topics=other_topics(spark, earlier, later))
    if as_json:
        say_json(trend.to_json())
    else:
        lines = [
            f"{each['topic']} is another topic since {later.rstrip('/').rpartition('=')[2]}: topic id {each['later']}"
            f" instead of {each['earlier']} ({counted(each['partitions'], 'partition')})"
            for each in trend.other_topics
        ]
        lines += [*_lines("new ", trend.new), *_lines("gone", trend.gone)]
        say(*lines, f"{len(trend.new)} new, {len(trend.gone)} gone, {trend.in_both} as before")
    return 1 if trend.is_worse else 0


def _lines(mark: str, rows: Sequence[dict[str, Any]]) -> list[str]:
    lines = [f"{mark} {' '.join(str(value) for value in row.values())}" for row in rows[:_SHOWN]]
    return lines if len(rows) <= _SHOWN else [*lines, f"{mark} ... {len(rows) - _SHOWN} more: see --json"]
