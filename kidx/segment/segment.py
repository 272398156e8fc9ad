"""One segment of a log, with the appends, rolls, truncations and reads of every release (clauses SEG)."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path
from typing import TYPE_CHECKING, Final, Self

from kidx.dialect import Dialect, dialect_of
from kidx.errors import KidxError
from kidx.index.entries import AbortedTxn, TimestampOffset
from kidx.java_numbers import INT_MAX, LONG_MAX, LONG_MIN, to_int, to_long
from kidx.records import iter_memory_batches
from kidx.segment.append_info import AppendInfo, follower_append_info
from kidx.segment.config import Clock, RollParams, SegmentConfig, system_clock
from kidx.segment.errors import SegmentOffsetOverflowError
from kidx.segment.files import LOG_SUFFIX, file_name
from kidx.segment.reader import SegmentReader
from kidx.segment.recovery import recover

if TYPE_CHECKING:
    from kidx.index.lazy import LazyIndex
    from kidx.index.offset import OffsetIndex
    from kidx.index.time import TimeIndex
    from kidx.index.transaction import TransactionIndex
    from kidx.producers import CompletedTxn, ProducerState
    from kidx.segment.file_records import FileRecords
    from kidx.segment.recovery import EpochCache

_CHUNK: Final = 1 << 20
"""Number of bytes that ``append_from_file`` copies at a time, unless one batch is larger."""


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
        index_interval_bytes: int = 4096,
        roll_jitter_ms: int = 0,
        clock: Clock = system_clock,
        dialect: str | Dialect | None = None,
        max_record_body_size: int = INT_MAX - 8,
    ) -> None:
        super().__init__(
            log,
            lazy_offset_index,
            lazy_time_index,
            txn_index,
            base_offset,
            dialect=dialect_of(dialect),
            max_record_body_size=max_record_body_size,
        )
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
            directory: directory of the partition.
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
        """Rebuild all indexes and truncate invalid batches; see :func:`kidx.segment.recovery.recover`."""
        return recover(self, producer_state, epoch_cache)

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
