"""Numbers of Spark tasks, and measured costs per segment, for a fleet of any size.

The numbers are explained in ``docs/fleet.md``, and ``tests/bench/fleet.py`` measures the costs. All of them grow
linearly with the number of segments, except the bytes to read. The driver stores nothing per segment.
"""

from __future__ import annotations

from typing import Final

SMALLEST: Final = 2 << 30
"""Approximate number of bytes per task: two seconds of work, so that the start of the task is negligible."""
_LEAST: Final = 256 << 20
"""Minimum number of bytes per task."""
_FEW: Final = 8
"""Number of tasks of a small fleet. They are smaller than :data:`SMALLEST`, so that all workers have work."""
MAX_TASKS: Final = 100_000
"""Approximate maximum of tasks that a driver can track. The tasks of a petabyte are larger instead."""

_SETTLED_AT_ONCE: Final = 2500
"""Number of segments whose verdicts one task combines into verdicts on partitions."""

# Measured with 10,000 segments of three files each, a hundred in a partition.
VERDICT_BYTES: Final = 150
"""Bytes of a verdict on a segment with one epoch and no transactions, and of its row in the listing."""


def tasks_of(cost: int) -> int:
    """Return the number of tasks that share the work of a run.

    Args:
        cost: bytes of logs, and :data:`SEGMENT_COST` for each segment.
    """
    return max(1, min(MAX_TASKS, max(-(-cost // SMALLEST), min(_FEW, cost // _LEAST))))


def settling_tasks(segments: int, cost: int, *, compared: bool) -> int:
    """Return the number of tasks that combine the verdicts on segments into verdicts on partitions.

    Args:
        cost: cost as in :func:`tasks_of`.
        compared: True if the logs of replicas are read once more to compare them.
    """
    return max(-(-segments // _SETTLED_AT_ONCE), tasks_of(cost) if compared else 1)
