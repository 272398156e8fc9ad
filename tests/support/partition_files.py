"""Reader of a partition's files, which checks them against invariants.

No module here queries a broker: ``broker_scenario`` compares the files with a broker's responses.
"""

from __future__ import annotations

from bisect import bisect_right
from contextlib import ExitStack
from itertools import pairwise
from typing import TYPE_CHECKING, Self

from conformance.kafka.broker.external import Mismatch
from conformance.kafka.client import OffsetResult
from kidx import OffsetIndex, TimeIndex
from kidx.errors import KidxError
from kidx.records import iter_batches

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path
    from types import TracebackType

    from kidx.dialect import Dialect
    from kidx.records import Record, RecordBatch


Found = tuple[int, int, int | None]
"""Offset, timestamp and leader epoch."""


class Segment:
    """Segment after a clean stop: all its batches, and its indexes opened read-only."""

    def __init__(self, log: Path, dialect: Dialect) -> None:
        self.log = log
        self.base_offset = int(log.stem)
        self._stack = ExitStack()
        self.data = log.read_bytes()
        self.batches = list(iter_batches(self.data, source=str(log)))
        self.offset_index = self._stack.enter_context(
            OffsetIndex(log.with_suffix(".index"), self.base_offset, writable=False, dialect=dialect)
        )
        self.time_index = self._stack.enter_context(
            TimeIndex(log.with_suffix(".timeindex"), self.base_offset, writable=False, dialect=dialect)
        )
        self._positions = [batch.position for batch in self.batches]

    def close(self) -> None:
        """Close the indexes."""
        self._stack.close()

    @property
    def largest_timestamp(self) -> int:
        """Return the largest timestamp in the time index, by which a lookup chooses a segment."""
        return self.time_index.last_entry.timestamp

    def batches_from(self, position: int) -> Iterator[RecordBatch]:
        """Yield the batches of the file from a byte position on, at which a batch must start."""
        return iter_batches(self.data, position, source=str(self.log))

    def batch_at(self, position: int) -> RecordBatch | None:
        """Return the batch that starts at a byte position."""
        place = bisect_right(self._positions, position) - 1
        return self.batches[place] if place >= 0 and self._positions[place] == position else None

    def mismatches(self) -> Iterator[Mismatch]:
        """Check each file of the segment against the clauses."""
        end = self.batches[-1].position + self.batches[-1].size_in_bytes if self.batches else 0
        if end != len(self.data):
            yield Mismatch("RB-4", str(self.log), f"batches up to the end, {len(self.data)}", f"batches up to {end}")
        for index, clause in ((self.offset_index, "OI-11"), (self.time_index, "TI-11")):
            try:
                index.sanity_check()
            except KidxError as error:
                yield Mismatch(clause, str(index.path), "passes the sanity check", str(error))
        yield from self._offset_index_mismatches()
        yield from self._time_index_mismatches()

    def _offset_index_mismatches(self) -> Iterator[Mismatch]:
        path = str(self.offset_index.path)
        entries = list(self.offset_index)
        for before, entry in pairwise(entries):
            if not (before.offset < entry.offset and before.position < entry.position):
                yield Mismatch("OI-3", path, f"an entry behind {before}", str(entry))
        for entry in entries:
            batch = self.batch_at(entry.position)
            # Every append here is one batch, so both the entries per append and those per batch have its last offset
            # and its start.
            if batch is None or entry.offset != batch.last_offset:
                found = f"a batch that ends with {batch.last_offset}" if batch else "no batch"
                yield Mismatch("SEG-5", path, f"{entry} points at the batch that ends with it", found)

    def _time_index_mismatches(self) -> Iterator[Mismatch]:
        path = str(self.time_index.path)
        entries = list(self.time_index)
        for before, entry in pairwise(entries):
            if not (before.timestamp < entry.timestamp and before.offset <= entry.offset):
                yield Mismatch("TI-3", path, f"an entry behind {before}", str(entry))
        for entry in entries:
            # The batch with that offset has this timestamp, and is the first that has it or a later one (SEG-6).
            reached = next((b for b in self.batches if b.max_timestamp >= entry.timestamp), None)
            if reached is None or not (
                reached.max_timestamp == entry.timestamp and reached.base_offset <= entry.offset <= reached.last_offset
            ):
                yield Mismatch(
                    "SEG-6", path, f"{entry} lies in the first batch that reaches its timestamp", str(reached)
                )
        largest = max((batch.max_timestamp for batch in self.batches), default=-1)
        if self.largest_timestamp != largest:
            yield Mismatch(
                "SEG-24", path, f"a last entry with the largest timestamp, {largest}", str(self.largest_timestamp)
            )


