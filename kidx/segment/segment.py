"""Segment of a log: its appends, rolls, recoveries, truncations and reads in every release (clauses SEG)."""

from __future__ import annotations

import contextlib
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Final, Protocol, Self

from kidx.dialect import Dialect, dialect_of
from kidx.errors import InvalidArgumentError, KidxError
from kidx.index.time import TimestampOffset
from kidx.index.transaction import AbortedTxn, TxnIndexSearchResult
from kidx.java_values import INT_MAX, LONG_MAX, LONG_MIN, to_int, to_long
from kidx.producers import ProducerState
from kidx.records import CorruptRecordError, InvalidRecordError, iter_memory_batches
from kidx.records.record import NO_TIMESTAMP
from kidx.segment.append_info import AppendInfo, follower_append_info
from kidx.segment.config import Clock, RollParams, SegmentConfig, system_clock
from kidx.segment.file_records import FetchDataInfo, LogOffsetPosition, TimestampAndOffset
from kidx.segment.files import LOG_SUFFIX, SegmentFiles, file_name

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Iterator

    from kidx.index.lazy import LazyIndex
    from kidx.index.offset import OffsetIndex, OffsetPosition
    from kidx.index.time import TimeIndex
    from kidx.index.transaction import TransactionIndex
    from kidx.producers import CompletedTxn
    from kidx.records import RecordBatch
    from kidx.segment.file_records import FileRecords


class SegmentOffsetOverflowError(KidxError, OverflowError):
    """Offset that is not within 2**31 of the segment's base (``LogSegmentOffsetOverflowException``; SEG-2)."""

    kind = "offset_overflow"


_CHUNK: Final = 1 << 20
"""Number of bytes that ``append_from_file`` copies at a time, unless one batch is larger."""

_UNKNOWN: Final = TimestampOffset(NO_TIMESTAMP, -1)


class MaxTimestamp:
    """Largest timestamp and its offset, read from the last entry of the time index on first use.

    Args:
        time_index: function that opens the time index.
        dialect: rules of a release. Up to 2.8, timestamp and offset are read separately. In 3.0–3.6, a pair (-1, -1),
            which only a corrupt index contains, counts as not read.
    """

    __slots__ = ("_dialect", "_offset", "_time_index", "_timestamp")

    def __init__(self, time_index: Callable[[], TimeIndex], dialect: Dialect) -> None:
        self._time_index = time_index
        self._dialect = dialect
        self._timestamp: int | None = None
        self._offset: int | None = None

    @property
    def is_known(self) -> bool:
        """True if the pair, or one half of it, has been read or set."""
        return self._timestamp is not None or self._offset is not None

    @property
    def timestamp(self) -> int:
        """Timestamp in milliseconds; -1 if the time index is empty. Opens the time index."""
        if self._timestamp is not None:
            return self._timestamp
        last = self._time_index().last_entry
        if self._dialect.max_timestamp_in_two_fields:
            self._timestamp = last.timestamp
        else:
            self.set(last)
        return last.timestamp

    @property
    def offset(self) -> int:
        """Offset that belongs to the timestamp; the base offset if the time index is empty. Opens the time index."""
        if self._offset is not None:
            return self._offset
        last = self._time_index().last_entry
        if self._dialect.max_timestamp_in_two_fields:
            self._offset = last.offset
        else:
            self.set(last)
        return last.offset

    @property
    def known_timestamp(self) -> int:
        """Timestamp if it has been read, otherwise -1. Opens nothing."""
        return NO_TIMESTAMP if self._timestamp is None else self._timestamp

    def cached(self) -> TimestampOffset | None:
        """Return the cached pair, or None while the timestamp is unknown; an unknown offset is read from the index."""
        if self._timestamp is None:
            return None
        offset = self._time_index().last_entry.offset if self._offset is None else self._offset
        return TimestampOffset(self._timestamp, offset)

    def set(self, entry: TimestampOffset) -> None:
        """Set both values."""
        if entry == _UNKNOWN and self._dialect.max_timestamp_may_look_unread:
            self._timestamp = self._offset = None
        else:
            self._timestamp, self._offset = entry

    def forget(self) -> None:
        """Reset as ``recover`` does: the pair is read again on the next use; up to 2.8, the timestamp becomes -1."""
        two_fields = self._dialect.max_timestamp_in_two_fields
        self._timestamp = NO_TIMESTAMP if two_fields else None
        if not two_fields:
            self._offset = None


