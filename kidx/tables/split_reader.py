"""Records of the splits of a log, as a consumer would get them.

A split is the range of bytes of one segment's log that one task reads.
"""

from __future__ import annotations

import logging
from collections import Counter as Counts
from collections import deque
from collections.abc import Generator, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Final

from kidx.errors import KidxError, ToolError
from kidx.java_values import LONG_MAX, LONG_MIN
from kidx.records.errors import CorruptRecordError
from kidx.scan import decode_batch
from kidx.scan.jit import worth_compiling
from kidx.tables.batch_walk import BatchWalk, is_unfinished
from kidx.tables.columns import RowBuffer, to_microseconds
from kidx.tables.isolation import AbortedFilter, aborted_transactions
from kidx.tables.record_columns import extend, headers_of
from kidx.tables.record_times import Recent, check, known_ranges
from kidx.tables.segments import LISTINGS
from kidx.tables.splits import checks_times, is_of_another_topic, later_segments, plan_again
from kidx.tables.vectorized import VectorizedBatches

if TYPE_CHECKING:
    import pyarrow as pa

    from kidx.records import RecordBatch
    from kidx.scan import RecordColumns
    from kidx.storage import RangeReader
    from kidx.tables.indexes import Counter
    from kidx.tables.options import Isolation, ReadOptions
    from kidx.tables.predicates import Predicates
    from kidx.tables.segments import Segment
    from kidx.tables.splits import Split

_logger: Final = logging.getLogger("kidx.spark")
_NEWEST_MAGIC: Final = 2

_RECORD_COST: Final = 160
"""Bytes of a log whose reading without compiled kernels takes as long as a record, compressed or not."""
_plain: Final = Counts({"records": 0})
"""Number of records that this process has read without compiled kernels, in all its tasks and calls."""


