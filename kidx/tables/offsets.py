"""From what an option says to offsets: the ends of a log, and the first record of a time, found through the indexes.

The answers are those of a broker's ``ListOffsets`` (clauses LO), but for one: where the log's start
has moved past the record that a broker finds, it finds none (LO-23), and this goes on to the next segment.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kidx.errors import KidxError, ToolError
from kidx.tables.indexes import Counter, last_time_entry, read_offset_index, read_time_index
from kidx.tables.options import EARLIEST, LATEST
from kidx.tables.walking import BatchWalk

if TYPE_CHECKING:
    from kidx.records import RecordBatch
    from kidx.tables.options import ReadOptions
    from kidx.tables.segments import PartitionLog, Segment, TopicPartition


class LogOffsets:
    """What can be asked of one replica of a partition.

    Args:
        log: its segments.
        counter: of the bytes that answers cost.
        use_indexes: False reads the logs instead.
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
        """The log end offset: behind the last whole batch.

        Raises:
            KidxError, OSError: the last segment cannot be read.
        """
        segment = self.log.segments[-1]
        position = 0
        if self._use_indexes:
            entries = read_offset_index(segment, self._counter)
            position = int(entries.positions[-1]) if len(entries.positions) else 0
        last = None
        with segment.store.open(segment.file("log")) as reader:
            for _, batch, _ in BatchWalk(reader, position, segment.size, source=segment.name, wanted=_nothing):
                last = batch
            self._counter.log_bytes += reader.bytes_read
        return segment.base_offset if last is None else last.next_offset

    def of_time(self, timestamp: int) -> int | None:
        """The first offset whose record has ``timestamp`` (milliseconds) or a later one; None if there is none (LO-6).

        Raises:
            KidxError, OSError: a file cannot be read.
        """
        for segment in self.log.segments:
            if segment.next_base_offset is not None and segment.next_base_offset <= self.start:
                continue
            largest = last_time_entry(segment, self._counter) if self._use_indexes else None
            # The entry of the last segment may be behind the log; that of the others was made when they were rolled.
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
                walk = BatchWalk(reader, position, position, segment.size, source=segment.name, wanted=late_enough)
                for _, batch, wanted in walk:
                    if not wanted or not late_enough(batch):
                        continue
                    for record in batch.stamps():
                        if record.timestamp >= timestamp and record.offset >= self.start:
                            return record.offset
            finally:
                self._counter.log_bytes += reader.bytes_read
        return None


def _nothing(_: RecordBatch) -> bool:
    return False


def range_of(key: TopicPartition, log: PartitionLog, options: ReadOptions, counter: Counter) -> tuple[int, int | None]:
    """The offsets that the options ask for: the first, and the one behind the last, None for the end of the log.

    Raises:
        ToolError: no record has the time asked for and the strategy is ``error``; or an offset is not there any more or
            not yet, and data loss is to fail; or the end is before the start; or the log cannot be read.
    """
    offsets = LogOffsets(log, counter, use_indexes=options.use_indexes)
    try:
        start, end = _start(key, offsets, options), _end(key, offsets, options)
    except (KidxError, OSError) as error:
        raise ToolError(f"the offsets of {key} in {log.store.name_of(log.directory)}: {error}") from error
    if end is not None and start > end:
        raise ToolError(f"{key} would be read from offset {start}, behind the end at {end}")
    return start, end


def _start(key: TopicPartition, offsets: LogOffsets, options: ReadOptions) -> int:
    value = options.start.of(key)
    if options.start.by_time:
        found = offsets.of_time(value)
        if found is None:
            if not options.latest_if_no_match:
                raise ToolError(
                    f"no record of {key} has the time {value} or a later one;"
                    " startingOffsetsByTimestampStrategy=latest starts at the end instead"
                )
            return offsets.end()
        return found
    if value == EARLIEST:
        return offsets.start
    if value < offsets.start:
        if options.fail_on_data_loss:
            raise ToolError(f"startingOffsets: {key} begins at offset {offsets.start}, {value} is lost")
        return offsets.start
    if options.fail_on_data_loss and value > (end := offsets.end()):
        raise ToolError(f"startingOffsets: {key} ends at offset {end}, {value} is behind it")
    return value


def _end(key: TopicPartition, offsets: LogOffsets, options: ReadOptions) -> int | None:
    value = options.end.of(key)
    if options.end.by_time:
        return offsets.of_time(value)  # None, the end, is what Spark makes of "no such record" here
    if value == LATEST:
        return None
    if options.fail_on_data_loss and value > (end := offsets.end()):
        raise ToolError(f"endingOffsets: {key} ends at offset {end}, before {value}")
    return value


def check_tables(keys: set[TopicPartition], options: ReadOptions) -> None:
    """A table of offsets or times names exactly the partitions that are read, as Spark's Kafka source asks for.

    Raises:
        ToolError: it does not.
    """
    for side, bound in (("starting", options.start), ("ending", options.end)):
        if not isinstance(bound.value, int) and set(bound.value) != keys:
            missing = ", ".join(map(str, sorted(keys - set(bound.value)))) or "none"
            unknown = ", ".join(map(str, sorted(set(bound.value) - keys))) or "none"
            raise ToolError(
                f"the {side} offsets or times must name every partition that is read and no other;"
                f" missing: {missing}, unknown: {unknown}"
            )
