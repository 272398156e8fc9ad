"""Markdown page about the atomicity of operations in each release."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from conformance.clauses import load_clauses
from conformance.experiments.interleave.scenarios import CACHES
from conformance.experiments.interleave.through_log import places

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
    """Return the page: how many pairs are atomic, then each pair that is not, with one column per release.

    Args:
        rows: JSON results of the pairs; ``torn`` is the number of points at which a pair is not atomic.
        command: command that produced them.
    """
    clauses = load_clauses()
    releases = list(dict.fromkeys(row["release"] for row in rows))
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
    lines += places(rows, releases)
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
