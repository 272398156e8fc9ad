"""Log of a partition: what Kafka's ``UnifiedLog`` does with its segments, leader epochs and producers.

::

    with UnifiedLog("/data/orders-0", LogConfig(segment_bytes=1 << 20), dialect="3.9.2") as log:
        log.append_as_leader(build_batch([(1_700_000_000_000, b"key", b"value")]), leader_epoch=0)
        log.fetch_offset_by_timestamp(1_700_000_000_000)
"""

from __future__ import annotations

from kidx.log.config import LogConfig
from kidx.log.epochs import EpochEntry, LeaderEpochCache, read_epochs
from kidx.log.errors import (
    InvalidTimestampError,
    LogError,
    OffsetNotAvailableError,
    OffsetOutOfRangeError,
    OffsetsOutOfOrderError,
    RecordTooLargeError,
    RecordValidationError,
    SkippedRecordError,
    UnexpectedAppendOffsetError,
    UnsupportedTargetError,
)
from kidx.log.lookup import TARGETS, IsolationLevel, list_offset
from kidx.log.results import AppendResult
from kidx.log.unified_log import UnifiedLog

__all__ = [
    "TARGETS",
    "AppendResult",
    "EpochEntry",
    "InvalidTimestampError",
    "IsolationLevel",
    "LeaderEpochCache",
    "LogConfig",
    "LogError",
    "OffsetNotAvailableError",
    "OffsetOutOfRangeError",
    "OffsetsOutOfOrderError",
    "RecordTooLargeError",
    "RecordValidationError",
    "SkippedRecordError",
    "UnexpectedAppendOffsetError",
    "UnifiedLog",
    "UnsupportedTargetError",
    "list_offset",
    "read_epochs",
]
