"""The ``.index`` file: from offset to byte position in the log (clauses OI, ``OffsetIndex.java``)."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, NamedTuple

from kidx.errors import CorruptIndexError, InvalidArgumentError, InvalidOffsetError
from kidx.index.abstract import AbstractIndex
from kidx.index.search import offset_floor, warm_search
from kidx.java_values import INT_MAX, INT_MIN, to_int
from kidx.layout import OFFSET_INDEX

if TYPE_CHECKING:
    from kidx.index.mapped_buffer import MappedBuffer
    from kidx.index.search import ProbeCallback, Search
    from kidx.layout import Layout

_OFFSET = OFFSET_INDEX.codec("relative_offset")
_OFFSET_AT = OFFSET_INDEX.field("relative_offset").offset
_POSITION = OFFSET_INDEX.codec("position")
_POSITION_AT = OFFSET_INDEX.field("position").offset
_FIELDS = (_OFFSET, _POSITION)
_ENTRY = OFFSET_INDEX.struct
_SIZE = OFFSET_INDEX.size
_make = tuple.__new__  # the call that a NamedTuple's own constructor makes


class OffsetPosition(NamedTuple):
    """Entry of an offset index: the record ``offset`` is in the batch at byte ``position`` of the log."""

    offset: int
    position: int


class OffsetIndex(AbstractIndex[OffsetPosition]):
    """Map from an offset to the position of the last indexed batch at or before it; arguments as in the base class."""

    layout: ClassVar[Layout] = OFFSET_INDEX

    @property
    def last_offset(self) -> int:
        """Offset of the last entry, or ``base_offset`` without entries (OI-2). Available even when closed."""
        return self._last_offset

    def _refresh_last(self) -> None:
        last = self._parse(self._mapped(), self.entries - 1).offset if self.entries else self.base_offset
        self._last_offset = last

    def _parse(self, buffer: MappedBuffer, slot: int) -> OffsetPosition:
        relative, position = buffer.get_entry(_ENTRY, self._byte_position(slot))
        return OffsetPosition(self._absolute_offset(relative), position)

    def _no_entry_text(self, n: int) -> str:
        return f"Attempt to fetch the {n}th entry from index {self._absolute_path}, which has size {self.entries}"

    def append(self, offset: int, position: int) -> None:
        """Append an entry; the checks run in Kafka's order (OI-3).

        Raises:
            InvalidArgumentError: the index is full, or ``position`` is not a Java ``int``.
            InvalidOffsetError: ``offset`` does not exceed the last one.
            IndexOffsetOverflowError: ``offset`` does not fit relative to the base.
            ReadOnlyError: the file is mapped read-only.
            ClosedError: the index is closed and not full.
        """
        if self.is_full:
            raise InvalidArgumentError(
                f"{self._file} is full: {self.entries} of {self.max_entries} entries; {offset} cannot be appended",
                f"{self._requirement}Attempt to append to a full index (size = {self.entries}).",
            )
        if self.entries and offset <= self._last_offset:
            raise InvalidOffsetError(
                f"{self._file}: offset {offset} must be larger than the last offset {self._last_offset}",
                self._out_of_order_text(offset),
            )
        relative = self.relative_offset(offset)
        if not INT_MIN <= position <= INT_MAX:
            raise InvalidArgumentError(f"{self._file}: position {position} is not within {INT_MIN}..{INT_MAX}")
        buffer = self._mapped()
        buffer.put_entry(_FIELDS, _ENTRY, relative, position)
        self.entries += 1
        self._last_offset = offset
        if self.entries * _SIZE != buffer.position:
            raise self._position_mismatch(buffer.position)

    def _out_of_order_text(self, offset: int) -> str:
        subject, end = (f"({offset})", ".") if self.dialect.scala_texts else (f"{offset}", "")
        return (
            f"Attempt to append an offset {subject} to position {self.entries} no larger than the last offset"
            f" appended ({self._last_offset}) to {self._absolute_path}{end}"
        )

    def lookup(
        self, target: int, probe: ProbeCallback | None = None, *, search: Search = warm_search
    ) -> OffsetPosition:
        """Return the entry with the largest offset ≤ ``target``, or ``(base_offset, 0)`` (OI-7).

        Args:
            target: an offset.
            probe: callback that receives every comparison as a :class:`kidx.index.search.Probe`.
            search: :func:`kidx.index.search.plain_search` to compare with the search of Kafka 1.1 and older.

        Raises:
            ClosedError: the index is closed.
            OutOfBoundsError: the file has been truncated below its entries (AI-11).
        """
        buffer = self._mmap or self._mapped()
        entries = self.entries
        if probe is None and search is warm_search and not self._wraps and entries * _SIZE <= buffer.limit:
            base, ints = self.base_offset, buffer.ints
            slot = offset_floor(ints, entries, target - base)
            if slot == -1:
                return OffsetPosition(base, 0)
            slot += slot
            return _make(OffsetPosition, (base + ints[slot], ints[slot + 1]))
        slot, _ = self._bounds(_OFFSET, _OFFSET_AT, target, offsets=True, probe=probe, search=search)
        return OffsetPosition(self.base_offset, 0) if slot == -1 else self._parse(buffer, slot)

    def ceiling(self, target: int, probe: ProbeCallback | None = None) -> OffsetPosition | None:
        """Return the entry with the smallest offset ≥ ``target``, or None; not in Kafka. Raises as ``lookup``."""
        buffer = self._mapped()
        lower, upper = self._bounds(_OFFSET, _OFFSET_AT, target, offsets=True, probe=probe)
        if lower >= 0 and (entry := self._parse(buffer, lower)).offset == target:
            return entry
        return None if upper == -1 else self._parse(buffer, upper)

    def fetch_upper_bound_offset(self, fetch_offset: OffsetPosition, fetch_size: int) -> OffsetPosition | None:
        """Return the first entry at or past ``fetch_offset.position + fetch_size`` bytes, or None.

        The sum is a Java ``int`` and wraps around. The search compares positions; if the first entry of the file is
        equal to the sum, Kafka returns the entry after it (AI-33). Raises as ``lookup``.
        """
        buffer = self._mapped()
        target = to_int(fetch_offset.position + fetch_size)
        _, slot = self._bounds(_POSITION, _POSITION_AT, target, offsets=False)
        return None if slot == -1 else self._parse(buffer, slot)

    def sanity_check(self) -> None:
        """Reject a last offset below the base and a length that is not a multiple of 8 (OI-11). Works when closed.

        Raises:
            CorruptIndexError: one of the two checks failed; nothing else is checked.
        """
        last, base = self._last_offset, self.base_offset
        scala = self.dialect.scala_texts
        if self.entries and last < base:
            file = f"({self._absolute_path})" if scala else self._absolute_path
            raise CorruptIndexError(
                f"{self._file} is corrupt: its last offset is {last}, below the base offset {base}",
                f"Corrupt index found, index file {file} has non-zero size but the last offset is {last}"
                f" which is less than the base offset {base}{'.' if scala else ''}",
            )
        if self.length % self.entry_size:
            raise CorruptIndexError(
                f"{self._file} is corrupt: {self.length} bytes are not a multiple of {self.entry_size}",
                f"Index file {self._absolute_path} is corrupt, found {self.length} bytes"
                f" which is neither positive nor a multiple of {self.entry_size}{'.' if scala else ''}",
            )
