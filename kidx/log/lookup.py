"""Lookup of an offset by time, in a log and by the leader of a partition (``ListOffsets``; clauses LO)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal, Protocol

from kidx.log.errors import OffsetNotAvailableError, UnsupportedTargetError
from kidx.producers.append_info import largest_record
from kidx.records.record import NO_TIMESTAMP
from kidx.segment import TimestampAndOffset

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from kidx.dialect import Dialect
    from kidx.index.offset import OffsetIndex
    from kidx.index.time import TimestampOffset
    from kidx.log.epochs import LeaderEpochs
    from kidx.records import RecordBatch


class ReadableSegment(Protocol):
    """Operations of a segment that a search needs; see :class:`kidx.segment.segment.SegmentReader`."""

    @property
    def largest_timestamp(self) -> int:
        """Largest timestamp, or else the time of the last write to the log (SEG-53)."""

    @property
    def max_timestamp_so_far(self) -> TimestampOffset:
        """Largest timestamp and its offset (SEG-6)."""

    @property
    def offset_index(self) -> OffsetIndex:
        """The offset index."""

    @property
    def max_record_body_size(self) -> int:
        """Maximum size in bytes of a record, in 4.4."""

    def batches(self, start: int = 0) -> Iterator[RecordBatch]:
        """Return the batches from a byte position on."""

    def find_offset_by_timestamp(self, timestamp: int, starting_offset: int) -> TimestampAndOffset | None:
        """Return the first record with that timestamp or a later one (SEG-52)."""


class ReadableLog(Protocol):
    """Operations of a log that a search needs; its attributes are described in :class:`~kidx.log.UnifiedLog`."""

    @property
    def dialect(self) -> Dialect:
        """Rules of a release."""

    @property
    def epochs(self) -> LeaderEpochs:
        """Leader epochs."""

    @property
    def segments(self) -> Iterable[ReadableSegment]:
        """Segments of the log."""

    @property
    def start_offset(self) -> int:
        """First offset that is visible to a client."""

    @property
    def search_start(self) -> int:
        """Offset at which a search by time begins in 3.5."""

    @property
    def end_offset(self) -> int:
        """Offset of the next record."""


class LeaderLog(ReadableLog, Protocol):
    """Operations of a log that its leader needs for ``ListOffsets``; see :class:`~kidx.log.UnifiedLog`."""

    @property
    def high_watermark(self) -> int:
        """Offset below which everything is on all replicas."""

    @property
    def last_stable_offset(self) -> int:
        """Offset below which no transaction is open."""

    def fetch_offset_by_timestamp(self, target: int) -> TimestampAndOffset | None:
        """Return the result of the log."""


IsolationLevel = Literal["read_uncommitted", "read_committed"]

LATEST: Final = -1
EARLIEST: Final = -2
MAX_TIMESTAMP: Final = -3
"""From 3.0: the record with the largest timestamp."""
EARLIEST_LOCAL: Final = -4
"""From 3.5: the first offset on this broker; without tiered storage, the same as ``EARLIEST``."""
LATEST_TIERED: Final = -5
"""From 3.9: the last offset in remote storage."""
EARLIEST_PENDING_UPLOAD: Final = -6
"""From 4.2: the first offset that is not in remote storage yet."""

TARGETS: Final = {
    "latest": LATEST,
    "earliest": EARLIEST,
    "max-timestamp": MAX_TIMESTAMP,
    "earliest-local": EARLIEST_LOCAL,
    "latest-tiered": LATEST_TIERED,
    "earliest-pending-upload": EARLIEST_PENDING_UPLOAD,
}
"""Special targets by their names in Kafka's command line tools."""

_NOWHERE: Final = TimestampAndOffset(NO_TIMESTAMP, -1, -1)


def supports_target(dialect: Dialect, target: int) -> bool:
    """Return True if a release has this special target; otherwise the number is an ordinary timestamp (LO-15)."""
    return EARLIEST <= target < 0 or (target < 0 and dialect.lowest_target <= target)


def fetch_offset(log: ReadableLog, target: int) -> TimestampAndOffset | None:
    """Return the result of the local log; see :meth:`UnifiedLog.fetch_offset_by_timestamp`."""
    if not supports_target(log.dialect, target):
        return _search(log, target)
    if target == LATEST:
        return TimestampAndOffset(NO_TIMESTAMP, log.end_offset, log.epochs.latest_epoch)
    if target in (EARLIEST, EARLIEST_LOCAL):
        first = log.epochs.earliest_entry
        epoch = first.epoch if first is not None and first.start_offset <= log.start_offset else None
        return TimestampAndOffset(NO_TIMESTAMP, log.start_offset, epoch)
    if target == MAX_TIMESTAMP:
        return _max_timestamp_cached(log) if log.dialect.max_lookup == "remembered" else _max_timestamp_scanned(log)
    return _NOWHERE


