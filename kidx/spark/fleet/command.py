"""What ``kidx verify --engine spark`` does: a run of the fleet's pipeline, given back as the plain path gives it."""

from __future__ import annotations

import os
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from platformdirs import user_state_path
from rich.console import Console

from kidx.discovery import Problem
from kidx.printable import printable
from kidx.spark.fleet.run import FleetVerification, verify
from kidx.spark.starting import session_for
from kidx.verify import FileVerdict, Interval, Verification

if TYPE_CHECKING:
    from kidx.dialect import Dialect
    from kidx.spark.jobs import Progress


def verify_paths(
    paths: Iterable[str | os.PathLike[str]],
    *,
    release: Dialect | None = None,
    index_interval_bytes: int | None = None,
    out: Path | None = None,
    run_id: str | None = None,
    shown: bool = True,
) -> Verification:
    """As :func:`kidx.verify.verify_paths`, on Spark.

    Args:
        paths: what to look at.
        release: for which *exact* is asked.
        index_interval_bytes: the topics' setting.
        out: for the tables; the user's state directory if None.
        run_id: the time if None.
        shown: say on stderr how far it is, and where the tables are.

    Raises:
        ToolError: as :func:`kidx.spark.fleet.verify`, or Spark does not start.
    """
    console = Console(stderr=True, quiet=not shown)
    with session_for("kidx verify") as spark:
        result = verify(
            spark,
            paths,
            out=user_state_path("kidx") / "fleet" if out is None else out,
            run_id=run_id or datetime.now(UTC).strftime("%Y-%m-%dT%H.%M.%SZ"),
            release=release,
            index_interval_bytes=index_interval_bytes,
            progress=_lines(console),
        )
        verification = _as_plain(result)
    lines = [f"run {result.run_id}: {result.report}"]
    if result.summary.differing_replicas:
        lines += [f"replicas differ: {message}" for message in result.summary.differences]
    for line in lines:
        console.print(printable(line), highlight=False, markup=False, soft_wrap=True)
    return verification


def _lines(console: Console) -> Progress:
    """A plain line whenever another tenth is done."""
    said = -1

    def tell(done: int, total: int) -> None:
        nonlocal said
        if (tenths := 10 * done // total) != said:
            said = tenths
            console.print(f"verified {done} of {total} portions", highlight=False)

    return tell


def _as_plain(result: FleetVerification) -> Verification:
    files = [
        FileVerdict(
            row.path, row.verdict, row.releases, row.why, row.entries, row.size,
            None if row.interval_least is None else Interval(row.interval_least, row.interval_most),
        )
        for row in result.frame("files").toLocalIterator()
    ]  # fmt: skip
    summary = result.summary
    return Verification(
        sorted(files, key=lambda file: file.path),
        result.findings(),
        [Problem(Path(path), message) for path, message in result.problems],
        summary.partitions,
        summary.segments,
        summary.batches,
        summary.bytes_read,
    )
