"""Defects of a time index: its rule for appending, its last entry, its checks and its results.

A row is a mutant: violated clause, name, defect, function (the names that lead to it from the class), fragment of its
source (``START``: its beginning), and replacement. A class with ``@defect`` is a mutant, too.
"""

from __future__ import annotations

from conformance.implementations.mutants.registry import START, Row, defect, plant
from kidx import TimeIndex

# fmt: off
plant(
    TimeIndex,
    # -- appending --
    Row("AI-6", "forgets-the-slot-kept-free", "A time index is full only if its last slot is used.",
        "is_full", "self.entries >= self.max_entries - 1", "self.entries >= self.max_entries"),
    Row("TI-3a", "checks-fullness-always", "The slot that is kept free cannot be used by a roll either.",
        "maybe_append", "not skip_full_check and self.is_full", "self.is_full"),
    Row("TI-3a", "never-checks-fullness", "Every append may use the slot that is kept free.",
        "maybe_append", "not skip_full_check and self.is_full", "False"),
    Row("TI-3d", "accepts-duplicate-timestamps",
        "A timestamp equal to the last one is appended (``>=`` for ``>``).",
        "maybe_append", "timestamp > last.timestamp",
        "timestamp > last.timestamp or (self.entries and timestamp == last.timestamp)"),
    Row("TI-3d", "appends-equal-timestamps", "A timestamp equal to the last one is written as the next millisecond.",
        "maybe_append", START,
        "if self.entries and timestamp == self.last_entry.timestamp < 2**63 - 1: timestamp += 1"),
    Row("TI-3c", "ignores-timestamps-going-back", "A timestamp before the last one is ignored, as an equal one is.",
        "maybe_append", "self.entries and timestamp < last.timestamp", "False"),
    Row("TI-3b", "refuses-equal-offsets", "An offset must exceed the last one (``<=`` for ``<``).",
        "maybe_append", START,
        "if self.entries and offset == self.last_entry.offset and (skip_full_check or not self.is_full): raise "
        "InvalidOffsetError('equal', self._out_of_order_text(f'an offset ({offset})', 'offset'))"),
    Row("TI-3c", "checks-the-timestamp-first", "A decreasing timestamp is rejected before a decreasing offset.",
        "maybe_append", "self.entries and offset < last.offset",
        "self.entries and offset < last.offset and timestamp >= last.timestamp"),
    Row("TI-3e", "checks-ignored-offsets",
        "An ignored entry, whose timestamp is not later, is rejected if its offset does not fit.",
        "maybe_append", "timestamp > last.timestamp", "timestamp > last.timestamp or self.relative_offset(offset) < 0"),
    Row("TI-20a", "leaves-no-stray-timestamp", "The offset is checked before the timestamp is written.",
        "_append", START, "self._mapped(); self.relative_offset(offset)"),
    Row("TI-20b", "takes-the-timestamp-back",
        "After a rejected offset the write position moves back to the last entry.",
        "_append", "self.relative_offset(offset)",
        "self.relative_offset(offset) if self.can_append_offset(offset) or buffer.seek(buffer.position - 8) else "
        "self.relative_offset(offset)"),
    Row("AI-8", "wraps-the-offset", "An offset that does not fit wraps around.",
        "relative_offset", START, "return to_int(offset - self.base_offset)"),
    Row("TI-3d", "takes-zero-for-no-timestamp",
        'The timestamp 0 is ignored in an empty index, as if it were "no timestamp".',
        "maybe_append", START,
        "if timestamp == 0 and not self.entries and (skip_full_check or not self.is_full): return"),
    # -- the last entry --
    Row("TI-2", "no-timestamp-is-zero", "The last timestamp of an empty index is 0.",
        "last_entry", "self._last_entry",
        "self._last_entry if self.entries else self._last_entry._replace(timestamp=0)"),
    Row("TI-2", "last-offset-of-nothing-is-zero", "The last offset of an empty index is 0 instead of the base offset.",
        "last_entry", "self._last_entry", "self._last_entry if self.entries else self._last_entry._replace(offset=0)"),
    Row("TI-2", "stale-entry-after-truncation", "A truncation does not update the cached last entry.",
        "truncate_to", "self._truncate_to_entries(self._entries_below(buffer, slot, offset))",
        "last = self._last_entry; self._truncate_to_entries(self._entries_below(buffer, slot, offset)); "
        "self._last_entry = last"),
    Row("TI-2", "stale-entry-after-reopening", "The last entry of an existing file is not read when it is opened.",
        "__init__", "self._refresh_last()",
        "self._refresh_last(); self._last_entry = self._last_entry._replace(timestamp=-1, offset=base_offset)"),
    Row("TI-10", "keeps-the-entry-over-a-resize", "A resize does not read the last entry again.",
        "resize", "self._refresh_last()", "last = self._last_entry; self._refresh_last(); self._last_entry = last"),
    # -- reading, truncating, checking --
    Row("TI-7", "answers-with-the-next", "A lookup searches for the target plus one millisecond.",
        "lookup", START, "timestamp = min(timestamp + 1, 2**63 - 1)"),
    Row("TI-7", "answers-with-the-target",
        "A lookup before the first entry returns the target as timestamp instead of -1.",
        "lookup", "TimestampOffset(_NO_TIMESTAMP, self.base_offset)", "TimestampOffset(timestamp, self.base_offset)"),
    Row("TI-7", "loses-seconds", "A lookup compares only whole seconds of the target.",
        "lookup", START, "timestamp = timestamp // 1000 * 1000"),
    Row("TI-9", "keeps-the-equal-time", "Truncation keeps the entry whose offset is exactly the given one.",
        "truncate_to", START, "offset = min(offset + 1, 2**63 - 1)"),
    Row("TI-8a", "refuses-the-last-slot", "The last entry cannot be read by its slot (off by one).",
        "entry", START, "n += n == self.entries - 1"),
    Row("TI-11a", "forgets-the-timestamp-check", "The sanity check does not compare the last timestamp with the first.",
        "sanity_check", START,
        "if self.entries and self._last_entry.timestamp < self._parse(self._mapped(), 0).timestamp: return"),
    Row("TI-11a", "forgets-the-times-length-check", "The sanity check ignores the length.",
        "sanity_check", "self.length % self.entry_size", "False"),
    Row("TI-3b", "forgets-the-order-of-offsets", "An offset below the last one is accepted.",
        "maybe_append", "offset < last.offset", "offset < last.offset and timestamp <= last.timestamp"),
    Row("TI-9", "truncates-by-timestamp", "Truncation compares timestamps instead of offsets.",
        "truncate_to", "self._entries_below(buffer, slot, offset)",
        "min(self._entries_below(buffer, slot, offset), sum(entry.timestamp < offset for entry in self))"),
    Row("TI-11a", "forgets-the-times-offset-check", "The sanity check does not compare the last offset with the base.",
        "sanity_check", "last.offset < base", "False"),
    Row("TI-11a", "doubts-equal-timestamps",
        "The sanity check rejects an index of one entry, because its last timestamp equals the first.",
        "sanity_check", "last.timestamp < (first := self._parse(self._mapped(), 0).timestamp)",
        "last.timestamp <= (first := self._parse(self._mapped(), 0).timestamp)"),
)
# fmt: on


# -- reading and truncating --------------------------------------------------------------------------------------------


# -- checking ----------------------------------------------------------------------------------------------------------


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
