"""Defects of an offset index: its entries, its last offset, its checks and its results."""

from __future__ import annotations

from pathlib import Path

from conformance.implementations.mutants.patching import spoil
from conformance.implementations.mutants.registry import defect
from kidx import OffsetIndex, OffsetPosition
from kidx.errors import (
    CorruptIndexError,
    IndexOffsetOverflowError,
    InvalidArgumentError,
    InvalidOffsetError,
)
from kidx.java_numbers import INT_MAX, to_int, to_long

# -- appending ---------------------------------------------------------------------------------------------------------


@defect("OI-3")
class IgnoresTheEqualOffset(OffsetIndex):
    """An offset equal to the last one is ignored instead of rejected."""

    def append(self, offset: int, position: int) -> None:
        if not (self.entries and not self.is_full and offset == self.last_offset):
            super().append(offset, position)


@defect("OI-3")
class ChecksTheOrderFirst(OffsetIndex):
    """A full index checks the order of offsets before it checks whether it is full."""

    def append(self, offset: int, position: int) -> None:
        if self.is_full and self.entries and offset <= self.last_offset:
            raise InvalidOffsetError("out of order", self._out_of_order_text(offset))
        super().append(offset, position)


@defect("OI-3")
class ChecksTheRangeFirst(OffsetIndex):
    """The check that an offset fits precedes the check of its order."""

    def append(self, offset: int, position: int) -> None:
        if not self.is_full:
            self.relative_offset(offset)
        super().append(offset, position)


@defect("OI-5")
class RefusesTheBaseOffset(OffsetIndex):
    """The first entry must lie above the base offset, because the last offset of an empty index is the base."""

    def append(self, offset: int, position: int) -> None:
        if not self.entries and not self.is_full and offset <= self.base_offset:
            raise InvalidOffsetError("out of order", self._out_of_order_text(offset))
        super().append(offset, position)


@defect("OI-3")
class WritesBeforeItChecks(OffsetIndex):
    """A rejected offset has been written after the last entry."""

    def append(self, offset: int, position: int) -> None:
        try:
            super().append(offset, position)
        except InvalidOffsetError:
            if self.length >= (self.entries + 1) * 8:
                spoil(self, self.entries * 8, lambda data: bytes(len(data) - 1) + b"\x01")
            raise


@defect("OI-2")
class RemembersWhatWasRefused(OffsetIndex):
    """The last offset is set before the offset's range is checked."""

    def append(self, offset: int, position: int) -> None:
        try:
            super().append(offset, position)
        except IndexOffsetOverflowError:
            self._last_offset = offset
            raise


@defect("AI-8")
class TakesOffsetsBelowTheBase(OffsetIndex):
    """Only the upper end of the range of offsets is checked."""

    def relative_offset(self, offset: int) -> int:
        relative = to_long(offset - self.base_offset)
        return to_int(relative) if relative < 0 else super().relative_offset(offset)


@defect("AI-8")
class TakesUnsignedOffsets(OffsetIndex):
    """Relative offsets may take all 32 bits, as if they were unsigned."""

    def relative_offset(self, offset: int) -> int:
        relative = to_long(offset - self.base_offset)
        return to_int(relative) if INT_MAX < relative < 1 << 32 else super().relative_offset(offset)


@defect("AI-8")
class StopsOneBelowTheRange(OffsetIndex):
    """The largest relative offset is taken to be one less than it is."""

    def relative_offset(self, offset: int) -> int:
        return super().relative_offset(offset + 1) - 1 if offset > self.base_offset else super().relative_offset(offset)


@defect("OI-1")
class LittleEndian(OffsetIndex):
    """Offsets are written with the lowest byte first."""

    def append(self, offset: int, position: int) -> None:
        super().append(offset, position)
        spoil(self, (self.entries - 1) * 8, lambda data: data[::-1])


@defect("OI-1")
class WritesThePositionFirst(OffsetIndex):
    """Position and offset change places in the entry."""

    def append(self, offset: int, position: int) -> None:
        super().append(offset, position)
        first = (self.entries - 1) * 8
        relative = to_int(offset - self.base_offset)
        spoil(self, first, lambda _: to_int(position).to_bytes(4, "big", signed=True))
        spoil(self, first + 4, lambda _: relative.to_bytes(4, "big", signed=True))


