"""Table of the results that readers get from a log, by the offsets that they read and by the work of other threads."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final

from conformance.experiments.interleave.scenarios import LOGS

if TYPE_CHECKING:
    from conformance.operations import Json


def _reads(row: Json, *suffixes: str) -> bool:
    return any(name.endswith(suffixes) for name in row["names"])


def _runs(row: Json, *words: str) -> bool:
    return any(each in words for name in row["names"] for each in name.split("; "))


_UNUSUAL: Final = ("close", "truncateBelowWatermark", "truncateFully")
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
        rows: JSON results of the pairs.
        releases: releases, one a column.
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
            mine = [row for row in logs if row["release"] == release and matches(row)]
            clauses = sorted({row["clause"] or "new" for row in mine if row["torn"]})
            cells.append(", ".join(clauses) or ("–" if mine else ""))
        lines.append(f"| {title} | {' | '.join(cells)} |")
    return lines
