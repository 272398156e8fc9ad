"""The ``.timeindex`` file: from timestamp to offset (clauses TI, ``TimeIndex.java``)."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, NamedTuple

from kidx.errors import CorruptIndexError, IllegalStateError, InvalidArgumentError, InvalidOffsetError
from kidx.index.abstract import AbstractIndex
from kidx.index.search import timestamp_floor, warm_search
from kidx.layout import TIME_INDEX

if TYPE_CHECKING:
    from kidx.index.mapped_buffer import MappedBuffer
    from kidx.index.search import ProbeCallback, Search
    from kidx.layout import Layout

_TIMESTAMP = TIME_INDEX.codec("timestamp")
_TIMESTAMP_AT = TIME_INDEX.field("timestamp").offset
_OFFSET = TIME_INDEX.codec("relative_offset")
_OFFSET_AT = TIME_INDEX.field("relative_offset").offset
_ENTRY = TIME_INDEX.struct
_SIZE = TIME_INDEX.size
_make = tuple.__new__  # the call that a NamedTuple's own constructor makes
_NO_TIMESTAMP = -1


class TimestampOffset(NamedTuple):
    """Entry of a time index: no record before ``offset`` is later than ``timestamp`` (milliseconds)."""

    timestamp: int
    offset: int

    @classmethod
    def in_last_slot(cls, slot: bytes, base_offset: int) -> TimestampOffset:
        """Return what a broker that loads a segment takes for its largest timestamp (SEG-6): the last slot, unchanged.

        Args:
            slot: last 12 bytes of the ``.timeindex``, which may be zeros; fewer if it has no entry.
        """
        if len(slot) < TIME_INDEX.size:
            return cls(_NO_TIMESTAMP, base_offset)
        timestamp, relative = TIME_INDEX.struct.unpack(slot)
        return cls(timestamp, base_offset + relative)

    def are_zeros(self, base_offset: int) -> bool:
        """Return True if the bytes of the entry are zeros, as after the entries of a preallocated file."""
        return self == (0, base_offset)

    def in_words(self, base_offset: int) -> str:
        """Return the entry in the last slot of a segment's ``.timeindex`` as text: zeros are called zeros."""
        if self == (_NO_TIMESTAMP, base_offset):
            return "there is no entry"
        what = "the file ends with zeros, the entry" if self.are_zeros(base_offset) else "the last entry is"
        return f"{what} {self.timestamp} at {self.offset}"


