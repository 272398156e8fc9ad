"""Defects of a segment that reads its log: truncations, recoveries and searches."""

from __future__ import annotations

from typing import TYPE_CHECKING

from conformance.implementations.mutants.registry import defect
from kidx.java_numbers import LONG_MAX
from kidx.segment import FetchDataInfo, LogSegment, ProducerState, TimestampAndOffset

if TYPE_CHECKING:
    from kidx import OffsetPosition
    from kidx.segment.recovery import EpochCache

# -- truncating --------------------------------------------------------------------------------------------------------


@defect("SEG-38")
class TruncationLeavesTheTimeIndex(LogSegment):
    """Truncation does not change the time index."""

    def truncate_to(self, offset: int) -> int:
        self.time_index.truncate_to = lambda _: None  # type: ignore[method-assign, assignment]
        try:
            return super().truncate_to(offset)
        finally:
            del self.time_index.truncate_to


@defect("SEG-38")
class TruncationLeavesTheTransactions(LogSegment):
    """Truncation does not change the transaction index."""

    def truncate_to(self, offset: int) -> int:
        self.txn_index.truncate_to = lambda _: None  # type: ignore[method-assign, assignment]
        try:
            return super().truncate_to(offset)
        finally:
            del self.txn_index.truncate_to


@defect("SEG-38")
class TruncationMakesNoRoom(LogSegment):
    """Truncation does not extend the indexes again."""

    def truncate_to(self, offset: int) -> int:
        lengths = self.offset_index.length, self.time_index.length
        cut = super().truncate_to(offset)
        self.offset_index.resize(max(lengths[0], self.offset_index.size_in_bytes))
        self.time_index.resize(max(lengths[1], self.time_index.size_in_bytes))
        return cut


@defect("SEG-38")
class TruncationCountsOn(LogSegment):
    """Truncation does not reset the count of bytes."""

    def truncate_to(self, offset: int) -> int:
        counted = self.bytes_since_last_index_entry
        cut = super().truncate_to(offset)
        self.bytes_since_last_index_entry = counted
        return cut


@defect("SEG-38")
class TruncationKeepsTheMaximum(LogSegment):
    """The largest timestamp is not read again after a truncation."""

    def _reload_maximum(self) -> None:
        pass


@defect("SEG-38")
class TruncationTrustsTheIndex(LogSegment):
    """After a truncation the largest timestamp comes from the last time entry, whatever follows it in the log."""

    def _reload_maximum(self) -> None:
        self.maximum.set(self.time_index.last_entry)


@defect("SEG-38")
class TruncationKeepsTheAge(LogSegment):
    """A segment that was emptied by a truncation is as old as before."""

    def truncate_to(self, offset: int) -> int:
        created = self.created
        cut = super().truncate_to(offset)
        self.created = created
        return cut


@defect("SEG-38")
class TruncationKeepsTheBatch(LogSegment):
    """Truncation inside a batch keeps that batch."""

    def truncate_to(self, offset: int) -> int:
        found = self.translate_offset(offset)
        inside = next((b for b in self.batches() if b.base_offset < offset <= b.last_offset), None)
        return super().truncate_to(offset if found is None or inside is None else inside.last_offset + 1)


# -- recovering --------------------------------------------------------------------------------------------------------


@defect("SEG-30")
class RecoveryForgetsTheLastTimeEntry(LogSegment):
    """A recovery does not append the last time entry."""

    def recover(self, producer_state: ProducerState | None = None, epoch_cache: EpochCache | None = None) -> int:
        cut = super().recover(producer_state, epoch_cache)
        offsets = [entry.offset for entry in self.offset_index]
        if self.time_index.entries and self.time_index.last_entry.offset not in offsets:
            self.time_index._truncate_to_entries(self.time_index.entries - 1)  # noqa: SLF001 -- it is being spoilt
            self.time_index.trim_to_valid_size()
        return cut


@defect("SEG-34")
class RecoveryTrimsNothing(LogSegment):
    """A recovery leaves the indexes preallocated."""

    def recover(self, producer_state: ProducerState | None = None, epoch_cache: EpochCache | None = None) -> int:
        cut = super().recover(producer_state, epoch_cache)
        self.resize_indexes(self.offset_index.max_index_size)
        return cut


