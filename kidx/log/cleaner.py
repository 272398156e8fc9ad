"""Compaction: keys are mapped, and segments are grouped, copied and replaced (``Cleaner``; clauses CL).

The cleaned segments and their index files follow entirely from the segments before the round.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Literal, Protocol

from kidx.discovery import SEGMENT_SUFFIXES, SWAP
from kidx.errors import InvalidArgumentError, KidxError
from kidx.java_values import INT_MAX
from kidx.log.errors import CleaningAbortedError
from kidx.log.record_filter import (
    CleanedTransactions,
    CleanerBuffer,
    CleanerStats,
    OffsetMap,
    RecordFilter,
    read_records,
)
from kidx.log.segments import (
    CLEANED,
    OverflowedSegmentError,
    overflow_as_split_error,
    split_overflowed,
)
from kidx.segment import LogSegment, system_clock
from kidx.segment.files import file_name

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from kidx.dialect import Dialect
    from kidx.index.transaction import AbortedTxn
    from kidx.log.config import LogConfig
    from kidx.log.segments import Segments
    from kidx.producers import ProducerStateManager
    from kidx.records import RecordBatch
    from kidx.segment import Clock

CrashPoint = Literal["chunk", "deletion"]
"""Point at which a crash may happen: before bytes are read, or after the files of a replaced segment were renamed."""
CrashPointCallback = Callable[[CrashPoint], None]
"""Function that is called at each point at which a crash may happen; it may raise an error to end the round there."""


class CleanedLog(Protocol):
    """Attributes of a log that this module needs; :class:`~kidx.log.UnifiedLog` describes them."""

    directory: Path
    dialect: Dialect
    config: LogConfig
    clock: Clock
    segments: Segments
    start_offset: int
    end_offset: int
    high_watermark: int
    producers: ProducerStateManager
    first_unstable_offset: int | None

    @property
    def last_stable_offset(self) -> int:
        """See :class:`~kidx.log.UnifiedLog`."""


def cleanable_range(log: CleanedLog, checkpoint: int | None) -> tuple[int, int] | None:
    """Return the first dirty offset and the base offset of the first segment that is not cleaned.

    The result is None if no dirty bytes can be cleaned.

    Args:
        checkpoint: offset at which the last round ended, or None; an offset outside the log is ignored.

    Raises:
        InvalidArgumentError: See :func:`segments_between`.
        KidxError, OSError: as :attr:`LogSegment.largest_timestamp`, for segments that may be too young.
    """
    known = checkpoint is not None and log.start_offset <= checkpoint <= log.end_offset
    first_dirty = checkpoint if known and checkpoint is not None else log.start_offset
    active = log.segments.active.base_offset
    young = _first_young(log, first_dirty, active)
    stop = max(first_dirty, min(young, log.last_stable_offset))
    first_open = max(first_dirty, young if log.first_unstable_offset is None else min(young, log.first_unstable_offset))
    if stop != first_open and not log.dialect.cleans_only_below_lso:
        stop = first_open
    remaining = [] if stop > active else segments_between(log, stop, active)
    upper = remaining[0].base_offset if remaining else active
    dirty = segments_between(log, first_dirty, max(first_dirty, upper))
    return (first_dirty, upper) if sum(segment.size for segment in dirty) > 0 else None


def _first_young(log: CleanedLog, first_dirty: int, active: int) -> int:
    """Return the base offset of the first dirty segment with a record that is too young, or of the active segment."""
    lag = log.config.min_compaction_lag_ms
    if lag <= 0 or first_dirty > active:
        return active
    newest = log.clock() - lag
    young = (s.base_offset for s in segments_between(log, first_dirty, active) if s.largest_timestamp > newest)
    return next(young, active)


def segments_between(log: CleanedLog, start: int, end: int) -> list[LogSegment]:
    """Return the segments with offsets from ``start`` up to, but excluding, ``end``.

    Raises:
        InvalidArgumentError: ``end`` is below ``start``; in 2.4 only if it is below the segment of ``start``.
    """
    found = log.segments.values_between(start, end)
    if start < end or (start == end and not found):
        return found
    floor = log.segments.floor(start)
    if (floor is None or end >= floor.base_offset) and not log.dialect.empty_ranges_hold_no_segment:
        return found
    if start == end:
        return []
    raise InvalidArgumentError(f"Invalid log segment range: from offset {start} to offset {end}")


class Cleaner:
    """Cleaner of a log, for one round.

    Args:
        log: the log to clean.
        io_buffer_size: number of bytes read, and written, at a time.
        slots: number of slots of the offset map.
        at: callback for each point at which a crash may happen.

    Attributes:
        log: the log to clean.
        keys: newest offset of each key.
        stats: result of the round.
    """

    # Classes of the cleaner's parts; a subclass may replace them.
    record_filter: type[RecordFilter] = RecordFilter
    offset_map: type[OffsetMap] = OffsetMap
    transactions: type[CleanedTransactions] = CleanedTransactions
    buffer: type[CleanerBuffer] = CleanerBuffer

    def __init__(
        self, log: CleanedLog, io_buffer_size: int, slots: int, at: CrashPointCallback = lambda _: None
    ) -> None:
        self.log = log
        self._at = at
        self.keys = self.offset_map(slots)
        self.stats = CleanerStats()
        self._buffer = self.buffer(
            io_buffer_size, log.config.largest_message(log.dialect), log.dialect.default_message_bytes
        )
        self._now = log.clock()

    def clean(self, first_dirty: int, upper: int) -> CleanerStats:
        """Clean the segments below ``upper``.

        Args:
            first_dirty: offset of the first record whose key is mapped.
            upper: base offset of the first segment that remains unchanged.

        Raises:
            KidxError, OSError: as :meth:`UnifiedLog.clean`.
        """
        log = self.log
        cleaned = segments_between(log, 0, first_dirty)
        oldest_delete = cleaned[-1].last_modified - log.config.delete_retention_ms if cleaned else 0
        self._build_offset_map(first_dirty, upper)
        end = self.keys.latest + 1
        transactions = self.transactions()
        for group in self.grouped(segments_between(log, 0, end), upper):
            self._clean_group(group, upper, oldest_delete, transactions)
        self.stats.next_dirty_offset = end
        return self.stats

    # -- offset map --------------------------------------------------------------------------------------------

    def _build_offset_map(self, first_dirty: int, upper: int) -> None:
        """Map each key to its newest offset, for as many keys as fit (``buildOffsetMap``)."""
        dirty = segments_between(self.log, first_dirty, upper)
        transactions = self.transactions()
        transactions.expect(self._aborted(first_dirty, upper))
        ends = [*(segment.base_offset for segment in dirty[1:]), upper]
        for segment, end in zip(dirty, ends if dirty else [], strict=True):
            self._at("chunk")
            if not self._map_segment(segment, first_dirty, transactions):
                return
            if self.keys.latest != end - 1 and self.log.dialect.cleaning_counts_gaps:
                self.keys.latest = end - 1
            self._buffer.restore()

    def _map_segment(self, segment: LogSegment, first_dirty: int, transactions: CleanedTransactions) -> bool:
        """Return True if all keys of a segment fit."""
        position = segment.offset_index.lookup(first_dirty).position
        while position < segment.size:
            self._at("chunk")
            chunk = self._buffer.read(segment, position)
            size = 0
            for batch in chunk.batches:
                if not self._map_batch(batch, first_dirty, transactions):
                    return False
                if batch.last_offset >= first_dirty:
                    self.keys.latest = batch.last_offset
                size += batch.size_in_bytes
            position += size
            self.stats.map_bytes_read += size
            if size == 0:
                self._buffer.grow(chunk)
        return True

    def _map_batch(self, batch: RecordBatch, first_dirty: int, transactions: CleanedTransactions) -> bool:
        is_discardable = transactions.is_discardable(batch)
        if batch.is_control:
            self.stats.map_records_read += 1
        elif is_discardable:
            self.stats.map_records_read += batch.count or 0
        else:
            for record in read_records(batch, self.log.dialect, self.log.config.max_record_body_size):
                if record.key is not None and record.offset >= first_dirty:
                    if self.keys.is_full:
                        return False
                    self.keys.put(record.key, record.offset)
                self.stats.map_records_read += 1
        return True

    def _aborted(self, start: int, end: int) -> Iterator[AbortedTxn]:
        """Yield the aborted transactions in the indexes of a part of the log (``collectAbortedTransactions``)."""
        if self.log.segments.floor(start) is None:
            return
        for segment in self.log.segments.values_from(start):
            found = segment.collect_aborted_txns(self.log.start_offset, end)
            yield from found.aborted_transactions
            if found.is_complete:
                return

    # -- groups ------------------------------------------------------------------------------------------------

    def grouped(self, segments: Sequence[LogSegment], upper: int) -> list[list[LogSegment]]:
        """Return groups of segments, each of which becomes one segment (``groupSegmentsBySize``; CL-4).

        The sizes of logs and indexes before the round decide which segments fit together.
        """
        config = self.log.config
        groups: list[list[LogSegment]] = []
        sizes = [0, 0, 0]
        ends = [*(segment.base_offset for segment in segments[1:]), upper]
        for segment, end in zip(segments, ends[: len(segments)], strict=True):
            fits = (
                bool(groups)
                and sizes[0] + segment.size <= config.segment_bytes
                and sizes[1] + segment.offset_index.size_in_bytes <= config.segment_index_bytes
                and sizes[2] + segment.time_index.size_in_bytes <= config.segment_index_bytes
                and self._in_range(groups[-1][0], segment, end - 1)
            )
            if fits:
                groups[-1].append(segment)
            else:
                groups.append([segment])
                sizes = [0, 0, 0]
            sizes[0] += segment.size
            sizes[1] += segment.offset_index.size_in_bytes
            sizes[2] += segment.time_index.size_in_bytes
        return groups

    def _in_range(self, first: LogSegment, segment: LogSegment, last_offset: int) -> bool:
        if last_offset - first.base_offset <= INT_MAX:
            return True
        return segment.size == 0 and self.log.dialect.empty_segments_join_any_group

    def _clean_group(
        self, group: Sequence[LogSegment], upper: int, oldest_delete: int, transactions: CleanedTransactions
    ) -> None:
        log = self.log
        base = group[0].base_offset
        cleaned = self._open_cleaned(base)
        transactions.index = cleaned.txn_index
        try:
            for segment, following in pairwise([*group, None]):
                assert segment is not None
                transactions.expect(self._aborted(segment.base_offset, self._end_of(segment, following)))
                keeps_deletes = segment.last_modified > oldest_delete
                with overflow_as_split_error(segment):
                    self._clean_into(segment, cleaned, upper, transactions, keeps_deletes=keeps_deletes)
            cleaned.on_become_inactive_segment()
            cleaned.flush()
            cleaned.set_last_modified(group[-1].last_modified)
            self._replace(group, cleaned)
        except OverflowedSegmentError as error:
            split_overflowed(error.segment, log.segments, self._open_cleaned)
            cleaned.close()
            cleaned.delete_if_exists()
            raise CleaningAbortedError(f"{error.segment.log.path} was split, and the round ends", None) from error
        except BaseException:
            if log.segments.floor(base) is not cleaned:
                cleaned.release_handles()
            raise

    def _open_cleaned(self, base: int) -> LogSegment:
        log = self.log
        for suffix in SEGMENT_SUFFIXES:
            (log.directory / (file_name(base, suffix) + CLEANED)).unlink(missing_ok=True)
        return LogSegment.open(
            log.directory,
            base,
            log.config,
            init_file_size=log.config.init_file_size,
            preallocate=log.config.preallocate,
            file_suffix=CLEANED,
            clock=system_clock,
            dialect=log.dialect,
        )

    def _replace(self, group: Sequence[LogSegment], cleaned: LogSegment) -> None:
        """Replace a group by its cleaned segment (``replaceSegments``; CL-16)."""
        log = self.log
        with_segment, individually = (
            log.dialect.snapshot_renamed_with_segment,
            log.dialect.deletes_replaced_snapshots_individually,
        )
        cleaned.change_file_suffixes(CLEANED, SWAP)
        log.segments.add(cleaned)
        for segment in group:
            log.segments.detach_replaced(segment, cleaned)
            if individually and segment is not group[0]:
                self.delete_snapshot(segment)
            self._at("deletion")
        cleaned.change_file_suffixes(SWAP, "")
        if with_segment and not individually:
            for segment in group[1:]:
                self.delete_snapshot(segment)

    def delete_snapshot(self, replaced: LogSegment) -> None:
        """Rename the producer snapshot at the base offset of a replaced segment, to be deleted later."""
        self.log.producers.set_snapshot_aside(replaced.base_offset)

    def _end_of(self, segment: LogSegment, following: LogSegment | None) -> int:
        if following is not None:
            return following.base_offset
        in_round = self.keys.latest + 1
        try:
            in_segment = segment.read_next_offset()
        except (KidxError, OSError):
            if self.log.dialect.collects_aborted_to_segment_end:
                raise
            return in_round
        if in_segment != in_round and not self.log.dialect.collects_aborted_to_segment_end:
            return in_round
        return in_segment

    # -- copying -----------------------------------------------------------------------------------------------

    def _clean_into(
        self,
        segment: LogSegment,
        cleaned: LogSegment,
        upper: int,
        transactions: CleanedTransactions,
        *,
        keeps_deletes: bool,
    ) -> None:
        log = self.log
        records = self.record_filter(
            log.dialect,
            self._now,
            log.config.delete_retention_ms,
            self.keys,
            transactions,
            log.producers.producers,
            lambda batch: self.is_last(batch, upper),
            keeps_deletes,
            log.config.max_record_body_size,
            self.stats,
        )
        position = 0
        while position < segment.size:
            self._at("chunk")
            chunk = self._buffer.read(segment, position)
            found = records.filter(chunk.batches, self._buffer.capacity)
            self.stats.bytes_read += found.bytes_read
            position += found.bytes_read
            self.write(cleaned, found.pieces, found.largest_offset, found.largest_timestamp, found.shallow_offset)
            if found.bytes_read == 0:
                self._buffer.grow(chunk)
        self._buffer.restore()

    def write(
        self, cleaned: LogSegment, pieces: Iterable[bytes], largest_offset: int, timestamp: int, offset: int
    ) -> None:
        """Append the remaining batches of one buffer in one call, which indexes them as the release does (CL-5).

        Args:
            largest_offset: last offset of the batches.
            timestamp: largest timestamp of the batches in milliseconds.
            offset: offset to index with that timestamp.
        """
        cleaned.append(
            b"".join(pieces), largest_offset=largest_offset, largest_timestamp=timestamp, shallow_offset=offset
        )

    def is_last(self, batch: RecordBatch, upper: int) -> bool:
        """Return True if a batch is retained because of its end offset (CL-14)."""
        ends = {"round": upper, "replicated": self.log.high_watermark}
        return batch.next_offset in ends.values() and batch.next_offset == ends.get(
            self.log.dialect.keeps_last_batch_cleaned
        )
