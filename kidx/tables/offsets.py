"""Resolution of options to offsets: the start and end of a log, and the first record at or after a time.

The answers equal a broker's ``ListOffsets``, with one exception. If the log start offset is past the
record that a broker finds, the broker returns none (LO-23); this code continues with the next segment.
"""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, NamedTuple

from kidx.errors import KidxError, ToolError
from kidx.java_values import LONG_MAX
from kidx.tables.batch_walk import BatchWalk
from kidx.tables.indexes import Counter, last_offset_entry, last_time_entry, read_offset_index, read_time_index
from kidx.tables.options import EARLIEST, LATEST

if TYPE_CHECKING:
    from kidx.records import RecordBatch
    from kidx.storage import RangeReader
    from kidx.tables.options import ReadOptions
    from kidx.tables.segments import PartitionLog, Segment, TopicPartition


class LastBatch(NamedTuple):
    """A position in a log, and the offset after the batch there."""

    position: int
    next_offset: int


class LogOffsets:
    """Offset queries on one replica of a partition.

    Args:
        log: the segments of the replica.
        counter: the counter of bytes read.
        use_indexes: False to read the logs instead of the indexes.
    """

    def __init__(self, log: PartitionLog, counter: Counter, *, use_indexes: bool = True) -> None:
        self.log = log
        self._counter = counter
        self._use_indexes = use_indexes

    @property
    def start(self) -> int:
        """The log start offset."""
        return max(self.log.log_start, self.log.segments[0].base_offset)

    def end(self) -> int:
        """Return the log end offset, after the last complete batch.

        Raises:
            KidxError, OSError: the last segment cannot be read.
        """
        segment = self.log.segments[-1]
        # The log is opened before its index is read, and read up to its size at that moment.
        with segment.store.open(segment.file("log")) as reader:
            try:
                found = last_batch(segment, reader, self._counter, use_indexes=self._use_indexes)
            finally:
                self._counter.log_bytes += reader.bytes_read
        return segment.base_offset if found is None else found.next_offset

    def of_time(self, timestamp: int) -> int | None:
        """Return the first offset with at least this timestamp, in milliseconds; None without such a record (LO-6).

        Raises:
            KidxError, OSError: a file cannot be read.
        """
        for segment in self.log.segments:
            if segment.next_base_offset is not None and segment.next_base_offset <= self.start:
                continue
            largest = last_time_entry(segment, self._counter) if self._use_indexes else None
            # The time index of the last segment may lack newer records. Every other time index is complete.
            surely_older = largest is not None and largest[0] < timestamp and not segment.is_last
            if not surely_older and (found := self._in_segment(segment, timestamp)) is not None:
                return found
        return None

    def _in_segment(self, segment: Segment, timestamp: int) -> int | None:
        position = 0
        if self._use_indexes:
            offset = read_time_index(segment, self._counter).offset_before(timestamp)
            entries = read_offset_index(segment, self._counter)
            position = entries.floor(max(segment.base_offset if offset is None else offset, self.start))

        def late_enough(batch: RecordBatch) -> bool:
            return batch.max_timestamp >= timestamp and batch.last_offset >= self.start

        with segment.store.open(segment.file("log")) as reader:
            try:
                walk = BatchWalk(
                    reader,
                    position,
                    position,
                    segment.size,
                    source=segment.name,
                    wanted=late_enough,
                    may_grow=segment.is_last,
                )
                for _, batch, wanted in walk:
                    if not wanted or not late_enough(batch):
                        continue
                    for record in batch.offset_timestamps():
                        if record.timestamp >= timestamp and record.offset >= self.start:
                            return record.offset
            finally:
                self._counter.log_bytes += reader.bytes_read
        return None


def last_batch(
    segment: Segment,
    reader: RangeReader,
    counter: Counter,
    before: int | None = None,
    *,
    use_indexes: bool = True,
    most: int = LONG_MAX,
) -> LastBatch | None:
    """Return the last complete batch that begins before an offset, or of the whole segment; None if it is not found.

    Args:
        reader: the reader of its log, opened before: the index may only be newer.
        counter: the counter of bytes read of the index.
        before: the offset; None for the end of the segment.
        use_indexes: False to read the log from its start.
        most: the largest size of a log that is read from its start.

    Raises:
        KidxError, OSError: the segment cannot be read.
    """
    found = _last_by_index(segment, reader, counter, before) if use_indexes else None
    return _last_from(segment, reader, 0, before) if found is None and reader.size <= most else found


