"""May the broker be started: what a release makes of log directories when it starts, predicted without writing to them.

The checks follow ``LogManager`` and what KRaft loads; what becomes of a log is simulated by the loader and the recovery
of the release (:class:`kidx.log.UnifiedLog`) over a view of its files.
"""

from __future__ import annotations

from kidx.startup.answers import Blocker, PartitionStart, SegmentChange, Start
from kidx.startup.prediction import predict

__all__ = ["Blocker", "PartitionStart", "SegmentChange", "Start", "predict"]
