"""Defects of a time index: its rule for appending, its last entry, its checks and its results."""

from __future__ import annotations

from pathlib import Path

from conformance.implementations.mutants.registry import defect
from kidx import TimeIndex, TimestampOffset
from kidx.errors import (
    CorruptIndexError,
    IllegalStateError,
    IndexOffsetOverflowError,
    InvalidArgumentError,
    InvalidOffsetError,
)
from kidx.java_numbers import LONG_MAX, to_int

# -- appending ---------------------------------------------------------------------------------------------------------


@defect("AI-6")
class ForgetsTheSlotKeptFree(TimeIndex):
    """A time index is full only once its last slot is taken."""

    @property
    def is_full(self) -> bool:
        return self.entries >= self.max_entries


@defect("TI-3a")
class ChecksFullnessAlways(TimeIndex):
    """The slot that is kept free cannot be used by a roll either."""

    def maybe_append(self, timestamp: int, offset: int, skip_full_check: bool = False) -> None:
        super().maybe_append(timestamp, offset, skip_full_check=False)


@defect("TI-3a")
class NeverChecksFullness(TimeIndex):
    """Every append may use the slot that is kept free."""

    def maybe_append(self, timestamp: int, offset: int, skip_full_check: bool = False) -> None:
        super().maybe_append(timestamp, offset, skip_full_check=True)


@defect("TI-3d")
class AcceptsDuplicateTimestamps(TimeIndex):
    """A timestamp equal to the last one is written once more (``>=`` for ``>``)."""

    def maybe_append(self, timestamp: int, offset: int, skip_full_check: bool = False) -> None:
        entries = self.entries
        super().maybe_append(timestamp, offset, skip_full_check)
        if entries == self.entries and entries and timestamp == self.last_entry.timestamp:
            self._append(timestamp, offset)


@defect("TI-3d")
class AppendsEqualTimestamps(TimeIndex):
    """A timestamp equal to the last one is written as the next millisecond."""

    def maybe_append(self, timestamp: int, offset: int, skip_full_check: bool = False) -> None:
        if self.entries and timestamp == self.last_entry.timestamp and timestamp < LONG_MAX:
            timestamp += 1
        super().maybe_append(timestamp, offset, skip_full_check)


@defect("TI-3c")
class IgnoresTimestampsGoingBack(TimeIndex):
    """A timestamp before the last one is ignored, as an equal one is."""

    def maybe_append(self, timestamp: int, offset: int, skip_full_check: bool = False) -> None:
        try:
            super().maybe_append(timestamp, offset, skip_full_check)
        except IllegalStateError:
            if not self.entries or timestamp >= self.last_entry.timestamp:
                raise


@defect("TI-3b")
class RefusesEqualOffsets(TimeIndex):
    """An offset must exceed the last one (``<=`` for ``<``)."""

    def maybe_append(self, timestamp: int, offset: int, skip_full_check: bool = False) -> None:
        if self.entries and offset == self.last_entry.offset and (skip_full_check or not self.is_full):
            raise InvalidOffsetError("equal", self._out_of_order_text(f"an offset ({offset})", "offset"))
        super().maybe_append(timestamp, offset, skip_full_check)


@defect("TI-3b")
class ForgetsTheOrderOfOffsets(TimeIndex):
    """An offset below the last one is taken."""

    def maybe_append(self, timestamp: int, offset: int, skip_full_check: bool = False) -> None:
        last = self._last_entry
        if self.entries and offset < last.offset and timestamp > last.timestamp:
            self._last_entry = last._replace(offset=offset)
        try:
            super().maybe_append(timestamp, offset, skip_full_check)
        except (InvalidArgumentError, IllegalStateError):
            self._last_entry = last
            raise


@defect("TI-3c")
class ChecksTheTimestampFirst(TimeIndex):
    """A timestamp that goes back is noticed before an offset that does."""

    def maybe_append(self, timestamp: int, offset: int, skip_full_check: bool = False) -> None:
        last = self._last_entry
        if self.entries and timestamp < last.timestamp and (skip_full_check or not self.is_full):
            raise IllegalStateError(
                "back", self._out_of_order_text(f"a timestamp ({timestamp})", f"timestamp appended ({last.timestamp})")
            )
        super().maybe_append(timestamp, offset, skip_full_check)


@defect("TI-3e")
class ChecksIgnoredOffsets(TimeIndex):
    """An entry whose timestamp is not later is rejected nevertheless if its offset does not fit."""

    def maybe_append(self, timestamp: int, offset: int, skip_full_check: bool = False) -> None:
        super().maybe_append(timestamp, offset, skip_full_check)
        self.relative_offset(offset)


@defect("TI-20a")
class LeavesNoStrayTimestamp(TimeIndex):
    """The offset is checked before the timestamp is written."""

    def _append(self, timestamp: int, offset: int) -> None:
        self._mapped()
        self.relative_offset(offset)
        super()._append(timestamp, offset)


@defect("TI-20b")
class TakesTheTimestampBack(TimeIndex):
    """After a rejected offset the write position moves back to the last entry."""

    def _append(self, timestamp: int, offset: int) -> None:
        position = self._mapped().position
        try:
            super()._append(timestamp, offset)
        except IndexOffsetOverflowError:
            self._mapped().seek(position)
            raise


@defect("AI-8")
class WrapsTheOffset(TimeIndex):
    """An offset that does not fit wraps around."""

    def relative_offset(self, offset: int) -> int:
        return to_int(offset - self.base_offset)