class SegmentReader(SegmentFiles):
    """Segment with the operations that only read it.

    Attributes:
        max_record_body_size: maximum size in bytes of a record in a search by timestamp, in 4.4.
    """

    max_record_body_size = INT_MAX - 8

    @cached_property
    def maximum(self) -> MaxTimestamp:
        """Largest timestamp and its offset (SEG-6)."""
        return MaxTimestamp(self.lazy_time_index.get, self.dialect)

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


class EpochCache(Protocol):
    """Start offsets of the leader epochs of a log."""

    @property
    def latest_epoch(self) -> int | None:
        """Last epoch, or None."""

    def assign(self, epoch: int, start_offset: int) -> None:
        """Record the start of an epoch."""


class LogSegment(SegmentReader):
    """A ``.log`` file with its indexes. Create one with :meth:`open`; a context manager.

    Args:
        log, lazy_offset_index, lazy_time_index, txn_index, base_offset: see :class:`kidx.segment.files.SegmentFiles`.
        index_interval_bytes: bytes of log between two index entries.
        roll_jitter_ms: milliseconds by which it is rolled early.
        clock: the wall clock.
        dialect: a release such as ``"3.9.2"``, or a :class:`~kidx.dialect.Dialect`; the newest release by default.
        max_record_body_size: maximum size in bytes of a record in a search by timestamp, in 4.4.

    Attributes:
        created: time when it was opened or last emptied, in milliseconds.
        bytes_since_last_index_entry: bytes appended since the last entry was due; 0 after opening (SEG-7).
        rolling_based_timestamp: the first timestamp, from which its age is counted; None if not read yet (SEG-10).
    """

    def __init__(
        self,
        log: FileRecords,
        lazy_offset_index: LazyIndex[OffsetIndex],
        lazy_time_index: LazyIndex[TimeIndex],
        txn_index: TransactionIndex,
        base_offset: int,
        *,
        index_interval_bytes: int = 4096,
        roll_jitter_ms: int = 0,
        clock: Clock = system_clock,
        dialect: str | Dialect | None = None,
        max_record_body_size: int = INT_MAX - 8,
    ) -> None:
        super().__init__(log, lazy_offset_index, lazy_time_index, txn_index, base_offset, dialect=dialect_of(dialect))
        self.max_record_body_size = max_record_body_size
        self.index_interval_bytes = index_interval_bytes
        self.roll_jitter_ms = roll_jitter_ms
        self.clock = clock
        self.created = clock()
        self.bytes_since_last_index_entry = 0
        self.rolling_based_timestamp: int | None = None

    @classmethod
    def open(
        cls,
        directory: str | os.PathLike[str],
        base_offset: int,
        config: SegmentConfig | None = None,
        *,
        file_already_exists: bool = False,
        init_file_size: int = 0,
        preallocate: bool = False,
        file_suffix: str = "",
        clock: Clock = system_clock,
        dialect: str | Dialect | None = None,
    ) -> Self:
        """Open or create the segment; index files are created by their first use (SEG-1).

        Args:
            base_offset: base offset of the segment; the files are named after it.
            config: settings of the topic; Kafka's defaults if None.
            file_already_exists: True to keep the content of an existing log, even if ``preallocate`` is True.
            init_file_size: bytes to reserve for a new log if ``preallocate`` is True.
            preallocate: True to reserve them.
            file_suffix: suffix after the regular ones, e.g. ``".cleaned"``.
            clock: the wall clock in milliseconds.
            dialect: a release or a :class:`~kidx.dialect.Dialect`; the newest release by default.

        Raises:
            OSError: the log or an existing ``.txnindex`` cannot be opened.
        """
        config = config or SegmentConfig()
        rules = dialect_of(dialect)
        parent = Path(directory)

        def path(suffix: str) -> Path:
            return parent / (file_name(base_offset, suffix) + file_suffix)

        log = cls._open_log(
            path(LOG_SUFFIX),
            rules,
            file_already_exists=file_already_exists,
            init_file_size=init_file_size,
            preallocate=preallocate,
        )
        return cls(
            log,
            *cls._open_indexes(path, base_offset, config.segment_index_bytes, rules),
            base_offset,
            index_interval_bytes=config.index_interval_bytes,
            roll_jitter_ms=config.random_segment_jitter(),
            clock=clock,
            dialect=rules,
            max_record_body_size=config.max_record_body_size,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"LogSegment({str(self.log.path)!r}, size={self.size}, dialect={self.dialect.release!r})"

    def kafka_text(self) -> str:
        """Return the text that Kafka prints in errors. Up to 3.6 this opens, and so creates, the time index (SEG-2)."""
        style, modified = self.dialect.segment_text, self.last_modified
        if style == "plain":
            largest = f"largestRecordTimestamp={self.maximum.known_timestamp}"
        elif style == "option":
            timestamp = self.largest_record_timestamp
            largest = f"largestRecordTimestamp={'None' if timestamp is None else f'Some({timestamp})'}"
        else:
            largest = f"largestTime={self.largest_timestamp}"
        return f"LogSegment(baseOffset={self.base_offset}, size={self.size}, lastModifiedTime={modified}, {largest})"

    # -- appending ---------------------------------------------------------------------------------------------

    def append(
        self,
        records: bytes,
        *,
        largest_offset: int | None = None,
        largest_timestamp: int | None = None,
        shallow_offset: int | None = None,
    ) -> None:
        """Append batches whose offsets are final, and the index entries that are due (SEG-3, SEG-4).

        The three numbers are the fields of :class:`AppendInfo`; None is replaced by the value that a follower takes
        from the batches. In 3.9.1, 3.9.2 and from 4.0.1 on only the first is used.

        Args:
            records: any number of batches; without bytes the call has no effect.
            largest_offset: last offset of all; the only one that is checked against the base (SEG-2).
            largest_timestamp: milliseconds, or -1.
            shallow_offset: offset to index with that timestamp; :func:`leader_append_info` returns it for a leader.

        Raises:
            SegmentOffsetOverflowError: ``largest_offset`` is not within 2**31 of the base; nothing is written.
            InvalidArgumentError: the log would exceed 2**31 - 1 bytes; or, after the write, an index is full.
            InvalidOffsetError: The entry's offset, which is checked after the write, does not follow the last (SEG-12).
            KidxError: any other error of appending to an index, or of reading the records.
            OSError: a file is closed, or cannot be written.
        """
        if not records:
            return
        info = self._append_info(records, largest_offset, largest_timestamp, shallow_offset)
        position = self.size
        if position == 0 and not self.dialect.append_per_batch:
            self.rolling_based_timestamp = info.largest_timestamp
        self.ensure_offset_in_range(info.largest_offset)
        self.log.append(records)
        if not self.dialect.append_per_batch:
            self._index(info.largest_offset, position, info.largest_timestamp, info.shallow_offset, len(records))
            return
        for batch in iter_memory_batches(records):
            timestamp, last = batch.max_timestamp, batch.last_offset
            self._index(last, position, timestamp, last, batch.size_in_bytes)
            position += batch.size_in_bytes

    def _append_info(
        self, records: bytes, largest_offset: int | None, largest_timestamp: int | None, shallow_offset: int | None
    ) -> AppendInfo:
        requested = (
            (largest_offset,) if self.dialect.append_per_batch else (largest_offset, largest_timestamp, shallow_offset)
        )
        if None not in requested:
            return AppendInfo(largest_offset or 0, largest_timestamp or 0, shallow_offset or 0)
        found = follower_append_info(records)
        return AppendInfo(
            found.largest_offset if largest_offset is None else largest_offset,
            found.largest_timestamp if largest_timestamp is None else largest_timestamp,
            found.shallow_offset if shallow_offset is None else shallow_offset,
        )

    def _index(self, last_offset: int, position: int, timestamp: int, offset: int, size: int) -> None:
        """Add the entries that are due before these ``size`` bytes, which are in the log already."""
        if timestamp > self.maximum.timestamp:
            self.maximum.set(TimestampOffset(timestamp, offset))
        if self.bytes_since_last_index_entry > self.index_interval_bytes:
            self.offset_index.append(last_offset, position)
            self.time_index.maybe_append(self.maximum.timestamp, self.maximum.offset)
            self.bytes_since_last_index_entry = 0
        self.bytes_since_last_index_entry += size

    def ensure_offset_in_range(self, offset: int) -> None:
        """Raise an error if the indexes cannot hold the offset.

        Raises:
            SegmentOffsetOverflowError: ``offset`` is not within ``base .. base + 2**31 - 1``.
        """
        if not self.can_convert_to_relative_offset(offset):
            raise SegmentOffsetOverflowError(
                f"Detected offset overflow at offset {offset} in segment {self.kafka_text()}"
            )

    def append_from_file(self, records: FileRecords, start: int = 0) -> int:
        """Copy batches of another log from byte ``start``, in chunks, up to the first that overflows (SEG-13).

        Returns:
            The number of bytes appended.

        Raises:
            KidxError, OSError: as :meth:`append`.
        """
        position, capacity = start, _CHUNK
        while position < start + records.size_in_bytes:
            size, info = self._next_chunk(records, position, capacity)
            if size == 0:
                break
            capacity = max(capacity, size)
            chunk = b"".join(batch.to_bytes() for batch in records.batches(position, position + size))
            self.append(chunk, **info._asdict())
            position += size
        return position - start

    def _next_chunk(self, records: FileRecords, position: int, capacity: int) -> tuple[int, AppendInfo]:
        size = 0
        info = AppendInfo(LONG_MIN, LONG_MIN, LONG_MIN)
        for batch in records.batches(position):
            last = batch.last_offset
            fits = size == 0 or size + batch.size_in_bytes < capacity
            if not (self.can_convert_to_relative_offset(last) and fits):
                break
            timestamp = LONG_MIN if self.dialect.append_per_batch else batch.max_timestamp
            if timestamp > info.largest_timestamp:
                info = AppendInfo(last, timestamp, last)
            info = info._replace(largest_offset=last)
            size += batch.size_in_bytes
        return size, info

    def update_txn_index(self, completed: CompletedTxn, last_stable_offset: int) -> None:
        """Append a completed transaction if it was aborted (TX-15).

        Raises:
            InvalidArgumentError, OSError: as :meth:`TransactionIndex.append`.
        """
        if completed.is_aborted:
            first, last = completed.first_offset, completed.last_offset
            self.txn_index.append(AbortedTxn(completed.producer_id, first, last, last_stable_offset))

    # -- rolling and closing -----------------------------------------------------------------------------------

    def should_roll(self, params: RollParams) -> bool:
        """Return True if the log must start a new segment before the call that ``params`` describes (SEG-20).

        Opens the indexes unless size or time decide.

        Raises:
            KidxError: the first batch cannot be read, or an index cannot be opened.
        """
        waited = self.time_waited_for_roll(params.now, params.max_timestamp_in_messages)
        reached = waited > to_long(params.max_segment_ms - self.roll_jitter_ms)
        return (
            self.size > to_int(params.max_segment_bytes - params.messages_size)
            or (self.size > 0 and reached)
            or self.offset_index.is_full
            or self.time_index.is_full
            or not self.can_convert_to_relative_offset(params.max_offset_in_messages)
        )

    def _load_first_batch_timestamp(self) -> None:
        if self.rolling_based_timestamp is None:
            first = next(self.log.batches(), None)
            if first is not None:
                self.rolling_based_timestamp = first.max_timestamp

    def time_waited_for_roll(self, now: int, message_timestamp: int) -> int:
        """Return the milliseconds from the first batch's timestamp to ``message_timestamp`` (SEG-20).

        If the first batch has no timestamp, they are counted from the creation of the segment to ``now``.
        """
        self._load_first_batch_timestamp()
        first = self.rolling_based_timestamp
        return to_long(message_timestamp - first if first is not None and first >= 0 else now - self.created)

    @property
    def first_batch_timestamp(self) -> int:
        """Largest timestamp of the first batch, or 2**63 - 1 if the log has no timestamp (SEG-53).

        Up to 3.9.0 and in 4.0.0, it is the largest timestamp of the first append call.
        """
        self._load_first_batch_timestamp()
        first = self.rolling_based_timestamp
        return LONG_MAX if first is None or first < 0 else first

    def _append_last_time_entry(self) -> None:
        self.time_index.maybe_append(self.maximum.timestamp, self.maximum.offset, skip_full_check=True)

    def on_become_inactive_segment(self) -> None:
        """Append the last time entry and trim all files, as rolling does to the old segment (SEG-22).

        Raises:
            KidxError, OSError: as appending to the time index and trimming.
        """
        self._append_last_time_entry()
        self.offset_index.trim_to_valid_size()
        self.time_index.trim_to_valid_size()
        self.log.trim()

    def close(self) -> None:
        """Close all files; before 4.4, finish them as a roll would (SEG-24).

        Up to 2.5 both indexes are opened for this; later releases skip an index that was never opened. From 4.4.0 on
        no file is trimmed.

        Raises:
            OSError: a file cannot be closed (from 4.0.1 on; earlier releases ignore errors).
        """
        if (self.maximum.is_known or self.dialect.close_loads_indexes) and self.dialect.close_finishes_segment:
            with contextlib.suppress(KidxError, OSError):
                self._append_last_time_entry()
        self.close_files()

    # -- recovery and truncation ---------------------------------------------------------------------------------

    def recover(self, producer_state: ProducerState | None = None, epoch_cache: EpochCache | None = None) -> int:
        """Rebuild or create all three indexes, and truncate the log before the first invalid batch (SEG-30, SEG-34).

        Indexing also stops at a transaction marker that cannot be read, but the batch of that marker is kept.

        Args:
            producer_state: the producers as of the start of this segment; by default none are known.
            epoch_cache: cache that the leader epochs are added to; None discards them.

        Returns:
            The number of bytes truncated from the log.

        Raises:
            SegmentOffsetOverflowError: a batch's last offset is out of the indexes' range.
            InvalidOffsetError: an entry's offset does not follow the last one (SEG-33).
            InvalidArgumentError: an index is full.
            KidxError: :meth:`ProducerState.update` fails, except at an unreadable record or marker; or a header cannot
                be read. After any error the indexes remain incomplete.
        """
        state = ProducerState(dialect=self.dialect) if producer_state is None else producer_state
        self.offset_index.reset()
        self.time_index.reset()
        self.txn_index.reset()
        self.maximum.forget()
        valid_bytes = self._index_batches(state, epoch_cache)
        truncated = self.size - valid_bytes
        self.log.truncate_to(valid_bytes)
        self.offset_index.trim_to_valid_size()
        self.time_index.maybe_append(self.maximum.timestamp, self.maximum.offset, skip_full_check=True)
        self.time_index.trim_to_valid_size()
        return truncated

    def _index_batches(self, state: ProducerState, epoch_cache: EpochCache | None) -> int:
        """Index every batch up to the first invalid one and return its position."""
        valid_bytes = last_index_entry = 0
        try:
            for batch in self.log.batches():
                batch.ensure_valid()
                last = batch.last_offset
                self.ensure_offset_in_range(last)
                if batch.max_timestamp > self.maximum.timestamp:
                    self.maximum.set(TimestampOffset(batch.max_timestamp, last))
                if valid_bytes - last_index_entry > self.index_interval_bytes:
                    self.offset_index.append(last, valid_bytes)
                    self.time_index.maybe_append(self.maximum.timestamp, self.maximum.offset)
                    last_index_entry = valid_bytes
                valid_bytes += batch.size_in_bytes
                if batch.magic >= 2:
                    self._record_epoch(batch, epoch_cache)
                    self._record_producer(batch, state)
        except (CorruptRecordError, InvalidRecordError):
            # If _record_producer raises, valid_bytes already includes the batch: as in Kafka, indexing stops but the
            # batch is kept.
            pass
        return valid_bytes

    def _record_epoch(self, batch: RecordBatch, cache: EpochCache | None) -> None:
        if cache is None:
            return
        lowest = 1 if self.dialect.recover_ignores_epoch_zero else 0
        epoch, latest = batch.partition_leader_epoch, cache.latest_epoch
        if epoch >= lowest and (latest is None or epoch > latest):
            cache.assign(epoch, batch.base_offset)

    def _record_producer(self, batch: RecordBatch, state: ProducerState) -> None:
        completed = state.update(batch)
        if completed is not None:
            self.update_txn_index(completed, state.last_stable_offset(completed))
            state.complete(completed)
        state.map_end_offset = batch.next_offset

    def truncate_to(self, offset: int) -> int:
        """Remove everything from the batch that contains ``offset`` on (SEG-38).

        Returns:
            The number of bytes truncated from the log.

        Raises:
            KidxError, OSError: a batch cannot be read, or an index cannot be truncated; some files are truncated then.
        """
        mapping = self.translate_offset(offset)
        offset_index, time_index = self.offset_index, self.time_index
        offset_index.truncate_to(offset)
        time_index.truncate_to(offset)
        self.txn_index.truncate_to(offset)
        # The segment becomes the active one again and needs free space in its indexes.
        offset_index.resize(offset_index.max_index_size)
        time_index.resize(time_index.max_index_size)
        truncated = 0 if mapping is None else self.log.truncate_to(mapping.position)
        if self.size == 0:
            self.created = self.clock()
            self.rolling_based_timestamp = None
        self.bytes_since_last_index_entry = 0
        if self.maximum.timestamp >= 0:
            self._reload_maximum()
        return truncated

    def _reload_maximum(self) -> None:
        last = self.time_index.last_entry
        if self.dialect.truncation_reloads_in_two_steps:
            self.maximum.set(last)
        position = self.offset_index.lookup(last.offset).position
        found = TimestampOffset(*self.log.largest_timestamp_after(position))
        self.maximum.set(found if found.timestamp > last.timestamp else last)
