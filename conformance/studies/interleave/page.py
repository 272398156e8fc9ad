"""Markdown page about the atomicity of operations in each release."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final

from conformance.clauses import load_clauses
from conformance.studies.interleave.scenarios import CACHES, LOGS

if TYPE_CHECKING:
    from conformance.operations import Json

NEW: Final = "new"
"""Text that replaces the clause of a pair that is not atomic and that no clause covers."""
_TARGETS: Final = {
    "offset": "offset index",
    "time": "time index",
    "lazy": "index in a `LazyIndex`",
    "segment": "segment",
    "opened": "segment that was just opened",
    "cache": "cache of remote indexes",
    "removed": "cache that notifies late of a removal",
    "full": "cache without space",
    "log": "log",
    "replicated": "log that is fully replicated",
}


def table(rows: Sequence[Json], command: str) -> str:
    """Return the page: how many pairs are atomic, then each that is not; one column per release, the last first.

    Args:
        rows: JSON results of the pairs; ``torn`` is the number of points at which a pair is not atomic.
        command: command that produced them.
    """
    clauses = load_clauses()
    releases = list(dict.fromkeys(row["release"] for row in rows))[::-1]
    lines = [
        "# What is atomic",
        "",
        f"`{command}` prints this page.",
        "One operation is interrupted at every access to a field, a buffer or a file, and others run there. A pair is",
        "atomic if every result matches some order of whole operations. A number counts the points with results that",
        "match none. A release with classes that are byte-identical with an earlier release has its results.",
        "`conformance clauses ID` explains a clause.",
        "",
        f"| | {' | '.join(releases)} |",
        f"|---|{'--:|' * len(releases)}",
    ]
    for kind, title in _TARGETS.items():
        if not any(row["machine"] == kind for row in rows):
            continue
        cells = []
        for release in releases:
            pairs = [row for row in rows if row["release"] == release and row["machine"] == kind]
            cells.append(f"{sum(not row['torn'] for row in pairs)} of {len(pairs)}" if pairs else "")
        lines.append(f"| atomic pairs: {title} | {' | '.join(cells)} |")
    points = [sum(row["points"] for row in rows if row["release"] == release) for release in releases]
    lines += [f"| interruptions | {' | '.join(map(str, points))} |", ""]
    lines += [
        f"| clause | target | interrupted | by | {' | '.join(releases)} |",
        f"|---|---|---|---|{'--:|' * len(releases)}",
    ]
    torn: dict[tuple[str, str, str, str], dict[str, int]] = {}
    for row in rows:
        if row["torn"]:
            first, others = row["names"]
            counts = torn.setdefault((row["clause"] or NEW, row["machine"], first, others), {})
            counts[row["release"]] = counts.get(row["release"], 0) + row["torn"]
    for (clause, kind, first, others), counts in sorted(torn.items()):
        cells = [str(counts.get(release, "")) for release in releases]
        lines.append(f"| {clause} | {_TARGETS[kind]} | `{first}` | `{others}` | {' | '.join(cells)} |")
    lines += _places(rows, releases)
    lines += ["", *(f"- {clause}: {clauses[clause].title}." for clause in sorted({key[0] for key in torn} - {NEW}))]
    if any(row["machine"] in CACHES for row in rows):
        lines += _NOTES
    return "\n".join(lines) + "\n"


_NOTES: Final = (
    "",
    "KAFKA-15481 is fixed in 3.6.1. After `conformance kafka lock 3.6.0`, the command finds it with `--kafka 3.6.0",
    "--machine removed`: a fetch of the indexes again fails if the late notification of the removal renames its files.",
    "KAFKA-19971 is IV-7a and IV-7b in a cache without space: an evicted entry fails lookups that have obtained it.",
)


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


def _places(rows: Sequence[Json], releases: Sequence[str]) -> list[str]:
    """Return the table of reads from a log by the place that is read; none if no log was searched.

    Names of reads end with the place, such as ``Below`` the high watermark.

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