@defect("TI-3d")
class TakesZeroForNoTimestamp(TimeIndex):
    """The epoch itself counts as "no timestamp" in an empty index."""

    def maybe_append(self, timestamp: int, offset: int, skip_full_check: bool = False) -> None:
        if self.entries or timestamp != 0 or (self.is_full and not skip_full_check):
            super().maybe_append(timestamp, offset, skip_full_check)


# -- the last entry ----------------------------------------------------------------------------------------------------


@defect("TI-2")
class NoTimestampIsZero(TimeIndex):
    """The last timestamp of an empty index is 0."""

    @property
    def last_entry(self) -> TimestampOffset:
        last = super().last_entry
        return last if self.entries else last._replace(timestamp=0)


@defect("TI-2")
class LastOffsetOfNothingIsZero(TimeIndex):
    """The last offset of an empty index is 0 instead of the base offset."""

    @property
    def last_entry(self) -> TimestampOffset:
        last = super().last_entry
        return last if self.entries else last._replace(offset=0)


@defect("TI-2")
class StaleEntryAfterTruncation(TimeIndex):
    """A truncation leaves the last entry as it was remembered."""

    def truncate_to(self, offset: int) -> None:
        last = self._last_entry
        super().truncate_to(offset)
        self._last_entry = last


@defect("TI-2")
class StaleEntryAfterReopening(TimeIndex):
    """The last entry of an existing file is not read when it is opened."""

    def __init__(
        self, path: str | Path, base_offset: int, size: int = -1, writable: bool = True, **options: str
    ) -> None:
        super().__init__(path, base_offset, size, writable, **options)
        self._last_entry = TimestampOffset(-1, base_offset)


@defect("TI-10")
class KeepsTheEntryOverAResize(TimeIndex):
    """A resize does not read the last entry again."""

    def resize(self, new_size: int) -> bool:
        last = self._last_entry
        resized = super().resize(new_size)
        self._last_entry = last
        return resized


# -- reading and truncating --------------------------------------------------------------------------------------------


@defect("TI-7")
class AnswersWithTheNext(TimeIndex):
    """A lookup takes the next millisecond for the target."""

    def lookup(self, timestamp: int, *arguments: object, **options: object) -> TimestampOffset:
        return super().lookup(min(timestamp + 1, LONG_MAX), *arguments, **options)  # type: ignore[arg-type]


@defect("TI-7")
class AnswersWithTheTarget(TimeIndex):
    """Before the first entry a lookup answers with the target's own timestamp instead of -1."""

    def lookup(self, timestamp: int, *arguments: object, **options: object) -> TimestampOffset:
        found = super().lookup(timestamp, *arguments, **options)  # type: ignore[arg-type]
        return found._replace(timestamp=timestamp) if found.timestamp == -1 else found


@defect("TI-7")
class LosesSeconds(TimeIndex):
    """A lookup compares only whole seconds of the target."""

    def lookup(self, timestamp: int, *arguments: object, **options: object) -> TimestampOffset:
        return super().lookup(timestamp // 1000 * 1000, *arguments, **options)  # type: ignore[arg-type]


@defect("TI-9")
class TruncatesByTimestamp(TimeIndex):
    """Truncation compares timestamps instead of offsets."""

    def truncate_to(self, offset: int) -> None:
        kept = [entry for entry in self if entry.timestamp < offset]
        super().truncate_to(offset)
        if len(kept) < self.entries:
            self._truncate_to_entries(len(kept))


@defect("TI-9")
class KeepsTheEqualTime(TimeIndex):
    """Truncation keeps the entry of exactly the offset."""

    def truncate_to(self, offset: int) -> None:
        super().truncate_to(min(offset + 1, LONG_MAX))


@defect("TI-8a")
class RefusesTheLastSlot(TimeIndex):
    """The last entry cannot be read by its slot (off by one)."""

    def entry(self, n: int) -> TimestampOffset:
        return super().entry(n + 1 if n == self.entries - 1 else n)


# -- checking ----------------------------------------------------------------------------------------------------------


@defect("TI-11a")
class ForgetsTheTimestampCheck(TimeIndex):
    """The sanity check does not compare the last timestamp with the first."""

    def sanity_check(self) -> None:
        try:
            super().sanity_check()
        except CorruptIndexError as error:
            if "timestamp is" not in str(error.kafka_message):
                raise


@defect("TI-11a")
class ForgetsTheTimesOffsetCheck(TimeIndex):
    """The sanity check does not compare the last offset with the base."""

    def sanity_check(self) -> None:
        try:
            super().sanity_check()
        except CorruptIndexError as error:
            if "offset is" not in str(error.kafka_message):
                raise


@defect("TI-11a")
class ForgetsTheTimesLengthCheck(TimeIndex):
    """The sanity check ignores the length."""

    def sanity_check(self) -> None:
        try:
            super().sanity_check()
        except CorruptIndexError as error:
            if "multiple" not in str(error.kafka_message):
                raise


@defect("TI-11a")
class DoubtsEqualTimestamps(TimeIndex):
    """The sanity check rejects a last timestamp equal to the first, as an index of one entry has it."""

    def sanity_check(self) -> None:
        super().sanity_check()
        if self.entries and self.entry(0).timestamp == self.last_entry.timestamp:
            raise CorruptIndexError("equal", "Corrupt time index found")


@defect("TI-11a")
class ChecksTheLengthFirst(TimeIndex):
    """The sanity check reads the length before the entries."""

    def sanity_check(self) -> None:
        if self.length % self.entry_size:
            entries, self.entries = self.entries, 0
            try:
                super().sanity_check()
            finally:
                self.entries = entries
        super().sanity_check()
