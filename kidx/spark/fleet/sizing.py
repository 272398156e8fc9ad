"""Resources for a fleet of some size: the model of the README's scaling section.

``tests/bench/fleet.py`` prints the model and its measurements. Everything is linear in the number of segments, except
the bytes to read; the driver holds nothing of a segment.
"""

from __future__ import annotations

from typing import Final

SMALLEST: Final = 2 << 30
"""Approximate number of bytes per task: two seconds of work, so that the start of the task is negligible."""
_LEAST: Final = 256 << 20
_FEW: Final = 8
"""Number of tasks for a small fleet, whose tasks are smaller so that its work is distributed."""
MOST: Final = 100_000
"""Approximate maximum of tasks that a driver can track. The tasks of a petabyte are larger instead."""

_SETTLED_AT_ONCE: Final = 2500

# Measured with segments of three files each, a hundred in a partition: 1,000 of them, and 10,000 for KEPT.
LISTED: Final = 105e-6
"""Seconds to list a segment on a local disk, in one task per root; a store needs a round trip per directory."""
KEPT: Final = 150
"""Bytes of a verdict on a segment with one epoch and no transactions, and of its row in the listing."""
ROWS: Final = 123
"""Bytes of the rows of a segment in the tables, without findings."""


def tasks_of(cost: int) -> int:
    """Return the number of tasks that share the work of a run.

    Args:
        cost: bytes of logs, and :data:`SEGMENT_COST` for each segment.
    """
    return max(1, min(MOST, max(-(-cost // SMALLEST), min(_FEW, cost // _LEAST))))


def settling_tasks(segments: int, cost: int, *, compared: bool) -> int:
    """Return the number of tasks that settle partitions.

    Args:
        segments: number of segments.
        cost: cost as in :func:`tasks_of`.
        compared: True if the logs of replicas are read once more to compare them.
    """
    return max(-(-segments // _SETTLED_AT_ONCE), tasks_of(cost) if compared else 1)