@dataclass(frozen=True)
class SplitReader:
    """A reader of splits with its settings; picklable.

    Attributes:
        predicates: the predicates that the query pushed down.
        fail_on_data_loss: True to raise an error at a corrupt batch; False to skip the rest of its segment.
        check_crcs: True if an invalid checksum is corruption.
        isolation: the isolation level.
        check_times: True to check and note the times of records where a query restricts them.
        use_indexes: False to find aborted transactions in the logs, not in the transaction indexes.
    """

    predicates: Predicates
    fail_on_data_loss: bool = True
    check_crcs: bool = True
    isolation: Isolation = "read_uncommitted"
    check_times: bool = False
    use_indexes: bool = True

    def records(self, split: Split, buffer: RowBuffer, counter: Counter) -> Iterator[pa.RecordBatch]:
        """Yield the records of a split, as rows of ``content=records``.

        A split is planned again if its segment was deleted, cleaned or merged since the query was planned.

        Raises:
            ToolError: the segment is corrupt, or records were deleted, and ``fail_on_data_loss`` is true.
        """
        waiting, listings = deque([split]), 0
        while waiting:
            each = waiting.popleft()
            try:
                yield from self._of(each, buffer, counter)
            except FileNotFoundError as error:
                listings += 1
                if listings > LISTINGS:
                    self._lose(f"{each.segment.name}: {error}", error)
                    continue
                committed = self.isolation == "read_committed"
                splits, lost = plan_again(each, committed=committed, use_indexes=self.use_indexes)
                if lost:
                    self._lose(lost, error)
                waiting.extendleft(reversed(splits))

    def _of(self, split: Split, buffer: RowBuffer, counter: Counter) -> Iterator[pa.RecordBatch]:
        """Yield the records of a split.

        Raises:
            FileNotFoundError: the segment was removed or replaced; no row was yielded.
            ToolError: the segment is corrupt and ``fail_on_data_loss`` is true.
        """
        try:
            aborted = self._aborted(split, counter)
            read = counter.log_bytes + _RECORD_COST * _plain["records"]
            compiled = worth_compiling(read + split.end - split.start)
            for position, batch in self._batches(split, counter, buffer, compiled=compiled):
                if batch is not None:
                    try:
                        self._check(batch)
                        if not batch.is_control and not aborted.hides(batch):
                            yield from self._add(split, batch, buffer, compiled=compiled)
                    except KidxError as error:
                        raise _CorruptBatch(position, error) from error
                if buffer.is_full:
                    yield from buffer.flush()
        except FileNotFoundError:
            raise
        except OSError as error:
            self._lose(f"{split.segment.name}: {error}", error)
        except _CorruptBatch as error:
            if not (split.segment.is_last and _is_unfinished(split.segment, error.position)):
                self._lose(f"{split.segment.name}{error}", error, "continues with the next segment")

    def _lose(self, what: str, error: Exception | None, otherwise: str = "reads what is readable") -> None:
        """Raise ToolError for data that cannot be read, or log a warning if data loss is accepted.

        Raises:
            ToolError: ``fail_on_data_loss`` is true.
        """
        if self.fail_on_data_loss:
            raise ToolError(f"{what} (failOnDataLoss=false {otherwise})") from error
        _logger.warning("data loss: %s", what)

    def _check(self, batch: RecordBatch) -> None:
        """Check a batch as a consumer does, even if its records are hidden.

        Raises:
            KidxError: the batch is corrupt.
        """
        if not 0 <= batch.magic <= _NEWEST_MAGIC:
            raise CorruptRecordError(f"Invalid magic found in record: {batch.magic}")
        if self.check_crcs:
            batch.ensure_valid()

    def _aborted(self, split: Split, counter: Counter) -> AbortedFilter:
        if self.isolation == "read_uncommitted":
            return AbortedFilter(())
        offsets = split.segment.base_offset, split.stop_offset
        segments = later_segments(split)
        return AbortedFilter(aborted_transactions(segments, *offsets, counter, use_indexes=self.use_indexes))

    def _add(self, split: Split, batch: RecordBatch, buffer: RowBuffer, *, compiled: bool) -> Iterator[pa.RecordBatch]:
        """Add the records of a batch; yield the buffer's content whenever a large batch fills it."""
        segment, kind, bounds = split.segment, int(batch.timestamp_type), self.predicates
        if not bounds.admits_batch(batch):
            return
        first, last = split.first_offset, split.stop_offset - 1
        least = LONG_MIN if bounds.min_time is None else bounds.min_time
        largest = LONG_MAX if bounds.max_time is None else bounds.max_time
        if compiled and (columns := _columns_of(batch)) is not None:
            offsets, times = columns.rows["offset"], columns.rows["timestamp"]
            there = (offsets >= first) & (offsets <= last) & (times >= least) & (times <= largest)
            extend(segment, kind, columns._replace(rows=columns.rows[there]), buffer)
            return
        _plain["records"] += 0 if compiled else max(batch.count or 0, 0)
        for record in batch:
            if not (first <= record.offset <= last and least <= record.timestamp <= largest):
                continue
            key, value = record.key, record.value
            row = {
                "key": key,
                "value": value,
                "topic": segment.topic,
                "partition": segment.partition,
                "offset": record.offset,
                "timestamp": to_microseconds(record.timestamp),
                "timestampType": kind,
                "headers": headers_of(record.headers),
            }
            if buffer.is_full:
                yield from buffer.flush()
            buffer.add(row, len(key or b"") + len(value or b""))

    def _batches(
        self, split: Split, counter: Counter, buffer: RowBuffer, *, compiled: bool
    ) -> Iterator[tuple[int, RecordBatch | None]]:
        """Yield position and batch for the batches of a split that can have requested records.

        The batch is None if the buffer has received several batches together, so that the caller may flush it.

        Raises:
            _CorruptBatch: the next bytes are not a batch.
            FileNotFoundError: the segment was removed or replaced.
        """
        segment = split.segment
        with segment.store.open(segment.file("log")) as reader:
            try:
                _check_unchanged(split, reader)
                hard_end = split.end if split.exact_end else max(segment.size, split.end)
                is_over = False
                for source, start, end in self._ranges(split, reader, hard_end, compiled=compiled):
                    if not is_over:  # otherwise the range is checked for the next query only
                        is_whole = end < hard_end or split.exact_end or not segment.is_last
                        walk = BatchWalk(
                            source,
                            start,
                            min(end, split.end),
                            end,
                            source=segment.name,
                            wanted=partial(_is_wanted, split),
                            may_grow=segment.is_last,
                        )
                        is_over = yield from self._walked(split, walk, counter, buffer, compiled, is_whole)
                if split.mark is not None and not split.mark.is_in(reader):
                    self._lose(f"{segment.name} was truncated while it was read", None)
            finally:
                counter.log_bytes += reader.bytes_read

    def _walked(
        self, split: Split, walk: BatchWalk, counter: Counter, buffer: RowBuffer, compiled: bool, is_whole: bool
    ) -> Generator[tuple[int, RecordBatch | None], None, bool]:
        """Yield position and batch for the batches of a walk; return True if no later batch has a requested offset.

        Raises:
            _CorruptBatch: the next bytes are not a batch, and ``is_whole`` is True: batches fill the walk.
        """
        vectorized = VectorizedBatches(
            walk,
            split,
            self.predicates,
            buffer,
            checked=self.check_crcs,
            committed=self.isolation == "read_committed",
            compiled=compiled,
        )
        try:
            for position, batch, is_wanted in walk:
                if position == split.start > 0 and _begins_too_late(split, batch):
                    # The offset index points past the batch that it should find, or into the middle of one.
                    again = replace(split, start=0, end=walk.hard_end)
                    yield from self._batches(again, counter, buffer, compiled=compiled)
                    return True
                if is_wanted and vectorized.is_possible and (yield from vectorized.take(position)):
                    continue
                if is_wanted and (batch.magic >= 2 or _is_wanted(split, batch)):
                    yield position, batch
                if split.end_offset is not None and batch.last_offset >= split.end_offset - 1:
                    return True
        except KidxError as error:
            raise _CorruptBatch(walk.position, error) from error
        if walk.position < walk.hard_end and is_whole:
            raise _CorruptBatch(walk.position, f"no complete batch in the next {walk.hard_end - walk.position} bytes")
        return False

    def _ranges(
        self, split: Split, reader: RangeReader, end: int, *, compiled: bool
    ) -> Iterator[tuple[RangeReader, int, int]]:
        """Yield the ranges of a split to read, with the reader to use.

        A split whose start comes from an index may begin within a batch, so it is read whole.
        """
        segment, whole = split.segment, (split.start, end)
        version = reader.version() if self.check_times else ""
        is_whole = (split.start == 0 or split.is_continuation) and (split.exact_end or split.end >= segment.size)
        if not (version and is_whole):
            yield reader, *whole
            return
        offsets = split.first_offset, split.stop_offset
        ranges = split.ranges if split.version == version else None
        if ranges is None:
            ranges = known_ranges(segment, version, whole, offsets, self.predicates)
        if ranges is not None:
            for at, stop in ranges:
                if max(at, split.start) < min(stop, end):
                    yield reader, max(at, split.start), min(stop, end)
            return
        recent = Recent(reader)
        for at, stop in check(
            segment, recent, whole, offsets, self.predicates, checked=self.check_crcs, compiled=compiled
        ):
            yield recent, at, stop


