"""Limits of a micro-batch: the limits of Spark's Kafka source, divided among partitions in the same way, and bytes."""

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
"""True if this Spark can request only a part of the available records from a source in Python: 4.2 and later."""

if KNOWS_LIMITS:

    class LimitedStreamReader(DataSourceStreamReader, _admission.SupportsTriggerAvailableNow):
        """Base class of a reader that can stop at the end of the data when its query started (``AvailableNow``)."""
else:

    class LimitedStreamReader(DataSourceStreamReader):  # type: ignore[no-redef]
        """Base class of a reader before Spark 4.2."""


def reject_limits(limits: Limits) -> None:
    """Reject limits that this version of Spark would not apply.

    Raises:
        ToolError: a limit is given, and this Spark is older than 4.2.
    """
    given = [name for name in limits.given if name in ("maxOffsetsPerTrigger", "minOffsetsPerTrigger")]
    given += [name for name in limits.given if name in ("maxTriggerDelay", "maxBytesPerTrigger")]
    if given and not KNOWS_LIMITS:
        raise ToolError(f"{', '.join(given)} requires Spark 4.2 or later; this is {pyspark.__version__}")


def default_limit(limits: Limits) -> Any:
    """Return the limit that is announced to Spark, which accepts only one kind; the reader applies all limits."""
    if limits.most_offsets is not None:
        return _admission.ReadMaxRows(limits.most_offsets)
    if limits.most_bytes is not None:
        return _admission.ReadMaxBytes(limits.most_bytes)
    if limits.least_offsets is not None:
        return _admission.ReadMinRows(limits.least_offsets)
    return _admission.ReadAllAvailable()


def takes_all(limit: Any) -> bool:
    """Return True if Spark requests all available data, regardless of the options."""
    return limit is None or isinstance(limit, _admission.ReadAllAvailable)


class Waiting:
    """Wait for a minimum number of offsets or a maximum time (``minOffsetsPerTrigger``, ``maxTriggerDelay``).

    Args:
        clock: function that returns seconds.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._last: float | None = None

    def is_over(self, limits: Limits, offsets: int) -> bool:
        """Return True if this number of new offsets is to be read now; the first call always returns True."""
        now = self._clock()
        late = self._last is None or (now - self._last) * 1000 >= limits.longest_delay
        if not late and offsets < (limits.least_offsets or 0):
            return False
        self._last = now
        return True


def shared_out(limit: int, sizes: Mapping[str, int]) -> dict[str, int]:
    """Return each partition's share of a limit: proportional to its data, rounded down, but at least one."""
    total = sum(sizes.values())
    return {
        name: size if total <= limit else min(size, max(limit * size // total, min(size, 1)))
        for name, size in sizes.items()
    }


class Range:
    """Offsets of a partition that a stream has not read yet.

    Args:
        first: first offset.
        end: offset after the last.
    """

    def __init__(self, log: PartitionLog, first: int, end: int) -> None:
        self.first, self.end = first, end
        self._segments = [
            segment
            for segment in log.segments
            if segment.base_offset < end and (segment.next_base_offset is None or segment.next_base_offset > first)
        ]

    def bytes(self) -> int:
        """Return the approximate number of bytes of logs, from index entry to index entry.

        Raises:
            OSError: an index cannot be read.
        """
        return sum(end - start for _, start, end in self._parts())

    def offset_after(self, most: int) -> int:
        """Return the offset after the batches that fit in ``most`` bytes, at least after one batch.

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
            following = segment.next_base_offset
            begins, ends = self.first <= segment.base_offset, following is not None and self.end >= following
            if begins and ends:
                yield segment, 0, segment.size
                continue
            entries = read_offset_index(segment, Counter())
            start = 0 if begins else min(entries.floor(self.first), segment.size)
            end = None if ends else entries.position_after(self.end - 1)
            yield segment, start, max(start, segment.size if end is None else min(end, segment.size))

    def _within(self, segment: Segment, start: int, most: int) -> int | None:
        """Return the offset of :meth:`offset_after` in one segment from a position on; None if all batches fit."""
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
            after = None
            for at, batch, _ in walk(max(start, int(entries.positions[slot])) if slot >= 0 else start):
                if batch.base_offset > self.first and at + batch.size_in_bytes > start + most:
                    return batch.base_offset
                after = batch.next_offset
        return after if segment.is_last else None


def _nothing(_: RecordBatch) -> bool:
    return False
