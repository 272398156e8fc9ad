"""Model of a time index: ascending timestamps, each with an offset that does not descend."""

from __future__ import annotations

import struct
from typing import Final

from conformance.implementations.model.prediction import (
    BUFFER_OVERFLOW,
    CLOSED,
    CORRUPT,
    ILLEGAL_STATE,
    INT,
    INVALID_ARGUMENT,
    INVALID_OFFSET,
    LONG,
    OFFSET_OVERFLOW,
    OUT_OF_BOUNDS,
    READ_ONLY,
    UndefinedError,
    as_long,
)
from conformance.implementations.model.slots import SlotIndex
from conformance.operations import OK, Outcome

ENTRY: Final = struct.Struct(">qi")
TIMESTAMP: Final = struct.Struct(">q")
RELATIVE: Final = struct.Struct(">i")


class TimeIndex(SlotIndex):
    """Index whose keys are timestamps and whose values are offsets; an entry has both, the offset as relative."""

    size = 12

    def parse(self, data: bytes | bytearray) -> tuple[list[int], list[int]]:
        """Return keys and values; relative offsets are signed (AI-9)."""
        numbers = struct.unpack(">" + "qi" * (len(data) // 12), data)
        base = self.base_offset
        values = [base + relative for relative in numbers[1::2]]
        if not -LONG + INT <= base < LONG - INT:
            values = [as_long(value) for value in values]
        return list(numbers[::2]), values

    def refresh_last(self) -> None:
        """Set the last entry, which is timestamp -1 and the base offset if there are no entries (TI-2)."""
        self.last = (self.keys[-1], self.values[-1]) if self.count else (-1, self.base_offset)

    @property
    def last_entry(self) -> tuple[int, ...]:
        """Last entry."""
        return self.last

    @property
    def empty_answer(self) -> tuple[int, int]:
        """Timestamp -1 and the base offset (TI-7)."""
        return (-1, self.base_offset)

    @property
    def full(self) -> bool:
        """True if at most one slot is free, which is reserved for the last entry of the segment (AI-6)."""
        return self.count >= self.capacity - 1

    @property
    def offsets(self) -> tuple[list[int], int]:
        """Values of the entries, and the length of their ordered prefix."""
        return self.values, self.ordered_values

    def resized(self) -> Outcome:
        """Read the last entry again (TI-10), which must be inside the file."""
        if len(self.keys) < self.count:
            return OUT_OF_BOUNDS
        self.refresh_last()
        return Outcome(value=True)

    def maybe_append(self, timestamp: int, offset: int, skip_full_check: bool) -> Outcome:  # noqa: PLR0911 - as append
        """Append an entry if the timestamp exceeds all others; fail if timestamp or offset is too small (TI-3)."""
        if not (-LONG <= offset < LONG and -LONG <= timestamp < LONG):
            raise UndefinedError
        count = self.count
        if not skip_full_check and count >= self.length // 12 - 1:
            return INVALID_ARGUMENT
        last_timestamp, last_offset = self.last
        if count and offset < last_offset:
            return INVALID_OFFSET
        if count and timestamp < last_timestamp:
            return ILLEGAL_STATE
        if timestamp <= last_timestamp:
            return OK
        if not self.mapped:
            return CLOSED
        if not self.writable:
            return READ_ONLY
        relative = self.relative(offset)
        write_position = self.write_position
        if relative is None or write_position != count * 12 or write_position + 12 > len(self.data):
            return self._append_by_parts(timestamp, offset, relative)
        ENTRY.pack_into(self.data, write_position, timestamp, relative)
        self.record_entry(timestamp, offset)
        self.last = (timestamp, offset)
        return OK

    def _append_by_parts(self, timestamp: int, offset: int, relative: int | None) -> Outcome:
        """Append an entry in two parts, as Kafka does: a timestamp whose offset is rejected remains written (TI-20a).

        An entry that is not written at the end of the entries is counted, and only then rejected.
        """
        if not self.write_bytes(TIMESTAMP.pack(timestamp)):
            return BUFFER_OVERFLOW
        outcome = BUFFER_OVERFLOW
        if relative is None:
            outcome = OFFSET_OVERFLOW
        elif self.write_bytes(RELATIVE.pack(relative)):
            self.count += 1
            self.last = (timestamp, offset)
            outcome = Outcome(self.dialect.misplaced)
        self.reread()
        return outcome

    def bulk_maybe_append(
        self, timestamp: int, offset: int, timestamp_step: int, offset_step: int, count: int
    ) -> Outcome:
        """Append ``count`` entries with the check for a free slot, up to the first error."""
        for n in range(count):
            outcome = self.maybe_append(timestamp + n * timestamp_step, offset + n * offset_step, skip_full_check=False)
            if outcome is not OK:
                return outcome
        return OK

    def sanity_check(self) -> Outcome:
        """Check that the last entry is complete, and neither before the first nor below the base (TI-11)."""
        timestamp, offset = self.last
        if self.count:
            if not self.mapped:
                return CLOSED
            if len(self.data) < 8:
                return OUT_OF_BOUNDS
            if timestamp < TIMESTAMP.unpack_from(self.data)[0] or offset < self.base_offset:
                return CORRUPT
        return CORRUPT if self.length % 12 else OK