def reader_of(options: ReadOptions, predicates: Predicates) -> SplitReader:
    """Return the reader of a query."""
    check_times = checks_times(options, predicates)
    return SplitReader(
        predicates, options.fail_on_data_loss, options.check_crcs, options.isolation, check_times, options.use_indexes
    )


def _is_wanted(split: Split, batch: RecordBatch) -> bool:
    return batch.last_offset >= split.first_offset and batch.base_offset < split.stop_offset


def _check_unchanged(split: Split, reader: RangeReader) -> None:
    """Check that the log of a split is as it was when the query was planned; the last one may have grown.

    Raises:
        FileNotFoundError: it is not.
    """
    segment, size = split.segment, reader.size
    if size < segment.size or (size > segment.size and not segment.is_last):
        raise FileNotFoundError(f"{segment.name} has {size} bytes instead of {segment.size}")
    if split.mark is not None and not split.mark.is_in(reader):
        raise FileNotFoundError(f"{segment.name} was truncated")
    if is_of_another_topic(split):
        raise FileNotFoundError(f"{segment.name} is of another topic")


class _CorruptBatch(Exception):  # noqa: N818 -- never leaves this module
    """A position in a log, and the problem there."""

    def __init__(self, position: int, problem: object) -> None:
        super().__init__(f" at byte {position}: {problem}")
        self.position = position


def _begins_too_late(split: Split, batch: RecordBatch) -> bool:
    """Return True if a position of the offset index is wrong: the batch there begins after the requested offset."""
    try:
        return batch.base_offset > split.first_offset and not split.is_continuation
    except KidxError:
        return True


def _is_unfinished(segment: Segment, position: int) -> bool:
    with segment.store.open(segment.file("log")) as reader:
        return is_unfinished(reader, position)


def _columns_of(batch: RecordBatch) -> RecordColumns | None:
    """Decode the records; None if the batch is corrupt or old, so that it must be read record by record."""
    try:
        return decode_batch(batch)
    except KidxError:
        return None