class Partition:
    """Directory of a partition after a clean stop; a context manager.

    Args:
        directory: a copy of the directory, which is only read, and which no other program may change.
        dialect: the dialect of the release that wrote the files.

    Raises:
        OSError: a file is missing or cannot be read.
        KidxError: a batch cannot be read.
    """

    def __init__(self, directory: Path, dialect: Dialect) -> None:
        self.dialect = dialect
        self.segments = [Segment(log, dialect) for log in sorted(directory.glob("*.log"))]

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        for segment in self.segments:
            segment.close()

    @property
    def log_start_offset(self) -> int:
        """Return the first offset of the log, from which nothing was deleted."""
        return self.segments[0].base_offset

    def mismatches(self) -> Iterator[Mismatch]:
        """Check every segment against the clauses, and the offsets of adjacent segments."""
        for segment in self.segments:
            yield from segment.mismatches()
        for before, segment in pairwise(self.segments):
            if before.batches and before.batches[-1].next_offset != segment.base_offset:
                end = before.batches[-1].next_offset
                yield Mismatch(
                    "SEG-23", str(segment.log), f"begins with {end}, where the last one ended", segment.log.stem
                )

    # -- results, through the indexes only -------------------------------------------------------------------------

    def answer(self, target: int) -> OffsetResult:
        """Return the result for a timestamp or a special target."""
        found = self._first_record(target) if target >= 0 else self._special(target)
        return OffsetResult(target) if found is None else OffsetResult(target, *found)

    def _first_record(self, target: int) -> Found | None:
        """Return the first record at or after a time (LO-6, SEG-52, FR-1)."""
        segment = next((s for s in self.segments if s.largest_timestamp >= target), None)
        if segment is None:
            return None
        start = self.log_start_offset
        entry = segment.time_index.lookup(target)
        position = segment.offset_index.lookup(max(entry.offset, start)).position
        return _first(
            segment.batches_from(position),
            lambda batch: batch.max_timestamp >= target,
            lambda record: record.timestamp >= target and record.offset >= start,
        )

    def _special(self, special: int) -> Found | None:
        """Return the result that LO-1 to LO-4, LO-9 and LO-10 require, or None."""
        epochs = [batch.partition_leader_epoch for segment in self.segments for batch in segment.batches]
        if special == -1:
            return self.segments[-1].batches[-1].next_offset, -1, epochs[-1]
        if special in {-2, -4}:
            return self.log_start_offset, -1, epochs[0]
        if special == -3:
            return self._max_timestamp(epochs[-1])
        return None  # nothing is tiered

    def _max_timestamp(self, epoch: int) -> Found | None:
        segment = max(self.segments, key=lambda s: s.largest_timestamp)  # the first of equal ones
        largest, offset = segment.time_index.last_entry
        if self.dialect.max_lookup == "remembered":
            return offset, largest, epoch
        return _first(
            segment.batches_from(segment.offset_index.lookup(offset).position),
            lambda batch: batch.max_timestamp == largest,
            lambda record: record.timestamp == largest,
        )


def _first(
    batches: Iterator[RecordBatch], batch_fits: Callable[[RecordBatch], bool], record_fits: Callable[[Record], bool]
) -> Found | None:
    for batch in batches:
        if batch_fits(batch):
            for record in batch:
                if record_fits(record):
                    epoch = batch.partition_leader_epoch
                    return record.offset, record.timestamp, epoch if epoch >= 0 else None
    return None
