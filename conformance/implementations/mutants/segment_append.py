"""Defects of a growing segment: index entries, rolls and closing."""

from __future__ import annotations

import contextlib

from conformance.implementations.mutants.registry import PER_APPEND, TRIMMING, defect
from kidx import TimestampOffset
from kidx.dialect import with_overrides
from kidx.errors import KidxError
from kidx.java_numbers import INT_MAX, LONG_MAX, to_int, to_long
from kidx.segment import CompletedTxn, LogSegment, RollParams

# -- indexing ----------------------------------------------------------------------------------------------------------


@defect("SEG-4")
class IntervalReached(LogSegment):
    """An entry is due once the interval is reached, not once it is exceeded (``>=`` for ``>``)."""

    def _index(self, last_offset: int, position: int, timestamp: int, offset: int, size: int) -> None:
        if self.bytes_since_last_index_entry == self.index_interval_bytes:
            self.bytes_since_last_index_entry += 1
        super()._index(last_offset, position, timestamp, offset, size)


@defect("SEG-4")
class CountsTheBytesFirst(LogSegment):
    """The bytes of a batch count before the check whether an entry is due."""

    def _index(self, last_offset: int, position: int, timestamp: int, offset: int, size: int) -> None:
        self.bytes_since_last_index_entry += size
        before = self.bytes_since_last_index_entry
        super()._index(last_offset, position, timestamp, offset, 0)
        if self.bytes_since_last_index_entry != before:
            self.bytes_since_last_index_entry = 0


@defect("SEG-4")
class NeverStartsCountingAnew(LogSegment):
    """Bytes are counted from the start of the segment, not from the last entry."""

    def _index(self, last_offset: int, position: int, timestamp: int, offset: int, size: int) -> None:
        counted = self.bytes_since_last_index_entry
        super()._index(last_offset, position, timestamp, offset, size)
        self.bytes_since_last_index_entry = counted + size


@defect("SEG-7")
class CountsTheIndexedBatchOut(LogSegment):
    """The batch that gets an entry does not count towards the next one."""

    def _index(self, last_offset: int, position: int, timestamp: int, offset: int, size: int) -> None:
        super()._index(last_offset, position, timestamp, offset, size)
        if self.bytes_since_last_index_entry == size and position > 0:
            self.bytes_since_last_index_entry = 0


@defect("SEG-5")
class IndexesTheEndOfTheBatch(LogSegment):
    """An entry points after its batch."""

    def _index(self, last_offset: int, position: int, timestamp: int, offset: int, size: int) -> None:
        super()._index(last_offset, position + size, timestamp, offset, size)


@defect("SEG-5")
class IndexesTheOffsetBehind(LogSegment):
    """An entry's offset is the one after the batch instead of its last."""

    def _index(self, last_offset: int, position: int, timestamp: int, offset: int, size: int) -> None:
        super()._index(last_offset + 1, position, timestamp, offset, size)


@defect("SEG-6")
class LatestBatchOwnsTheMaximum(LogSegment):
    """Of batches with the same largest timestamp the last one owns it."""

    def _index(self, last_offset: int, position: int, timestamp: int, offset: int, size: int) -> None:
        if timestamp >= 0 and timestamp == self.maximum.timestamp:
            self.maximum.set(TimestampOffset(timestamp, offset))
        super()._index(last_offset, position, timestamp, offset, size)


@defect("SEG-4")
class IndexesTheBatchsOwnTimestamp(LogSegment):
    """A time entry holds the timestamp of the batch that is due, not the largest so far."""

    def _index(self, last_offset: int, position: int, timestamp: int, offset: int, size: int) -> None:
        due = self.bytes_since_last_index_entry > self.index_interval_bytes
        largest = self.max_timestamp_so_far
        if due and 0 <= timestamp < largest.timestamp:
            self.maximum.set(TimestampOffset(timestamp, offset))
        super()._index(last_offset, position, timestamp, offset, size)
        if due and 0 <= timestamp < largest.timestamp:
            self.maximum.set(largest)


@defect("SEG-4")
class IndexesTimesAlways(LogSegment):
    """Every batch gets a time entry."""

    def _index(self, last_offset: int, position: int, timestamp: int, offset: int, size: int) -> None:
        super()._index(last_offset, position, timestamp, offset, size)
        self.time_index.maybe_append(self.maximum.timestamp, self.maximum.offset)


@defect("SEG-4")
class IndexesOnceAnAppend(LogSegment):
    """An append of several batches gets one entry, as before 3.9.1."""

    def append(self, records: bytes, **info: int | None) -> None:
        dialect = self.dialect
        self.dialect = with_overrides(dialect, append_per_batch=False)
        try:
            super().append(records, **info)
        finally:
            self.dialect = dialect


@defect("SEG-3", release=PER_APPEND)
class IndexesEveryBatch(LogSegment):
    """Every batch of an append may get an entry, a release too early."""

    def append(self, records: bytes, **info: int | None) -> None:
        dialect = self.dialect
        self.dialect = with_overrides(dialect, append_per_batch=True)
        try:
            super().append(records, **info)
        finally:
            self.dialect = dialect


@defect("SEG-10a", release=PER_APPEND)
class ForgetsTheFirstTimestamp(LogSegment):
    """The first append does not set the timestamp that the age is counted from."""

    def append(self, records: bytes, **info: int | None) -> None:
        rolling = self.rolling_based_timestamp
        super().append(records, **info)
        self.rolling_based_timestamp = rolling


@defect("SEG-2b")
class ChecksNoOffset(LogSegment):
    """An offset out of the range of the indexes is appended."""

    def ensure_offset_in_range(self, offset: int) -> None:
        with contextlib.suppress(KidxError):
            super().ensure_offset_in_range(offset)