def _last_by_index(segment: Segment, reader: RangeReader, counter: Counter, before: int | None) -> LastBatch | None:
    """Return the last batch, reading from the last index entry before the offset; None without one, or a wrong one."""
    entry = last_offset_entry(segment, counter, reader.size, LONG_MAX if before is None else before)
    if entry is None:
        return None
    offset, position = entry
    try:
        return _last_from(segment, reader, position, before, indexed=offset)
    except KidxError:
        return None


def _last_from(
    segment: Segment, reader: RangeReader, position: int, before: int | None, *, indexed: int | None = None
) -> LastBatch | None:
    """Return the last complete batch from a position on; None without a batch.

    If ``indexed`` is given, the first batch must begin in the segment at or below it; otherwise None is returned.
    """
    walk = BatchWalk(reader, position, reader.size, source=segment.name, wanted=_nothing, may_grow=True)
    last = previous = None
    for at, batch, _ in walk:
        if indexed is not None and not segment.base_offset <= batch.base_offset <= indexed:
            return None
        if before is not None and batch.base_offset >= before:
            return last
        last, previous, indexed = LastBatch(at, batch.next_offset), last, None
    # In a preallocated log a batch may have its header but not its records yet.
    return last if not walk.ends_in_zeros or last is None or _is_whole(reader, last.position) else previous


def _is_whole(reader: RangeReader, position: int) -> bool:
    return all(batch.is_valid for _, batch, _ in islice(BatchWalk(reader, position, reader.size, source=""), 1))


def _nothing(_: RecordBatch) -> bool:
    return False


def range_of(key: TopicPartition, log: PartitionLog, options: ReadOptions, counter: Counter) -> tuple[int, int | None]:
    """Return the first offset that the options request, and the offset after the last; None for the end of the log.

    Raises:
        ToolError: no record has the requested time and the strategy is ``error``; or an offset is out of range and
            ``failOnDataLoss`` is true; or the end is before the start; or the log cannot be read.
        FileNotFoundError: a segment was removed: the partition must be listed again.
    """
    offsets = LogOffsets(log, counter, use_indexes=options.use_indexes)
    try:
        start, end = _start(key, offsets, options), _end(key, offsets, options)
    except FileNotFoundError:
        raise
    except (KidxError, OSError) as error:
        raise ToolError(f"cannot read the offsets of {key} in {log.store.name_of(log.directory)}: {error}") from error
    if end is not None and start > end:
        raise ToolError(f"the start offset {start} of {key} is past the end {end}")
    return start, end


def _start(key: TopicPartition, offsets: LogOffsets, options: ReadOptions) -> int:
    value = options.start.of(key)
    if options.start.by_time:
        found = offsets.of_time(value)
        if found is None:
            if not options.latest_if_no_match:
                raise ToolError(
                    f"no record of {key} has a timestamp of at least {value};"
                    " use startingOffsetsByTimestampStrategy=latest to start at the end"
                )
            return offsets.end()
        return found
    if value == EARLIEST:
        return offsets.start
    if value < offsets.start:
        if options.fail_on_data_loss:
            raise ToolError(
                f"startingOffsets: {key} begins at offset {offsets.start}; offset {value} was deleted"
                f" (failOnDataLoss=false starts at {offsets.start})"
            )
        return offsets.start
    if options.fail_on_data_loss and value > (end := offsets.end()):
        raise ToolError(f"startingOffsets: {key} ends at offset {end}, before the requested offset {value}")
    return value


def _end(key: TopicPartition, offsets: LogOffsets, options: ReadOptions) -> int | None:
    value = options.end.of(key)
    if options.end.by_time:
        return offsets.of_time(value)  # None, the end, is Spark's result for "no such record" here
    if value == LATEST:
        return None
    if options.fail_on_data_loss and value > (end := offsets.end()):
        raise ToolError(f"endingOffsets: {key} ends at offset {end}, before the requested offset {value}")
    return value


def check_tables(keys: set[TopicPartition], options: ReadOptions) -> None:
    """Check that a table of offsets or times names exactly the partitions read, as Spark's Kafka source requires.

    Raises:
        ToolError: the table names another partition, or lacks a partition that is read.
    """
    for side, bound in (("starting", options.start), ("ending", options.end)):
        if not isinstance(bound.value, int) and set(bound.value) != keys:
            missing = ", ".join(map(str, sorted(keys - set(bound.value)))) or "none"
            unknown = ", ".join(map(str, sorted(set(bound.value) - keys))) or "none"
            raise ToolError(
                f"the {side} offsets or times must name every partition that is read and no other;"
                f" missing: {missing}, unknown: {unknown}"
            )