def _search(log: ReadableLog, timestamp: int) -> TimestampAndOffset | None:
    """Search only the first segment whose largest timestamp is not before the target (LO-23)."""
    start = log.start_offset
    if log.search_start != start and log.dialect.search_start_survives_truncation:
        start = log.search_start
    return find_in_segments(log, timestamp, start)


def find_in_segments(log: ReadableLog, timestamp: int, start: int) -> TimestampAndOffset | None:
    """Return the first record from ``start`` on with that timestamp or later, in the first late segment."""
    for segment in log.segments:
        if segment.largest_timestamp >= timestamp:
            return segment.find_offset_by_timestamp(timestamp, start)
    return None


def _max_timestamp_cached(log: ReadableLog) -> TimestampAndOffset:
    """Return the timestamp and offset that a segment caches, with the newest epoch of the log (LO-9)."""
    latest = max(log.segments, key=lambda segment: segment.max_timestamp_so_far.timestamp)
    timestamp, offset = latest.max_timestamp_so_far
    return TimestampAndOffset(timestamp, offset, log.epochs.latest_epoch)


def _max_timestamp_scanned(log: ReadableLog) -> TimestampAndOffset | None:
    """Return the largest timestamp with its offset and epoch, read again from the batch (LO-10)."""
    latest = max(log.segments, key=lambda segment: segment.max_timestamp_so_far.timestamp)
    timestamp, offset = latest.max_timestamp_so_far
    position = latest.offset_index.lookup(offset).position
    for batch in latest.batches(position):
        if batch.max_timestamp == timestamp:
            if batch.magic == 0:
                return None
            # In contrast to a search, no release decompresses the records after the result.
            streaming = batch.magic > 1 or log.dialect.limits_decompressed_size
            records = batch.offset_timestamps(
                largest_record(latest.max_record_body_size, log.dialect), streaming=streaming
            )
            found = next((record.offset for record in records if record.timestamp == timestamp), None)
            if found is None:
                return None
            epoch = batch.partition_leader_epoch
            return TimestampAndOffset(timestamp, found, epoch if epoch >= 0 else None)
    return None


def list_offset(
    log: LeaderLog,
    target: int,
    *,
    isolation_level: IsolationLevel | None = "read_uncommitted",
    leader_epoch: int,
    epoch_start_offset: int | None = None,
) -> TimestampAndOffset | None:
    """Return a partition leader's result of ``ListOffsets``; None is "unknown" (-1 in all three fields on the wire).

    Args:
        log: the log with its high watermark set.
        target: a timestamp in milliseconds, or one of the special targets.
        isolation_level: isolation level of a consumer; None for a replica or a debugging client, which may see
            everything.
        epoch_start_offset: start offset of this leader's epoch; None to skip the check.

    Raises:
        OffsetNotAvailableError: the high watermark has not reached this leader's epoch yet, and the result would depend
            on it (a client below version 5 of the request gets LEADER_NOT_AVAILABLE).
        UnsupportedTargetError: 3.9 and later, a negative target that the release does not support (LO-15).
        KidxError, OSError: as :meth:`UnifiedLog.fetch_offset_by_timestamp`.
    """
    if target < 0 and log.dialect.rejects_unknown_targets and not supports_target(log.dialect, target):
        raise UnsupportedTargetError(f"Kafka {log.dialect.release} does not support target {target}")
    last_fetchable = _last_fetchable(log, isolation_level)
    lags = isolation_level is not None and epoch_start_offset is not None and epoch_start_offset > log.high_watermark
    if target == LATEST:
        if lags:
            raise _not_available(log, epoch_start_offset)
        return TimestampAndOffset(NO_TIMESTAMP, last_fetchable, leader_epoch)
    result = log.fetch_offset_by_timestamp(target)
    always = target == EARLIEST or (target == EARLIEST_LOCAL and supports_target(log.dialect, target))
    if always or (result is not None and result.offset < last_fetchable):
        return result
    if lags:
        raise _not_available(log, epoch_start_offset)
    return None


def _last_fetchable(log: LeaderLog, isolation_level: IsolationLevel | None) -> int:
    if isolation_level is None:
        return log.end_offset
    return log.last_stable_offset if isolation_level == "read_committed" else log.high_watermark


def _not_available(log: LeaderLog, epoch_start_offset: int | None) -> OffsetNotAvailableError:
    return OffsetNotAvailableError(
        f"the high watermark {log.high_watermark} is before the start of the leader's epoch, {epoch_start_offset}"
    )