@defect("TX-15")
class NotesCommittedTransactions(LogSegment):
    """Committed transactions get into the index too."""

    def update_txn_index(self, completed: CompletedTxn, last_stable_offset: int) -> None:
        super().update_txn_index(completed._replace(is_aborted=True), last_stable_offset)


@defect("SEG-13")
class CopiesFromTheStart(LogSegment):
    """Copying from a file begins at its first byte, whatever position is requested."""

    def append_from_file(self, records: object, start: int = 0) -> int:
        return super().append_from_file(records, 0) - start  # type: ignore[arg-type]


# -- rolling and closing -----------------------------------------------------------------------------------------------


@defect("SEG-20")
class RollsWhenExactlyFull(LogSegment):
    """A segment rolls although the appended bytes would just fit (``>=`` for ``>``)."""

    def should_roll(self, params: RollParams) -> bool:
        exact = self.size == to_int(params.max_segment_bytes - params.messages_size)
        return super().should_roll(params) or exact


@defect("SEG-20")
class RollsEmptySegments(LogSegment):
    """An empty segment rolls when its time has come."""

    def should_roll(self, params: RollParams) -> bool:
        waited = self.time_waited_for_roll(params.now, params.max_timestamp_in_messages)
        late = waited > to_long(params.max_segment_ms - self.roll_jitter_ms)
        return super().should_roll(params) or late


@defect("SEG-20")
class NeverRollsByTime(LogSegment):
    """Age is no reason to roll."""

    def should_roll(self, params: RollParams) -> bool:
        jitter, self.roll_jitter_ms = self.roll_jitter_ms, 0
        try:
            return super().should_roll(params._replace(max_segment_ms=LONG_MAX))
        finally:
            self.roll_jitter_ms = jitter


@defect("SEG-21")
class RollsLateByTheJitter(LogSegment):
    """The jitter delays a roll instead of bringing it forward."""

    def should_roll(self, params: RollParams) -> bool:
        self.roll_jitter_ms = -self.roll_jitter_ms
        try:
            return super().should_roll(params)
        finally:
            self.roll_jitter_ms = -self.roll_jitter_ms


@defect("SEG-20")
class IgnoresAFullTimeIndex(LogSegment):
    """A full time index is no reason to roll."""

    def should_roll(self, params: RollParams) -> bool:
        entries = self.time_index.max_entries
        self.time_index.max_entries = INT_MAX
        try:
            return super().should_roll(params)
        finally:
            self.time_index.max_entries = entries


@defect("SEG-20")
class IgnoresAFullOffsetIndex(LogSegment):
    """A full offset index is no reason to roll."""

    def should_roll(self, params: RollParams) -> bool:
        entries = self.offset_index.max_entries
        self.offset_index.max_entries = INT_MAX
        try:
            return super().should_roll(params)
        finally:
            self.offset_index.max_entries = entries


@defect("SEG-20")
class RollsOnlyBehindTheRange(LogSegment):
    """An offset that does not fit is no reason to roll."""

    def should_roll(self, params: RollParams) -> bool:
        return super().should_roll(params._replace(max_offset_in_messages=self.base_offset))


@defect("SEG-20")
class WaitsFromCreation(LogSegment):
    """The age is counted from the creation even where the first batch has a timestamp."""

    def time_waited_for_roll(self, now: int, message_timestamp: int) -> int:
        super().time_waited_for_roll(now, message_timestamp)
        return to_long(now - self.created)


@defect("SEG-22")
class BecomesInactiveWithoutTheLastEntry(LogSegment):
    """A roll does not append the last time entry."""

    def on_become_inactive_segment(self) -> None:
        self.offset_index.trim_to_valid_size()
        self.time_index.trim_to_valid_size()
        self.log.trim()


@defect("SEG-22")
class BecomesInactiveUntrimmed(LogSegment):
    """A roll does not trim the time index."""

    def on_become_inactive_segment(self) -> None:
        self._append_last_time_entry()
        self.offset_index.trim_to_valid_size()
        self.log.trim()


@defect("SEG-22")
class RespectsTheSlotKeptFree(LogSegment):
    """The last time entry is rejected by a full time index."""

    def _append_last_time_entry(self) -> None:
        self.time_index.maybe_append(self.maximum.timestamp, self.maximum.offset)


@defect("SEG-24b", release=TRIMMING)
class ClosesWithoutTheLastEntry(LogSegment):
    """Closing does not append the last time entry."""

    def close(self) -> None:
        self.close_files()


@defect("SEG-24c")
class FinishesWhenClosing(LogSegment):
    """Closing appends the last time entry, which 4.4 has given up."""

    def close(self) -> None:
        if self.maximum.is_known:
            with contextlib.suppress(KidxError, OSError):
                self._append_last_time_entry()
        super().close()


@defect("SEG-25")
class ResizesOneIndexOnly(LogSegment):
    """Resizing does not change the time index."""

    def resize_indexes(self, size: int) -> None:
        self.offset_index.resize(size)


@defect("SEG-35")
class LoadsWithoutAnIndex(LogSegment):
    """A missing offset index is no reason for a recovery."""

    def sanity_check(self, time_index_file_newly_created: bool) -> None:
        with contextlib.suppress(FileNotFoundError):
            super().sanity_check(time_index_file_newly_created)


@defect("SEG-35")
class KeepsRoomInANewTimeIndex(LogSegment):
    """A missing time index comes back preallocated."""

    def sanity_check(self, time_index_file_newly_created: bool) -> None:
        super().sanity_check(time_index_file_newly_created=False)
