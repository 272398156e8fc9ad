"""Choices of segments that are classes, see :mod:`conformance.implementations.mutants.choices`."""

from __future__ import annotations

import contextlib
from copy import deepcopy
from typing import TYPE_CHECKING, Final

from conformance.implementations.mutants.choices import choose_class, choose_defect
from conformance.implementations.mutants.planting import overwrite_bytes
from conformance.implementations.mutants.segment import CopiesFromTheStart, CountsTheIndexedBatchOut
from kidx.errors import InvalidOffsetError
from kidx.java_values import LONG_MAX, LONG_MIN
from kidx.producers import ProducerState
from kidx.records import CorruptRecordError, InvalidRecordError, iter_memory_batches
from kidx.segment import LogSegment

if TYPE_CHECKING:
    from kidx.records import RecordBatch
    from kidx.segment.segment import EpochCache

TRIMMING_AND_TELLING: Final = "4.3.1"
"""The newest release whose close trims the index files, and reports that it cannot."""


class OpensItsIndexes(LogSegment):
    """Opening a segment opens its indexes, too."""

    def __init__(self, *arguments: object, **named: object) -> None:
        super().__init__(*arguments, **named)  # type: ignore[arg-type]
        for lazy in (self.lazy_offset_index, self.lazy_time_index):
            with contextlib.suppress(OSError, ValueError):
                lazy.get()


class ChecksEachBatch(LogSegment):
    """Each batch of an append has to fit relative to the base offset."""

    def append(self, records: bytes, **info: int | None) -> None:
        for batch in iter_memory_batches(records):
            self.ensure_offset_in_range(batch.last_offset)
        super().append(records, **info)


class _Indexing(LogSegment):
    """Base of a segment that adds its index entries after an append; what else it remembers is as promised."""

    def append(self, records: bytes, **info: int | None) -> None:
        position, counted, interval = self.size, self.bytes_since_last_index_entry, self.index_interval_bytes
        self.index_interval_bytes = LONG_MAX
        try:
            super().append(records, **info)
        finally:
            self.index_interval_bytes = interval
        self.bytes_since_last_index_entry = counted
        for last_offset, size in self.parts(records):
            self._index(last_offset, position, LONG_MIN, 0, size)
            position += size

    @staticmethod
    def parts(records: bytes) -> list[tuple[int, int]]:
        """Return the last offset and the size of everything that may get an entry: of each batch."""
        return [(batch.last_offset, batch.size_in_bytes) for batch in iter_memory_batches(records)]


class IndexesEachBatch(_Indexing):
    """Every batch of an append may get an index entry."""


class IndexesEachAppend(_Indexing):
    """An append of several batches gets one index entry."""

    @staticmethod
    def parts(records: bytes) -> list[tuple[int, int]]:
        return [(last_offset, len(records)) for last_offset, _ in _Indexing.parts(records)[-1:]]


class RebuildsFewerEntries(LogSegment):
    """A recovery adds an index entry only every other time."""

    def _index_batches(self, state: ProducerState, epoch_cache: EpochCache | None) -> int:
        interval = self.index_interval_bytes
        self.index_interval_bytes = 2 * interval + 1
        try:
            return super()._index_batches(state, epoch_cache)
        finally:
            self.index_interval_bytes = interval


class TakesBackWhatItRejects(LogSegment):
    """The bytes of an append whose index entry is rejected are removed again."""

    def append(self, records: bytes, **info: int | None) -> None:
        size = self.size
        try:
            super().append(records, **info)
        except InvalidOffsetError:
            self.log.truncate_to(size)
            raise


class ClosesInSilence(LogSegment):
    """A close reports no error."""

    def close(self) -> None:
        with contextlib.suppress(OSError):
            super().close()


class CutsUnreadableMarkers(LogSegment):
    """A recovery also cuts the batch whose marker it cannot read."""

    def recover(self, producer_state: ProducerState | None = None, epoch_cache: EpochCache | None = None) -> int:
        state = ProducerState(dialect=self.dialect) if producer_state is None else producer_state
        self._unreadable: RecordBatch | None = None
        before = deepcopy(state)
        size = self.size
        truncated = super().recover(state, epoch_cache)
        if self._unreadable is not None:
            self.log.truncate_to(size - truncated - self._unreadable.size_in_bytes)
            super().recover(before, epoch_cache)
        return size - self.size

    def _record_producer(self, batch: RecordBatch, state: ProducerState) -> None:
        try:
            super()._record_producer(batch, state)
        except (CorruptRecordError, InvalidRecordError):
            self._unreadable = batch
            raise


class IsNotFullAfterRecovery(LogSegment):
    """The indexes of a recovered segment are trimmed, and would take more entries."""

    def recover(self, producer_state: ProducerState | None = None, epoch_cache: EpochCache | None = None) -> int:
        cut = super().recover(producer_state, epoch_cache)
        for index in (self.offset_index, self.time_index):
            index.max_entries += 2
        return cut


class RemovesEntries(LogSegment):
    """A truncation fills the indexes with zeros."""

    def truncate_to(self, offset: int) -> int:
        cut = super().truncate_to(offset)
        for index in (self.offset_index, self.time_index):
            index.truncate()
            for at in range(0, index.length - 3, 4):
                overwrite_bytes(index, at, lambda data: bytes(len(data)))
        return cut


class RecoversAnything(LogSegment):
    """A recovery has space for as many index entries as it needs."""

    def recover(self, producer_state: ProducerState | None = None, epoch_cache: EpochCache | None = None) -> int:
        sizes = [index.max_index_size for index in (self.offset_index, self.time_index)]
        for index in (self.offset_index, self.time_index):
            index.max_index_size = 1 << 16
        try:
            return super().recover(producer_state, epoch_cache)
        finally:
            self.offset_index.max_index_size, self.time_index.max_index_size = sizes


class SkipsEntriesWhenFull(LogSegment):
    """An append for whose entry an index has no space adds no entry."""

    def _index(self, last_offset: int, position: int, timestamp: int, offset: int, size: int) -> None:
        interval = self.index_interval_bytes
        if self.offset_index.is_full or self.time_index.is_full:
            self.index_interval_bytes = LONG_MAX
        try:
            super()._index(last_offset, position, timestamp, offset, size)
        finally:
            self.index_interval_bytes = interval


choose_class("SEG-1 LZ-1", "segment", OpensItsIndexes)
choose_class("SEG-2c", "segment", ChecksEachBatch)
choose_class("SEG-3", "segment", IndexesEachBatch)
choose_class("SEG-4", "segment", IndexesEachAppend)
choose_class("SEG-7", "segment", CountsTheIndexedBatchOut)
choose_class("SEG-9", "segment", RebuildsFewerEntries)
choose_class("SEG-12", "segment", TakesBackWhatItRejects)
choose_class("SEG-13", "segment", CopiesFromTheStart)
choose_class("SEG-24e", "segment", ClosesInSilence, TRIMMING_AND_TELLING)
choose_class("SEG-42", "segment", CutsUnreadableMarkers)
choose_defect("SEG-25", "segment", "resizes-one-index-only")
choose_class("SEG-34", "segment", IsNotFullAfterRecovery)
