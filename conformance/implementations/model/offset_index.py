"""Model of an offset index: ascending offsets, each with a position in the log."""

from __future__ import annotations

import struct
from bisect import bisect_left, bisect_right
from typing import Final

from conformance.implementations.model.prediction import (
    CLOSED,
    CORRUPT,
    INT,
    INVALID_ARGUMENT,
    INVALID_OFFSET,
    LONG,
    OFFSET_OVERFLOW,
    READ_ONLY,
    UndefinedError,
    as_int,
    as_long,
    need_ints,
)
from conformance.implementations.model.slots import SlotIndex
from conformance.operations import OK, Outcome

ENTRY: Final = struct.Struct(">ii")


class OffsetIndex(SlotIndex):
    """Index whose keys are offsets and whose values are positions; an entry is the relative offset and the position."""

    size = 8

    def parse(self, data: bytes | bytearray) -> tuple[list[int], list[int]]:
        """Return keys and values; relative offsets are signed (AI-9)."""
        numbers = struct.unpack(f">{len(data) // 4}i", data)
        base = self.base_offset
        keys = [base + relative for relative in numbers[::2]]
        if not -LONG + INT <= base < LONG - INT:
            keys = [as_long(key) for key in keys]
        return keys, list(numbers[1::2])

    def refresh_last(self) -> None:
        """Set the last offset, which is the base offset if there are no entries (OI-2)."""
        self.last = self.keys[-1] if self.count else self.base_offset

    @property
    def last_entry(self) -> tuple[int, ...]:
        """Last offset."""
        return (self.last,)

    @property
    def empty_answer(self) -> tuple[int, int]:
        """Start of the segment (OI-7)."""
        return (self.base_offset, 0)

    @property
    def full(self) -> bool:
        """True if every slot is used."""
        return self.count >= self.capacity

    @property
    def offsets(self) -> tuple[list[int], int]:
        """Keys of the entries, and the length of their ordered prefix."""
        return self.keys, self.ordered_keys

    def resized(self) -> Outcome:
        """Return the outcome True; the last offset does not change (OI-2)."""
        return Outcome(value=True)

    def append(self, offset: int, position: int) -> Outcome:  # noqa: PLR0911 - the order of the errors is the specification
        """Append an entry if a slot is free and the offset exceeds all others and fits in 31 bits (OI-3)."""
        if not (-LONG <= offset < LONG and -INT <= position < INT):
            raise UndefinedError
        count = self.count
        if count >= self.length // 8:
            return INVALID_ARGUMENT
        if count and offset <= self.last:
            return INVALID_OFFSET
        relative = self.relative(offset)
        if relative is None:
            return OFFSET_OVERFLOW
        if not self.mapped:
            return CLOSED
        if not self.writable:
            return READ_ONLY
        if self.write_position != count * 8:
            return self._append_elsewhere(offset, ENTRY.pack(relative, position))
        ENTRY.pack_into(self.data, self.write_position, relative, position)
        self.record_entry(offset, position)
        self.last = offset
        return OK

    def _append_elsewhere(self, offset: int, entry: bytes) -> Outcome:
        """Append after a failed resize has moved the write position: the entry is counted, and only then rejected."""
        self.write_bytes(entry)
        self.count += 1
        self.last = offset
        self.reread()
        return Outcome(self.dialect.misplaced)

    def bulk_append(self, offset: int, position: int, offset_step: int, position_step: int, count: int) -> Outcome:
        """Append ``count`` entries, up to the first error."""
        for n in range(count):
            outcome = self.append(offset + n * offset_step, position + n * position_step)
            if outcome is not OK:
                return outcome
        return OK

    def fetch_upper_bound(self, offset: int, position: int, fetch_size: int) -> Outcome | None:
        """Return the first entry at or after a position in the log, ``position + fetch_size`` in 32 bits, or none.

        There is one exception (AI-43). If the bound is the position of the first entry, the result is the second entry,
        because the search never compares the first one. Any other entry with exactly that position is found.
        """
        del offset  # only the position counts
        need_ints(position, fetch_size)
        if not self.mapped:
            return CLOSED
        if self.count == 0:
            return OK
        values = self.values
        if self.ordered_values < self.count:
            return None
        bound = as_int(position + fetch_size)
        first, after = bisect_left(values, bound), bisect_right(values, bound)
        if after - first > 1 and len(set(self.keys[first:after])) > 1:
            return None  # any of them may be the result (AI-36)
        at = 1 if first == 0 and after > 0 else first
        return Outcome(None, (self.keys[at], values[at])) if at < self.count else OK

    def sanity_check(self) -> Outcome:
        """Check that the last offset is not below the base, and that there is no partial entry (OI-11)."""
        if self.count and self.last < self.base_offset:
            return CORRUPT
        return CORRUPT if self.length % 8 else OK
