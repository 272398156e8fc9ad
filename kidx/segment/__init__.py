"""One segment of a log: the ``.log`` file and its indexes (clauses SEG).

::

    with LogSegment.open("/data/orders-0", 0, SegmentConfig(index_interval_bytes=4096), dialect="3.9.2") as segment:
        segment.append(build_batch([(1_700_000_000_000, b"key", b"value")]))
        segment.find_offset_by_timestamp(1_700_000_000_000)
"""

from __future__ import annotations

from kidx.producers import (
    CompletedTxn,
    CoordinatorFencedError,
    InvalidTxnStateError,
    MissingBytesError,
    ProducerFencedError,
    ProducerState,
    ShortMarkerError,
)
from kidx.segment.append_info import AppendInfo, follower_append_info, leader_append_info
from kidx.segment.config import Clock, RollParams, SegmentConfig, system_clock
from kidx.segment.file_records import FetchDataInfo, FileRecords, LogOffsetPosition, TimestampAndOffset
from kidx.segment.files import SegmentFiles, file_name
from kidx.segment.segment import EpochCache, LogSegment, SegmentOffsetOverflowError

__all__ = [
    "AppendInfo",
    "Clock",
    "CompletedTxn",
    "CoordinatorFencedError",
    "EpochCache",
    "FetchDataInfo",
    "FileRecords",
    "InvalidTxnStateError",
    "LogOffsetPosition",
    "LogSegment",
    "MissingBytesError",
    "ProducerFencedError",
    "ProducerState",
    "RollParams",
    "SegmentConfig",
    "SegmentFiles",
    "SegmentOffsetOverflowError",
    "ShortMarkerError",
    "TimestampAndOffset",
    "file_name",
    "follower_append_info",
    "leader_append_info",
    "system_clock",
]
