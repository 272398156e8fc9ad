"""Defects of an offset index: its entries, its last offset, its checks and its results.

A row is a mutant: violated clause, name, defect, function (the names that lead to it from the class), fragment of its
source (``START``: its beginning), and replacement. A class with ``@defect`` is a mutant, too.
"""

from __future__ import annotations

from conformance.implementations.mutants.planting import overwrite_bytes
from conformance.implementations.mutants.registry import START, Row, defect, plant
from kidx import OffsetIndex, OffsetPosition
from kidx.errors import InvalidOffsetError

# fmt: off
plant(
    OffsetIndex,
    # -- appending --
    Row("AI-6", "never-full", "An index is full only if it has more entries than fit.",
        "is_full", "self.entries >= self.max_entries", "self.entries > self.max_entries"),
    Row("AI-6", "keeps-a-slot-free", "An offset index reserves its last slot, as only a time index does.",
        "is_full", "self.entries >= self.max_entries", "self.entries >= self.max_entries - 1"),
    Row("OI-3", "checks-the-order-first",
        "A full index checks the order of offsets before it checks whether it is full.",
        "append", "self.is_full", "self.is_full and not (self.entries and offset <= self._last_offset)"),
    Row("OI-3", "checks-the-range-first", "The check that an offset fits precedes the check of its order.",
        "append", START, "if not self.is_full: self.relative_offset(offset)"),
    Row("OI-3", "ignores-the-equal-offset", "An offset equal to the last one is ignored instead of rejected.",
        "append", START, "if self.entries and not self.is_full and offset == self._last_offset: return"),
    Row("OI-5", "refuses-the-base-offset",
        "The first entry must be above the base offset, because the last offset of an empty index is the base.",
        "append", "self.entries and offset <= self._last_offset",
        "offset <= (self._last_offset if self.entries else self.base_offset)"),
    Row("OI-3", "other-refusal", "An offset out of order raises another exception.",
        "append", "InvalidOffsetError", "CorruptIndexError"),
    Row("OI-4b", "other-words", "The text of an error has one character too many.",
        "append", "self._out_of_order_text(offset)", "self._out_of_order_text(offset) + '!'"),
    Row("OI-3", "refuses-positions-going-back",
        "An append rejects a position below the last one, although no clause requires it.",
        "append", START,
        "if self.entries and not self.is_full and position < self.entry(self.entries - 1).position: raise "
        "InvalidArgumentError('the position goes back', None)"),
    Row("AI-8", "takes-offsets-below-the-base", "Only the upper end of the range of offsets is checked.",
        "relative_offset", "if 0 <= relative <= INT_MAX: return relative",
        "if relative <= INT_MAX: return to_int(relative)"),
    Row("AI-8", "takes-unsigned-offsets", "Relative offsets may use all 32 bits, as if they were unsigned.",
        "relative_offset", "if 0 <= relative <= INT_MAX: return relative",
        "if 0 <= relative < 1 << 32: return to_int(relative)"),
    Row("OI-13", "writes-though-read-only", "An index opened read-only is mapped for writing.",
        "__init__", START, "writable = writable or os.path.exists(path)"),
    # -- reading --
    Row("OI-2", "stale-after-reopening", "The last offset of an existing file is not read when it is opened.",
        "__init__", "self._refresh_last()", "self._last_offset = base_offset"),
    Row("OI-8a", "reads-one-slot-too-far", "The slot after the last entry can be read (``>`` for ``>=``).",
        "entry", "n >= self.entries", "n > self.entries"),
    Row("OI-8a", "entries-are-relative", "An entry's offset is the stored one, without the base.",
        "entry", "self._parse(self._mapped(), n)",
        "(found := self._parse(self._mapped(), n))._replace(offset=found.offset - self.base_offset)"),
    Row("OI-8d", "counts-slots-from-the-end", "Slot -1 is the last entry, as in a Python list.",
        "entry", START, "if n == -1 and self.entries: n = self.entries - 1"),
    Row("AI-9", "reads-offsets-unsigned", "A stored relative offset is read as an unsigned number.",
        "_absolute_offset", START, "relative &= 0xFFFFFFFF"),
    Row("OI-7", "answers-with-the-first-entry",
        "A lookup below the first entry returns this entry instead of the base offset and position 0.",
        "lookup", START, "if self.entries and target < (first := self.entry(0)).offset: return first"),
    Row("OI-21", "counts-the-bound-out", "An entry exactly at the end of a fetch is not its upper bound.",
        "fetch_upper_bound_offset", "fetch_offset.position + fetch_size", "fetch_offset.position + fetch_size + 1"),
    Row("OI-22", "does-not-wrap-around", "The end of a fetch is computed in 64 bits and does not wrap around.",
        "fetch_upper_bound_offset", START, "if fetch_offset.position + fetch_size > INT_MAX: return None"),
    Row("OI-21", "answers-with-the-base", "If no entry is past a fetch, the last entry is its upper bound.",
        "fetch_upper_bound_offset", "None if slot == -1 else self._parse(buffer, slot)",
        "self._parse(buffer, self.entries - 1 if slot == -1 else slot) if self.entries else None"),
    # -- truncating and checking --
    Row("OI-2", "forgets-the-base", "The last offset of an emptied index is 0 instead of the base offset.",
        "truncate", "self._truncate_to_entries(0)", "self._truncate_to_entries(0); self._last_offset = 0"),
    Row("OI-2", "stale-after-truncation", "The last offset is not read again after a truncation.",
        "truncate_to", "self._truncate_to_entries(self._entries_below(buffer, slot, offset))",
        "last = self._last_offset; self._truncate_to_entries(self._entries_below(buffer, slot, offset)); "
        "self._last_offset = last"),
    Row("OI-10", "keeps-the-equal-offset", "Truncation keeps the entry at exactly the offset.",
        "truncate_to", START, "offset += offset in (entry.offset for entry in self)"),
    Row("OI-11", "forgets-the-length-check", "The sanity check ignores the length.",
        "sanity_check", START, "if self.length % self.entry_size: return"),
    Row("OI-11", "forgets-the-offset-check", "The sanity check ignores the last offset.",
        "sanity_check", START, "if self.entries and self._last_offset < self.base_offset: return"),
    Row("OI-11", "doubts-the-base-offset",
        "The sanity check rejects a last offset equal to the base, as a preallocated tail has it.",
        "sanity_check", START,
        "if self.entries and self._last_offset == self.base_offset: raise CorruptIndexError('the last offset is "
        "the base offset', 'Corrupt index found')"),
    # -- entries --
    Row("OI-2", "remembers-what-was-refused", "The last offset is set before the offset's range is checked.",
        "append", "relative = self.relative_offset(offset)",
        "self._last_offset = offset; relative = self.relative_offset(offset)"),
    Row("AI-8", "stops-one-below-the-range", "The largest accepted relative offset is one too small.",
        "relative_offset", "if 0 <= relative <= INT_MAX: return relative",
        "if 0 <= relative < INT_MAX: return relative"),
    Row("OI-1", "little-endian", "Offsets are written with the lowest byte first.",
        "append", "buffer.put_entry(_FIELDS, _ENTRY, relative, position)",
        "buffer.put_entry(_FIELDS, _ENTRY, int.from_bytes(relative.to_bytes(4), 'little', signed=True), position)"),
    Row("OI-1", "writes-the-position-first", "An entry has its position before its offset.",
        "append", "buffer.put_entry(_FIELDS, _ENTRY, relative, position)",
        "buffer.put_entry(_FIELDS, _ENTRY, position, relative)"),
    Row("OI-1", "reads-positions-unsigned", "A stored position is read as an unsigned number.",
        "lookup", "ints[slot + 1]", "ints[slot + 1] & 0xFFFFFFFF"),
    Row("OI-7", "looks-strictly-below", "A lookup returns the entry below the target, even if one is equal.",
        "lookup", START, "target = max(target - 1, -(2**63))"),
    Row("OI-10", "truncates-one-entry-too-many", "Truncation between two entries also removes the lower one.",
        "_entries_below", "slot + 1", "slot + (slot + 1 == self.entries)"),
)
# fmt: on


# -- appending ---------------------------------------------------------------------------------------------------------


@defect("OI-3")
class WritesBeforeItChecks(OffsetIndex):
    """A rejected offset is written after the last entry."""

    def append(self, offset: int, position: int) -> None:
        try:
            super().append(offset, position)
        except InvalidOffsetError:
            if self.length >= (self.entries + 1) * 8:
                overwrite_bytes(self, self.entries * 8, lambda data: bytes(len(data) - 1) + b"\x01")
            raise


# -- reading -----------------------------------------------------------------------------------------------------------


@defect("AI-32")
class OneTooLowAtTheWarmEdge(OffsetIndex):
    """A lookup of the first entry of the warm section returns the entry before it."""

    def lookup(self, target: int, *arguments: object, **options: object) -> OffsetPosition:
        found = super().lookup(target, *arguments, **options)  # type: ignore[arg-type]
        edge = self.entries - 1 - 1024
        return self.entry(edge - 1) if edge > 0 and found == self.entry(edge) else found