@defect("OI-3")
class RefusesPositionsGoingBack(OffsetIndex):
    """Positions are validated although no clause promises it."""

    def append(self, offset: int, position: int) -> None:
        if self.entries and not self.is_full and position < self.entry(self.entries - 1).position:
            raise InvalidArgumentError("the position goes back", None)
        super().append(offset, position)


@defect("OI-13")
class WritesThoughReadOnly(OffsetIndex):
    """An index opened read-only is mapped for writing all the same."""

    def __init__(
        self, path: str | Path, base_offset: int, size: int = -1, writable: bool = True, **options: str
    ) -> None:
        super().__init__(path, base_offset, size, writable or Path(path).exists(), **options)


@defect("OI-4b")
class OtherWords(OffsetIndex):
    """The text of an error has one character too many."""

    def append(self, offset: int, position: int) -> None:
        try:
            super().append(offset, position)
        except InvalidOffsetError as error:
            raise InvalidOffsetError(str(error), f"{error.kafka_message}!") from None


@defect("OI-3")
class OtherRefusal(OffsetIndex):
    """An offset out of order raises another exception."""

    def append(self, offset: int, position: int) -> None:
        try:
            super().append(offset, position)
        except InvalidOffsetError as error:
            raise CorruptIndexError(str(error), error.kafka_message) from None


@defect("AI-6")
class NeverFull(OffsetIndex):
    """An index is full only once it holds more entries than fit."""

    @property
    def is_full(self) -> bool:
        return self.entries > self.max_entries


@defect("AI-6")
class KeepsASlotFree(OffsetIndex):
    """An offset index reserves its last slot, as only a time index does."""

    @property
    def is_full(self) -> bool:
        return self.entries >= self.max_entries - 1


# -- reading -----------------------------------------------------------------------------------------------------------


@defect("OI-8a")
class ReadsOneSlotTooFar(OffsetIndex):
    """The slot after the last entry can be read (``>`` for ``>=``)."""

    def entry(self, n: int) -> OffsetPosition:
        return self._parse(self._mapped(), n) if n == self.entries else super().entry(n)


@defect("OI-8a")
class EntriesAreRelative(OffsetIndex):
    """An entry's offset is the stored one, without the base."""

    def entry(self, n: int) -> OffsetPosition:
        found = super().entry(n)
        return found._replace(offset=found.offset - self.base_offset)


@defect("OI-8d")
class CountsSlotsFromTheEnd(OffsetIndex):
    """Slot -1 is the last entry, as in a Python list."""

    def entry(self, n: int) -> OffsetPosition:
        return super().entry(self.entries - 1 if n == -1 and self.entries else n)


@defect("AI-9")
class ReadsOffsetsUnsigned(OffsetIndex):
    """A stored relative offset is read as an unsigned number."""

    def _absolute_offset(self, relative: int) -> int:
        return super()._absolute_offset(relative & 0xFFFFFFFF)


@defect("OI-1")
class ReadsPositionsUnsigned(OffsetIndex):
    """A stored position is read as an unsigned number."""

    def lookup(self, target: int, *arguments: object, **options: object) -> OffsetPosition:
        offset, position = super().lookup(target, *arguments, **options)  # type: ignore[arg-type]
        return OffsetPosition(offset, position & 0xFFFFFFFF)


@defect("OI-7")
class AnswersWithTheFirstEntry(OffsetIndex):
    """Below the first entry a lookup answers with that entry instead of the base offset and position 0."""

    def lookup(self, target: int, *arguments: object, **options: object) -> OffsetPosition:
        first = self.entry(0) if self.entries else None
        if first is not None and target < first.offset:
            return first
        return super().lookup(target, *arguments, **options)  # type: ignore[arg-type]


@defect("OI-7")
class LooksStrictlyBelow(OffsetIndex):
    """A lookup answers with the entry below the target, even if one is equal."""

    def lookup(self, target: int, *arguments: object, **options: object) -> OffsetPosition:
        return super().lookup(to_long(target - 1), *arguments, **options)  # type: ignore[arg-type]


