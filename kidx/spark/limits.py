"""How much a micro-batch takes: the limits of Spark's Kafka source, shared out over partitions as there, and bytes."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

import pyspark
from pyspark.sql.datasource import DataSourceStreamReader

from kidx.errors import ToolError
from kidx.tables.batch_walk import BatchWalk
from kidx.tables.indexes import Counter, read_offset_index

if TYPE_CHECKING:
    from kidx.records import RecordBatch
    from kidx.tables.options import Limits
    from kidx.tables.segments import PartitionLog, Segment

try:
    from pyspark.sql.streaming import datasource as _admission
except ImportError:  # Spark 4.0 and 4.1
    _admission = None  # type: ignore[assignment]

KNOWS_LIMITS: Final = _admission is not None
"""Whether this Spark asks a source in Python for a part of what there is: 4.2 and later."""

if KNOWS_LIMITS:

    class LimitedStreamReader(DataSourceStreamReader, _admission.SupportsTriggerAvailableNow):
        """What a reader derives from so that Spark knows that it stops at the end seen at its start."""
else:

    class LimitedStreamReader(DataSourceStreamReader):  # type: ignore[no-redef]
        """What there is before Spark 4.2."""


def refuse_limits(limits: Limits) -> None:
    """Refuses limits that this Spark would not apply.

    Raises:
        ToolError: one is given, and this Spark is older than 4.2.
    """
    given = [name for name in limits.given if name in ("maxOffsetsPerTrigger", "minOffsetsPerTrigger")]
    given += [name for name in limits.given if name in ("maxTriggerDelay", "maxBytesPerTrigger")]
    if given and not KNOWS_LIMITS:
        raise ToolError(f"{', '.join(given)} needs Spark 4.2 or later, and this is {pyspark.__version__}")


def default_limit(limits: Limits) -> Any:
    """The limit that is announced to Spark: one kind of several, which all are applied."""
    if limits.most_offsets is not None:
        return _admission.ReadMaxRows(limits.most_offsets)
    if limits.most_bytes is not None:
        return _admission.ReadMaxBytes(limits.most_bytes)
    if limits.least_offsets is not None:
        return _admission.ReadMinRows(limits.least_offsets)
    return _admission.ReadAllAvailable()


def takes_all(limit: Any) -> bool:
    """Whether Spark asks for all that there is, whatever the options say."""
    return limit is None or isinstance(limit, _admission.ReadAllAvailable)


class Waiting:
    """Whether a micro-batch is worth it, for ``minOffsetsPerTrigger`` and ``maxTriggerDelay``.

    Args:
        clock: seconds.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._last: float | None = None

    def is_over(self, limits: Limits, offsets: int) -> bool:
        """Whether so many new offsets are to be taken now; the first ones always are."""
        now = self._clock()
        late = self._last is None or (now - self._last) * 1000 >= limits.longest_delay
        if not late and offsets < (limits.least_offsets or 0):
            return False
        self._last = now
        return True


def shared_out(limit: int, sizes: Mapping[str, int]) -> dict[str, int]:
    """How much each partition gives of a limit: by what it has, rounded down, but something of each."""
    total = sum(sizes.values())
    return {
        name: size if total <= limit else min(size, max(limit * size // total, min(size, 1)))
        for name, size in sizes.items()
    }


class Range:
    """The offsets of a partition that a stream has not read yet.

    Args:
        log: its segments.
        first: offset.
        end: behind the last.
    """

    def __init__(self, log: PartitionLog, first: int, end: int) -> None:
        self.first, self.end = first, end
        self._segments = [
            segment
            for segment in log.segments
            if segment.base_offset < end and (segment.next_base_offset is None or segment.next_base_offset > first)
        ]

    def bytes(self) -> int:
        """Bytes of logs, about, from index entry to index entry.

        Raises:
            OSError: an index cannot be read.
        """
        return sum(end - start for _, start, end in self._parts())

    def offset_behind(self, most: int) -> int:
        """An offset before which there are so many bytes at most, but a batch at least.

        Raises:
            KidxError, OSError: a log or an index cannot be read.
        """
        for segment, start, end in self._parts():
            if end - start <= most:
                most -= end - start
                continue
            found = self._within(segment, start, most)
            if found is not None:
                return min(found, self.end)
            most = 0
        return self.end

    def _parts(self) -> Iterator[tuple[Segment, int, int]]:
        for segment in self._segments:
            behind = segment.next_base_offset
            begins, ends = self.first <= segment.base_offset, behind is not None and self.end >= behind
            if begins and ends:
                yield segment, 0, segment.size
                continue
            entries = read_offset_index(segment, Counter())
            start = 0 if begins else min(entries.floor(self.first), segment.size)
            end = None if ends else entries.behind(self.end - 1)
            yield segment, start, max(start, segment.size if end is None else min(end, segment.size))

    def _within(self, segment: Segment, start: int, most: int) -> int | None:
        """As :meth:`offset_behind`, in one segment from a place on; None if the segment ends before."""
        entries = read_offset_index(segment, Counter())
        with segment.store.open(segment.file("log")) as reader:

            def walk(position: int) -> BatchWalk:
                return BatchWalk(
                    reader,
                    position,
                    position,
                    reader.size,
                    source=segment.name,
                    wanted=_nothing,
                    may_grow=segment.is_last,
                )

            start = next((at for at, batch, _ in walk(start) if batch.last_offset >= self.first), start)
            slot = int(entries.positions.searchsorted(start + most, side="right")) - 1
            behind = None
            for at, batch, _ in walk(max(start, int(entries.positions[slot])) if slot >= 0 else start):
                if batch.base_offset > self.first and at + batch.size_in_bytes > start + most:
                    return batch.base_offset
                behind = batch.next_offset
        return behind if segment.is_last else None


def _nothing(_: RecordBatch) -> bool:
    return False
