"""Markdown table of the reads from a log that are not atomic, by the place that is read and by the other operations.

A row of the data is the JSON result of a pair: an interrupted operation, and others in its middle. Names of reads end
with the place, such as ``Below`` the high watermark.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final

from conformance.experiments.interleave.scenarios import LOGS

if TYPE_CHECKING:
    from conformance.operations import Json


def _reads(row: Json, *suffixes: str) -> bool:
    """Return True if an operation's name ends with one of the suffixes."""
    return any(name.endswith(suffixes) for name in row["names"])


def _runs(row: Json, *operations: str) -> bool:
    """Return True if one of the operations is part of the pair."""
    return any(each in operations for name in row["names"] for each in name.split("; "))


_UNUSUAL: Final = ("close", "truncateBelowWatermark", "truncateFully")
# Rows of the table: the title, and the condition for the pairs that belong to it.
_PLACES: Final[dict[str, Callable[[Json], bool]]] = {
    "below the high watermark, during appends, rolls, retention, and truncation to the high watermark or above": (
        lambda row: _reads(row, "Below") and not _runs(row, *_UNUSUAL)
    ),
    "below the high watermark, during truncation below it": (
        lambda row: _reads(row, "Below", "offsets") and _runs(row, "truncateBelowWatermark", "truncateFully")
    ),
    "in a segment whose files retention deletes": lambda row: _reads(row, "Expired") and _runs(row, "deleteFiles"),
    "above the high watermark, or largest timestamp (-3)": (
        lambda row: _reads(row, "Above", "maxTimestamp") and not _runs(row, "close")
    ),
    "anywhere, during a close": lambda row: _runs(row, "close"),
}


def places(rows: Sequence[Json], releases: Sequence[str]) -> list[str]:
    """Return the lines of the table; none if no log was searched.

    Args:
        rows: JSON results of the pairs; ``torn`` is the number of points at which a pair is not atomic.
        releases: releases, one per column.
    """
    logs = [row for row in rows if row["machine"] in LOGS]
    if not logs:
        return []
    lines = [
        "",
        "## Through a log",
        "",
        "Two threads execute operations of `UnifiedLog` (`Log` until 3.0). A cell contains the clauses of the pairs",
        "that are not atomic; a dash means that all of them are. Where one thread waits for a lock of the other, no",
        "result is compared. Without the locks of the log, appends were detected as not atomic, in each release.",
        "",
        f"| a reader asks | {' | '.join(releases)} |",
        f"|---|{'---|' * len(releases)}",
    ]
    for title, matches in _PLACES.items():
        cells = []
        for release in releases:
            pairs = [row for row in logs if row["release"] == release and matches(row)]
            clauses = sorted({row["clause"] or "new" for row in pairs if row["torn"]})
            cells.append(", ".join(clauses) or ("–" if pairs else ""))
        lines.append(f"| {title} | {' | '.join(cells)} |")
    return lines