@defect("AI-32")
class OneTooLowAtTheWarmEdge(OffsetIndex):
    """A lookup of the first entry of the warm section answers with the entry before it."""

    def lookup(self, target: int, *arguments: object, **options: object) -> OffsetPosition:
        found = super().lookup(target, *arguments, **options)  # type: ignore[arg-type]
        edge = self.entries - 1 - 1024
        return self.entry(edge - 1) if edge > 0 and found == self.entry(edge) else found


@defect("OI-21")
class CountsTheBoundOut(OffsetIndex):
    """An entry exactly at the end of a fetch is no upper bound for it."""

    def fetch_upper_bound_offset(self, fetch_offset: OffsetPosition, fetch_size: int) -> OffsetPosition | None:
        return super().fetch_upper_bound_offset(fetch_offset, fetch_size + 1)


@defect("OI-22")
class DoesNotWrapAround(OffsetIndex):
    """The end of a fetch is computed in 64 bits and does not wrap around."""

    def fetch_upper_bound_offset(self, fetch_offset: OffsetPosition, fetch_size: int) -> OffsetPosition | None:
        if fetch_offset.position + fetch_size > INT_MAX:
            return None
        return super().fetch_upper_bound_offset(fetch_offset, fetch_size)


@defect("OI-21")
class AnswersWithTheBase(OffsetIndex):
    """If no entry is past a fetch, the last entry is its upper bound."""

    def fetch_upper_bound_offset(self, fetch_offset: OffsetPosition, fetch_size: int) -> OffsetPosition | None:
        found = super().fetch_upper_bound_offset(fetch_offset, fetch_size)
        return self.entry(self.entries - 1) if found is None and self.entries else found


# -- truncating and checking -------------------------------------------------------------------------------------------


@defect("OI-10")
class KeepsTheEqualOffset(OffsetIndex):
    """Truncation keeps the entry at exactly the offset."""

    def truncate_to(self, offset: int) -> None:
        super().truncate_to(offset + 1 if offset in (entry.offset for entry in self) else offset)


@defect("OI-10")
class TruncatesOneEntryTooMany(OffsetIndex):
    """Truncation between two entries also removes the lower one."""

    def truncate_to(self, offset: int) -> None:
        keys = [entry.offset for entry in self]
        super().truncate_to(offset)
        if self.entries and offset not in keys and offset < keys[-1]:
            self._truncate_to_entries(self.entries - 1)


@defect("OI-2")
class StaleAfterTruncation(OffsetIndex):
    """The last offset is not read again after a truncation."""

    def truncate_to(self, offset: int) -> None:
        last = self._last_offset
        super().truncate_to(offset)
        self._last_offset = last


@defect("OI-2")
class StaleAfterReopening(OffsetIndex):
    """The last offset of an existing file is not read when it is opened."""

    def __init__(
        self, path: str | Path, base_offset: int, size: int = -1, writable: bool = True, **options: str
    ) -> None:
        super().__init__(path, base_offset, size, writable, **options)
        self._last_offset = base_offset


@defect("OI-2")
class ForgetsTheBase(OffsetIndex):
    """The last offset of an emptied index is 0 instead of the base offset."""

    def truncate(self) -> None:
        super().truncate()
        self._last_offset = 0


@defect("OI-11")
class ForgetsTheLengthCheck(OffsetIndex):
    """The sanity check ignores the length."""

    def sanity_check(self) -> None:
        if not self.length % 8:
            super().sanity_check()


@defect("OI-11")
class ForgetsTheOffsetCheck(OffsetIndex):
    """The sanity check ignores the last offset."""

    def sanity_check(self) -> None:
        if not (self.entries and self.last_offset < self.base_offset):
            super().sanity_check()


@defect("OI-11")
class DoubtsTheBaseOffset(OffsetIndex):
    """The sanity check rejects a last offset equal to the base, as a preallocated tail has it."""

    def sanity_check(self) -> None:
        if self.entries and self.last_offset == self.base_offset:
            raise CorruptIndexError("the last offset is the base offset", "Corrupt index found")
        super().sanity_check()
