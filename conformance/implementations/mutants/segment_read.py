"""Defects of a segment that reads its log: truncations, recoveries and searches.

A row is a mutant: violated clause, name, defect, function (the names that lead to it from the class), fragment of its
source (``START``: its beginning), and replacement. A class with ``@defect`` is a mutant, too.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from conformance.implementations.mutants.registry import START, Row, defect, plant
from kidx.segment import LogSegment, ProducerState

if TYPE_CHECKING:
    from kidx.segment.segment import EpochCache

# fmt: off
plant(
    LogSegment,
    # -- truncating --
    Row("SEG-38", "truncation-leaves-the-transactions", "Truncation does not change the transaction index.",
        "truncate_to", "self.txn_index.truncate_to(offset)", "pass"),
    Row("SEG-38", "truncation-keeps-the-age", "A truncation to an empty segment does not reset its age.",
        "truncate_to", "self.created = self.clock()", "pass"),
    Row("SEG-38", "truncation-keeps-the-maximum", "The largest timestamp is not read again after a truncation.",
        "_reload_maximum", START, "return"),
    Row("SEG-38", "truncation-trusts-the-index",
        "After a truncation the largest timestamp is the timestamp of the last time entry; later batches are ignored.",
        "_reload_maximum", START, "self.maximum.set(self.time_index.last_entry); return"),
    # -- recovering --
    Row("SEG-34", "recovery-trims-nothing", "A recovery leaves the indexes preallocated.",
        "recover", "return truncated",
        "self.resize_indexes(self.offset_index.max_index_size); return truncated"),
    Row("SEG-30", "recovery-keeps-invalid-bytes", "A recovery leaves invalid bytes in the log.",
        "recover", "self.log.truncate_to(valid_bytes)", "pass"),
    Row("SEG-30", "recovery-keeps-transactions",
        "A recovery appends to the transaction index instead of rebuilding it.",
        "recover", "self.txn_index.reset()", "pass"),
    Row("SEG-30", "recovery-believes-invalid-batches",
        "A recovery does not check checksums.",
        "recover", "return truncated", "return 0"),
    # -- reading --
    Row("SEG-50b", "answers-with-the-offset-asked-for",
        "A read reports that it begins at the requested offset, as before 4.0.",
        "read", "message_offset = found.offset", "pass"),
    Row("SEG-50b", "ignores-min-one-message", "A first batch larger than the fetch is not returned.",
        "read", START, "min_one_message = False"),
    Row("SEG-40", "next-offset-is-the-last", "The next offset is the last batch's own last offset (off by one).",
        "read_next_offset", "last.next_offset", "last.next_offset - 1"),
    Row("SEG-52", "finds-later-timestamps-only",
        "A search by timestamp returns only records after the target (``>`` for ``>=``).",
        "find_offset_by_timestamp", START, "timestamp = min(timestamp + 1, 2**63 - 1)"),
    Row("SEG-52", "forgets-where-to-start", "A search by timestamp ignores the starting offset.",
        "find_offset_by_timestamp", START, "starting_offset = self.base_offset"),
    Row("SEG-53", "has-no-timestamp-without-records",
        "Without timestamps the largest timestamp is -1 instead of the file's modification time.",
        "largest_timestamp", "timestamp if timestamp >= 0 else self.last_modified", "timestamp"),
    Row("OI-21", "bounds-by-the-wrong-offset", "The upper bound of a fetch is taken from the entry's position.",
        "fetch_upper_bound_offset", "found.offset", "self.base_offset + found.position"),
)
# fmt: on


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


@defect("SEG-30")
class RecoveryKeepsTheMaximum(LogSegment):
    """A recovery continues from the largest timestamp that was known before."""

    def recover(self, producer_state: ProducerState | None = None, epoch_cache: EpochCache | None = None) -> int:
        known = self.maximum.cached()
        cut = super().recover(producer_state, epoch_cache)
        if known is not None and known.timestamp > self.maximum.timestamp:
            self.maximum.set(known)
        return cut