@defect("SEG-30")
class RecoveryKeepsInvalidBytes(LogSegment):
    """A recovery leaves invalid bytes in the log."""

    def recover(self, producer_state: ProducerState | None = None, epoch_cache: EpochCache | None = None) -> int:
        self.log.truncate_to = lambda _: 0  # type: ignore[method-assign, assignment]
        try:
            return super().recover(producer_state, epoch_cache)
        finally:
            del self.log.truncate_to


@defect("SEG-30")
class RecoveryKeepsTransactions(LogSegment):
    """A recovery appends to the transaction index instead of rebuilding it."""

    def recover(self, producer_state: ProducerState | None = None, epoch_cache: EpochCache | None = None) -> int:
        self.txn_index.reset = lambda: None  # type: ignore[method-assign]
        try:
            return super().recover(producer_state, epoch_cache)
        finally:
            del self.txn_index.reset


@defect("SEG-30")
class RecoveryKeepsTheMaximum(LogSegment):
    """A recovery continues from the largest timestamp that was known before."""

    def recover(self, producer_state: ProducerState | None = None, epoch_cache: EpochCache | None = None) -> int:
        known = self.maximum.cached()
        cut = super().recover(producer_state, epoch_cache)
        if known is not None and known.timestamp > self.maximum.timestamp:
            self.maximum.set(known)
        return cut


@defect("SEG-30")
class RecoveryBelievesInvalidBatches(LogSegment):
    """A recovery ignores checksums: it keeps the log as far as its batches reach."""

    def recover(self, producer_state: ProducerState | None = None, epoch_cache: EpochCache | None = None) -> int:
        before = self.size
        cut = super().recover(producer_state, epoch_cache)
        return 0 if before else cut


# -- reading -----------------------------------------------------------------------------------------------------------


@defect("SEG-50b")
class AnswersWithTheOffsetAskedFor(LogSegment):
    """A read reports that it begins at the requested offset, as before 4.0."""

    def read(
        self, start_offset: int, max_size: int, max_position: int | None = None, min_one_message: bool = False
    ) -> FetchDataInfo | None:
        found = super().read(start_offset, max_size, max_position, min_one_message)
        return None if found is None else found._replace(message_offset=start_offset)


@defect("SEG-50b")
class IgnoresMinOneMessage(LogSegment):
    """A first batch larger than the fetch is not sent."""

    def read(
        self, start_offset: int, max_size: int, max_position: int | None = None, min_one_message: bool = False
    ) -> FetchDataInfo | None:
        return super().read(start_offset, max_size, max_position, min_one_message=False)


@defect("SEG-40")
class NextOffsetIsTheLast(LogSegment):
    """The next offset is the last batch's own last offset (off by one)."""

    def read_next_offset(self) -> int:
        following = super().read_next_offset()
        return following if following == self.base_offset else following - 1


@defect("SEG-52")
class FindsLaterTimestampsOnly(LogSegment):
    """A search by timestamp wants a record after the target."""

    def find_offset_by_timestamp(self, timestamp: int, starting_offset: int | None = None) -> TimestampAndOffset | None:
        return super().find_offset_by_timestamp(min(timestamp + 1, LONG_MAX), starting_offset)


@defect("SEG-52")
class ForgetsWhereToStart(LogSegment):
    """A search by timestamp ignores the starting offset."""

    def find_offset_by_timestamp(self, timestamp: int, starting_offset: int | None = None) -> TimestampAndOffset | None:
        return super().find_offset_by_timestamp(timestamp, self.base_offset)


@defect("SEG-53")
class HasNoTimestampWithoutRecords(LogSegment):
    """Without timestamps the largest one is -1 instead of the file's own."""

    @property
    def largest_timestamp(self) -> int:
        return self.maximum.timestamp


@defect("OI-21")
class BoundsByTheWrongOffset(LogSegment):
    """The upper bound of a fetch is taken from the entry's position."""

    def fetch_upper_bound_offset(self, start: OffsetPosition, fetch_size: int) -> int | None:
        found = self.offset_index.fetch_upper_bound_offset(start, fetch_size)
        return None if found is None else self.base_offset + found.position