class TimeIndex(AbstractIndex[TimestampOffset]):
    """Map from a timestamp to an offset: no record before the offset has a later timestamp.

    The base class describes the arguments.
    """

    layout: ClassVar[Layout] = TIME_INDEX

    @property
    def last_entry(self) -> TimestampOffset:
        """Last entry, or ``(-1, base_offset)`` without entries (TI-2). Available even when closed."""
        return self._last_entry

    @property
    def is_full(self) -> bool:
        """True if only one slot is free: the one for the entry that a roll or a clean close appends (AI-6)."""
        return self.entries >= self.max_entries - 1

    def _refresh_last(self) -> None:
        none = TimestampOffset(_NO_TIMESTAMP, self.base_offset)
        self._last_entry = self._parse(self._mapped(), self.entries - 1) if self.entries else none

    def _parse(self, buffer: MappedBuffer, slot: int) -> TimestampOffset:
        timestamp, relative = buffer.get_entry(_ENTRY, self._byte_position(slot))
        return TimestampOffset(timestamp, self._absolute_offset(relative))

    def _no_entry_text(self, n: int) -> str:
        gap = " " if self.dialect.scala_texts else ""
        return (
            f"Attempt to fetch the {n}th entry from {gap}time index {self._absolute_path} which has size {self.entries}"
        )

    def maybe_append(self, timestamp: int, offset: int, skip_full_check: bool = False) -> None:
        """Append an entry if its timestamp is larger than the last one; the checks run in Kafka's order (TI-3).

        Args:
            timestamp: milliseconds, or -1 for "none"; ignored if it does not exceed the last timestamp.
            offset: offset of the entry; may be equal to the last one.
            skip_full_check: True to use the slot that is kept free.

        Raises:
            InvalidArgumentError: the index is full.
            InvalidOffsetError: ``offset`` is smaller than the last one.
            IllegalStateError: ``timestamp`` is smaller than the last one, or an earlier append stopped half way.
            IndexOffsetOverflowError: ``offset`` does not fit; the timestamp has been written, as in Kafka (TI-20).
            BufferOverflowError: no slot at all is free (TI-5).
            ReadOnlyError: the file is mapped read-only.
            ClosedError: the index is closed.
        """
        if not skip_full_check and self.is_full:
            raise InvalidArgumentError(
                f"{self._file} is full: {self.entries} of {self.max_entries} entries, one kept free;"
                f" ({timestamp}, {offset}) cannot be appended",
                f"{self._requirement}Attempt to append to a full time index (size = {self.entries}).",
            )
        last = self._last_entry
        if self.entries and offset < last.offset:
            raise InvalidOffsetError(
                f"{self._file}: offset {offset} must not be smaller than the last offset {last.offset}",
                self._out_of_order_text(f"an offset ({offset})", f"offset appended ({last.offset})"),
            )
        if self.entries and timestamp < last.timestamp:
            raise IllegalStateError(
                f"{self._file}: timestamp {timestamp} must not be smaller than the last timestamp {last.timestamp}",
                self._out_of_order_text(f"a timestamp ({timestamp})", f"timestamp appended ({last.timestamp})"),
            )
        if timestamp > last.timestamp:
            self._append(timestamp, offset)

    def _append(self, timestamp: int, offset: int) -> None:
        buffer = self._mapped()
        # Kafka writes the timestamp before it checks the offset: a rejected offset leaves 8 stray bytes (TI-20).
        buffer.put(_TIMESTAMP, timestamp)
        buffer.put(_OFFSET, self.relative_offset(offset))
        self.entries += 1
        self._last_entry = TimestampOffset(timestamp, offset)
        if self.entries * _SIZE != buffer.position:
            raise self._position_mismatch(buffer.position)

    def _out_of_order_text(self, subject: str, last: str) -> str:
        end = "." if self.dialect.scala_texts else ""
        return (
            f"Attempt to append {subject} to slot {self.entries} no larger than the last {last}"
            f" to {self._absolute_path}{end}"
        )

    def lookup(
        self, timestamp: int, probe: ProbeCallback | None = None, *, search: Search = warm_search
    ) -> TimestampOffset:
        """Return the entry with the largest timestamp ≤ ``timestamp``, or ``(-1, base_offset)`` (TI-7).

        Args:
            timestamp: milliseconds.
            probe: callback that receives every comparison as a :class:`kidx.index.search.Probe`.
            search: :func:`kidx.index.search.plain_search` to compare with the search of Kafka 1.1 and older.

        Raises:
            ClosedError: the index is closed.
            OutOfBoundsError: the file has been truncated below its entries (AI-11).
        """
        buffer, entries = self._mapped(), self.entries
        if probe is None and search is warm_search and entries * self.entry_size <= buffer.limit:
            slot = timestamp_floor(buffer.data, entries, timestamp)
            if slot >= 0 and not self._wraps:
                found, relative = _ENTRY.unpack_from(buffer.data, slot * _SIZE)
                return _make(TimestampOffset, (found, self.base_offset + relative))
        else:
            slot, _ = self._bounds(_TIMESTAMP, _TIMESTAMP_AT, timestamp, offsets=False, probe=probe, search=search)
        return TimestampOffset(_NO_TIMESTAMP, self.base_offset) if slot == -1 else self._parse(buffer, slot)

    def ceiling(self, timestamp: int, probe: ProbeCallback | None = None) -> TimestampOffset | None:
        """Return the entry with the smallest timestamp ≥ ``timestamp``, or None; not in Kafka. Raises as ``lookup``."""
        buffer = self._mapped()
        lower, upper = self._bounds(_TIMESTAMP, _TIMESTAMP_AT, timestamp, offsets=False, probe=probe)
        if lower >= 0 and (entry := self._parse(buffer, lower)).timestamp == timestamp:
            return entry
        return None if upper == -1 else self._parse(buffer, upper)

    def resize(self, new_size: int) -> bool:
        """Resize the file as in the base class, and read the last entry again if the length changed (TI-10)."""
        resized = super().resize(new_size)
        if resized:
            self._refresh_last()
        return resized

    def sanity_check(self) -> None:
        """Reject a last timestamp before the first, a last offset below the base, and a partial entry (TI-11).

        Raises:
            CorruptIndexError: the first of these checks that fails, in this order; nothing else is checked.
            ClosedError: the index is closed and not empty.
        """
        last, base = self._last_entry, self.base_offset
        if self.entries and last.timestamp < (first := self._parse(self._mapped(), 0).timestamp):
            raise CorruptIndexError(
                f"{self._file} is corrupt: its last timestamp is {last.timestamp}, before its first, {first}",
                self._corrupt_text(f"timestamp is {last.timestamp} which is less than the first timestamp {first}"),
            )
        if self.entries and last.offset < base:
            raise CorruptIndexError(
                f"{self._file} is corrupt: its last offset is {last.offset}, below the base offset {base}",
                self._corrupt_text(f"offset is {last.offset} which is less than the first offset {base}"),
            )
        if self.length % self.entry_size:
            raise CorruptIndexError(
                f"{self._file} is corrupt: {self.length} bytes are not a multiple of {self.entry_size}",
                f"Time index file {self._absolute_path} is corrupt, found {self.length} bytes which is neither positive"
                f" nor a multiple of {self.entry_size}{'.' if self.dialect.scala_texts else ''}",
            )

    def _corrupt_text(self, last: str) -> str:
        file = self._absolute_path
        return f"Corrupt time index found, time index file ({file}) has non-zero size but the last {last}"
