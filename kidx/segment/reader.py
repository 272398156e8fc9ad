"""Reader of a segment: by offset, by timestamp, and its cached properties (clauses SEG)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from kidx.errors import InvalidArgumentError
from kidx.index.entries import OffsetPosition, TimestampOffset, TxnIndexSearchResult
from kidx.java_numbers import INT_MAX, to_int, to_long
from kidx.segment.files import SegmentFiles
from kidx.segment.max_timestamp import MaxTimestamp
from kidx.segment.results import FetchDataInfo, LogOffsetPosition, TimestampAndOffset

if TYPE_CHECKING:
    from kidx.dialect import Dialect
    from kidx.index.lazy import LazyIndex
    from kidx.index.offset import OffsetIndex
    from kidx.index.time import TimeIndex
    from kidx.index.transaction import TransactionIndex
    from kidx.records import RecordBatch
    from kidx.segment.file_records import FileRecords


class SegmentReader(SegmentFiles):
    """Segment with the operations that only read it.

    Args:
        log, lazy_offset_index, lazy_time_index, txn_index, base_offset, dialect: see :class:`SegmentFiles`.
        max_record_body_size: maximum size in bytes of a record in a search by timestamp, in 4.4.

    Attributes:
        maximum: the largest timestamp and its offset (SEG-6).
    """

    def __init__(
        self,
        log: FileRecords,
        lazy_offset_index: LazyIndex[OffsetIndex],
        lazy_time_index: LazyIndex[TimeIndex],
        txn_index: TransactionIndex,
        base_offset: int,
        *,
        dialect: Dialect,
        max_record_body_size: int = INT_MAX - 8,
    ) -> None:
        super().__init__(log, lazy_offset_index, lazy_time_index, txn_index, base_offset, dialect=dialect)
        self.max_record_body_size = max_record_body_size
        self.maximum = MaxTimestamp(lazy_time_index.get, dialect)

    def can_convert_to_relative_offset(self, offset: int) -> bool:
        """Return True if the indexes can hold ``offset`` (AI-8). Opens the offset index."""
        return self.offset_index.can_append_offset(offset)

    def batches(self, start: int = 0, end: int | None = None) -> Iterator[RecordBatch]:
        """Return the batches from byte ``start`` on; see :meth:`FileRecords.batches`."""
        return self.log.batches(start, end)

    def translate_offset(self, offset: int, starting_file_position: int = 0) -> LogOffsetPosition | None:
        """Return the batch that contains ``offset``, or else the first batch after it, or None (SEG-50).

        Raises:
            KidxError, OSError: the index or the log cannot be read.
        """
        start = max(self.offset_index.lookup(offset).position, starting_file_position)
        return self.log.search_for_offset(offset, start)

    def read(
        self, start_offset: int, max_size: int, max_position: int | None = None, min_one_message: bool = False
    ) -> FetchDataInfo | None:
        """Return the result of a fetch from ``start_offset``, or None past the end of the log.

        Args:
            start_offset: offset of the first requested record.
            max_size: maximum number of bytes.
            max_position: byte position to stop at, normally the position of the high watermark; by default the log end.
            min_one_message: True to send the first batch even if it is larger than ``max_size``.

        Raises:
            InvalidArgumentError: ``max_size`` is negative, or ``max_position`` lies before the batch.
            KidxError, OSError: the index or the log cannot be read.
        """
        if max_size < 0:
            raise InvalidArgumentError(f"Invalid max size {max_size} for log read from segment {self.log}")
        found = self.translate_offset(start_offset)
        if found is None:
            return None
        message_offset = start_offset
        if found.offset != start_offset and self.dialect.translates_to_base_offset:
            message_offset = found.offset
        adjusted = max(max_size, found.size) if min_one_message else max_size
        if adjusted == 0:
            return FetchDataInfo(message_offset, found.position, 0, first_entry_incomplete=False)
        limit = self.size if max_position is None else max_position
        requested = min(to_int(limit - found.position), adjusted)
        available = self.log.available_bytes(found.position, requested)
        return FetchDataInfo(message_offset, found.position, available, adjusted < found.size)

    def read_next_offset(self) -> int:
        """Return the offset after the last batch, or the base offset of an empty log (SEG-40).

        Raises:
            KidxError, OSError: the index or the log cannot be read.
        """
        data = self.read(self.offset_index.last_offset, self.size)
        last = None
        if data is not None:
            for last in self.log.batches(data.position, data.position + data.size):  # noqa: B007
                pass
        return self.base_offset if last is None else last.next_offset

    @property
    def has_overflow(self) -> bool:
        """True if the last offset in the log is out of the indexes' range."""
        following = self.read_next_offset()
        return following > self.base_offset and not self.can_convert_to_relative_offset(to_long(following - 1))

    def fetch_upper_bound_offset(self, start: OffsetPosition, fetch_size: int) -> int | None:
        """Return the offset of the first index entry at or past ``start.position + fetch_size``, or None."""
        found = self.offset_index.fetch_upper_bound_offset(start, fetch_size)
        return None if found is None else found.offset

    def collect_aborted_txns(self, fetch_offset: int, upper_bound_offset: int) -> TxnIndexSearchResult:
        """Return the transactions that a fetch must hide; see :meth:`TransactionIndex.collect_aborted_txns`."""
        return self.txn_index.collect_aborted_txns(fetch_offset, upper_bound_offset)

    def find_offset_by_timestamp(self, timestamp: int, starting_offset: int | None = None) -> TimestampAndOffset | None:
        """Return the first record with a timestamp ≥ ``timestamp`` and an offset ≥ ``starting_offset`` (SEG-52).

        Args:
            timestamp: milliseconds.
            starting_offset: minimum offset; by default the base offset.

        Raises:
            KidxError, OSError: an index or the log cannot be read.
        """
        start = self.base_offset if starting_offset is None else starting_offset
        entry = self.time_index.lookup(timestamp)
        position = self.offset_index.lookup(max(entry.offset, start)).position
        return self.log.search_for_timestamp(timestamp, position, start, self.max_record_body_size)

    @property
    def max_timestamp_so_far(self) -> TimestampOffset:
        """Largest timestamp and the offset that belongs to it, or ``(-1, base)`` (SEG-6)."""
        return TimestampOffset(self.maximum.timestamp, self.maximum.offset)

    @property
    def largest_record_timestamp(self) -> int | None:
        """Largest timestamp in milliseconds, or None (SEG-53)."""
        timestamp = self.maximum.timestamp
        return timestamp if timestamp >= 0 else None

    @property
    def largest_timestamp(self) -> int:
        """Largest timestamp, or else the time of the last write to the log, in milliseconds (SEG-53)."""
        timestamp = self.maximum.timestamp
        return timestamp if timestamp >= 0 else self.last_modified
