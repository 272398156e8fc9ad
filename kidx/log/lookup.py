"""What a log answers when it is asked for an offset by time (``fetchOffsetByTimestamp``; clauses LO)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Final, Protocol

from kidx.producers.cut_records import largest_record
from kidx.records.record import NO_TIMESTAMP
from kidx.segment import TimestampAndOffset

if TYPE_CHECKING:
    from kidx.dialect import Dialect
    from kidx.index.entries import TimestampOffset
    from kidx.index.offset import OffsetIndex
    from kidx.log.epochs import LeaderEpochs
    from kidx.records import RecordBatch


class ReadableSegment(Protocol):
    """What a search needs of a segment; see :class:`kidx.segment.reading.SegmentReader`."""

    @property
    def largest_timestamp(self) -> int:
        """The largest timestamp; without one, when the log was last written (SEG-53)."""

    @property
    def max_timestamp_so_far(self) -> TimestampOffset:
        """The largest timestamp and its offset (SEG-6)."""

    @property
    def offset_index(self) -> OffsetIndex:
        """The offset index."""

    @property
    def max_record_body_size(self) -> int:
        """Bytes that one record may have, in 4.4."""

    def batches(self, start: int = 0) -> Iterator[RecordBatch]:
        """The batches from a byte position on."""

    def find_offset_by_timestamp(self, timestamp: int, starting_offset: int) -> TimestampAndOffset | None:
        """The first record with that timestamp or a later one (SEG-52)."""


class ReadableLog(Protocol):
    """What a search needs of a log; the attributes are those of :class:`~kidx.log.UnifiedLog`."""

    @property
    def dialect(self) -> Dialect:
        """The rules of a release."""

    @property
    def epochs(self) -> LeaderEpochs:
        """The leader epochs."""

    @property
    def segments(self) -> Iterable[ReadableSegment]:
        """The segments."""

    @property
    def start_offset(self) -> int:
        """The first offset that a client may see."""

    @property
    def search_start(self) -> int:
        """Where 3.5 lets a search begin."""

    @property
    def end_offset(self) -> int:
        """The offset of the next record."""


LATEST: Final = -1
EARLIEST: Final = -2
MAX_TIMESTAMP: Final = -3
"""From 3.0."""
EARLIEST_LOCAL: Final = -4
"""From 3.5: the first offset on this broker, which without tiered storage is the first one."""
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
"""The special targets by the names that Kafka's command line tools give them."""

_NOWHERE: Final = TimestampAndOffset(NO_TIMESTAMP, -1, -1)


def knows(dialect: Dialect, target: int) -> bool:
    """Whether a release has a special target of that number; where not, it is an ordinary timestamp (LO-15)."""
    return EARLIEST <= target < 0 or (target < 0 and dialect.lowest_target <= target)


def fetch_offset(log: ReadableLog, target: int) -> TimestampAndOffset | None:
    """The log's own answer, without tiered storage; see :meth:`UnifiedLog.fetch_offset_by_timestamp`."""
    if not knows(log.dialect, target):
        return _search(log, target)
    if target == LATEST:
        return TimestampAndOffset(NO_TIMESTAMP, log.end_offset, log.epochs.latest_epoch)
    if target in (EARLIEST, EARLIEST_LOCAL):
        first = log.epochs.earliest_entry
        epoch = first.epoch if first is not None and first.start_offset <= log.start_offset else None
        return TimestampAndOffset(NO_TIMESTAMP, log.start_offset, epoch)
    if target == MAX_TIMESTAMP:
        return _largest_remembered(log) if log.dialect.max_lookup == "M1" else _largest_read(log)
    return _NOWHERE


def _search(log: ReadableLog, timestamp: int) -> TimestampAndOffset | None:
    """LO-23: looks into one segment only, the first whose largest timestamp is not before the target."""
    start = log.start_offset
    if log.search_start != start and log.dialect.search_start_survives_truncation:
        start = log.search_start
    for segment in log.segments:
        if segment.largest_timestamp >= timestamp:
            return segment.find_offset_by_timestamp(timestamp, start)
    return None


def _largest_remembered(log: ReadableLog) -> TimestampAndOffset:
    """LO-9 (M1): what the segment remembers of its largest timestamp, and the newest epoch, whichever it was."""
    latest = max(log.segments, key=lambda segment: segment.max_timestamp_so_far.timestamp)
    timestamp, offset = latest.max_timestamp_so_far
    return TimestampAndOffset(timestamp, offset, log.epochs.latest_epoch)


def _largest_read(log: ReadableLog) -> TimestampAndOffset | None:
    """LO-10 (M2): the batch is looked up and read again."""
    latest = max(log.segments, key=lambda segment: segment.max_timestamp_so_far.timestamp)
    timestamp, offset = latest.max_timestamp_so_far
    position = latest.offset_index.lookup(offset).position
    for batch in latest.batches(position):
        if batch.max_timestamp == timestamp:
            if batch.magic == 0:
                return None
            # Unlike a search it leaves what is behind the answer compressed, in every release.
            streaming = batch.magic > 1 or log.dialect.streams_timestamp_search
            stamps = batch.stamps(largest_record(latest.max_record_body_size, log.dialect), streaming=streaming)
            found = next((record.offset for record in stamps if record.timestamp == timestamp), None)
            if found is None:
                return None
            epoch = batch.partition_leader_epoch
            return TimestampAndOffset(timestamp, found, epoch if epoch >= 0 else None)
    return None
