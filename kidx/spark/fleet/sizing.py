"""What a fleet of some size needs: the model behind the README's scaling section.

``tests/bench/fleet.py`` prints it beside what it measures. Everything is linear in segments but the bytes that have to
be read; nothing that the driver or a worker holds grows with the size of a segment.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from kidx.spark.fleet.work import LARGEST, MOST, SEGMENT_COST

# Measured with 10,000 segments of four files each in 100 partitions.
LISTED: Final = 21e-6
"""Seconds to list a segment, on a local disk; a remote one has its own round trips, one a directory."""
HELD: Final = 800
"""Bytes that a driver holds of a segment between listing and handing out."""
KEPT: Final = 424
"""Bytes that a task leaves of a segment with one epoch and no transactions."""
ROWS: Final = 51
"""Bytes of its rows in the tables, without findings."""
_TASKS_A_CORE: Final = 4


@dataclass(frozen=True)
class Size:
    """What a run needs.

    Attributes:
        tasks: of the verification; there is no shuffle between them and the tables.
        task_bytes: of logs and indexes that one of them reads, about.
        listing: seconds.
        driver_bytes: held at once.
        kept_bytes: on the shared directory while the run lasts.
        table_bytes: for good, without findings.
    """

    tasks: int
    task_bytes: int
    listing: float
    driver_bytes: int
    kept_bytes: int
    table_bytes: int


def size_of(segments: int, total_bytes: int, cores: int) -> Size:
    """The needs of a fleet.

    Args:
        segments: how many.
        total_bytes: of their logs.
        cores: of the cluster.
    """
    cost = total_bytes + segments * SEGMENT_COST
    target = max(min(LARGEST, cost // (_TASKS_A_CORE * cores)), cost // MOST, SEGMENT_COST)
    tasks = min(max(1, -(-cost // target)), segments)
    return Size(tasks, total_bytes // tasks, segments * LISTED, segments * HELD, segments * KEPT, segments * ROWS)
