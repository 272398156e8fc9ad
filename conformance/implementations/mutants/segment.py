"""Defects of a segment: index entries, rolls, closing, truncations, recoveries and searches.

A row is a mutant: violated clause, name, defect, function (the names that lead to it from the class), fragment of its
source (``START``: its beginning), and replacement. A class with ``@defect`` is a mutant, too.
"""

from __future__ import annotations

from conformance.implementations.mutants.registry import PER_APPEND, START, TRIMMING, Row, defect, plant
from kidx.dialect import with_overrides
from kidx.segment import LogSegment

# fmt: off
plant(
    LogSegment,
    # -- indexing --
    Row("SEG-4", "interval-reached",
        "An index entry is added when the interval is reached, not when it is exceeded (``>=`` for ``>``).",
        "_index", START,
        "self.bytes_since_last_index_entry += self.bytes_since_last_index_entry == self.index_interval_bytes"),
    Row("SEG-4", "counts-the-bytes-first", "The bytes of a batch are counted before the interval is checked.",
        "_index", START, "self.bytes_since_last_index_entry += size; size = 0"),
    Row("SEG-4", "never-starts-counting-anew",
        "Bytes are counted from the start of the segment, not from the last entry.",
        "_index", "self.bytes_since_last_index_entry = 0", "pass"),
    Row("SEG-5", "indexes-the-end-of-the-batch", "An index entry has the position after its batch.",
        "_index", START, "position += size"),
    Row("SEG-5", "indexes-the-offset-behind", "An index entry has the offset after the batch, not the last offset.",
        "_index", START, "last_offset += 1"),
    Row("SEG-6", "latest-batch-owns-the-maximum",
        "Of batches with the same largest timestamp, the last one determines its offset.",
        "_index", "timestamp > self.maximum.timestamp",
        "timestamp > self.maximum.timestamp or timestamp == self.maximum.timestamp >= 0"),
    Row("SEG-4", "indexes-times-always", "Every batch gets a time entry.",
        "_index", "self.bytes_since_last_index_entry += size",
        "self.bytes_since_last_index_entry += size; self.time_index.maybe_append(self.maximum.timestamp, "
        "self.maximum.offset)"),
    Row("SEG-2b", "checks-no-offset", "An offset out of the range of the indexes is appended.",
        "ensure_offset_in_range", "not self.can_convert_to_relative_offset(offset)",
        "self.can_convert_to_relative_offset(offset) is None"),
    Row("TX-15", "notes-committed-transactions", "Committed transactions are added to the transaction index, too.",
        "update_txn_index", "completed.is_aborted", "True"),
    # -- rolling and closing --
    Row("SEG-20", "rolls-when-exactly-full",
        "A segment rolls although the appended bytes would just fit (``>=`` for ``>``).",
        "should_roll", "not self.can_convert_to_relative_offset(params.max_offset_in_messages)",
        "not self.can_convert_to_relative_offset(params.max_offset_in_messages) or self.size == "
        "to_int(params.max_segment_bytes - params.messages_size)"),
    Row("SEG-20", "rolls-empty-segments", "An empty segment rolls by time.",
        "should_roll", "not self.can_convert_to_relative_offset(params.max_offset_in_messages)",
        "not self.can_convert_to_relative_offset(params.max_offset_in_messages) or reached"),
    Row("SEG-20", "never-rolls-by-time", "A segment never rolls by time.",
        "should_roll", "self.size > 0 and reached", "False"),
    Row("SEG-21", "rolls-late-by-the-jitter", "The jitter delays a roll instead of bringing it forward.",
        "should_roll", "params.max_segment_ms - self.roll_jitter_ms", "params.max_segment_ms + self.roll_jitter_ms"),
    Row("SEG-20", "rolls-only-behind-the-range", "A segment does not roll for an offset that does not fit.",
        "should_roll", "params.max_offset_in_messages", "self.base_offset"),
    Row("SEG-20", "waits-from-creation",
        "The age of a segment is counted from its creation, even if the first batch has a timestamp.",
        "time_waited_for_roll", "first is not None and first >= 0", "False"),
    Row("SEG-22", "becomes-inactive-without-the-last-entry", "A roll does not append the last time entry.",
        "on_become_inactive_segment", "self._append_last_time_entry()", "pass"),
    Row("SEG-22", "becomes-inactive-untrimmed", "A roll does not trim the time index.",
        "on_become_inactive_segment", "self.time_index.trim_to_valid_size()", "pass"),
    Row("SEG-22", "respects-the-slot-kept-free", "The last time entry is rejected by a full time index.",
        "_append_last_time_entry",
        "self.time_index.maybe_append(self.maximum.timestamp, self.maximum.offset, skip_full_check=True)",
        "self.time_index.maybe_append(self.maximum.timestamp, self.maximum.offset)"),
    Row("SEG-24b", "closes-without-the-last-entry", "Closing does not append the last time entry.",
        "close", "self._append_last_time_entry()", "pass", release=TRIMMING),
    Row("SEG-24c", "finishes-when-closing", "Closing appends the last time entry, as up to 4.3.",
        "close", "self.dialect.close_finishes_segment", "True"),
    Row("SEG-25", "resizes-one-index-only", "Resizing does not change the time index.",
        "resize_indexes", "self.time_index.resize(size)", "pass"),
    Row("SEG-35", "loads-without-an-index", "A missing offset index does not cause a recovery.",
        "sanity_check", START, "if not self.lazy_offset_index.path.exists(): return"),
    Row("SEG-35", "keeps-room-in-a-new-time-index", "A missing time index is created with its preallocated size.",
        "sanity_check", START, "time_index_file_newly_created = False"),
)
# fmt: on


# -- indexing ----------------------------------------------------------------------------------------------------------


@defect("SEG-7")
class CountsTheIndexedBatchOut(LogSegment):
    """The batch that gets an entry does not count towards the next one."""

    def _index(self, last_offset: int, position: int, timestamp: int, offset: int, size: int) -> None:
        super()._index(last_offset, position, timestamp, offset, size)
        if self.bytes_since_last_index_entry == size and position > 0:
            self.bytes_since_last_index_entry = 0


class _AppendsOtherwise(LogSegment):
    """Base of a segment that appends by the rule of other releases."""

    per_batch: bool

    def append(self, records: bytes, **info: int | None) -> None:
        dialect = self.dialect
        self.dialect = with_overrides(dialect, append_per_batch=self.per_batch)
        try:
            super().append(records, **info)
        finally:
            self.dialect = dialect


@defect("SEG-4")
class IndexesOnceAnAppend(_AppendsOtherwise):
    """An append of several batches gets one entry, as before 3.9.1."""

    per_batch = False


@defect("SEG-3", release=PER_APPEND)
class IndexesEveryBatch(_AppendsOtherwise):
    """Every batch of an append may get an index entry, as in the next release."""

    per_batch = True


@defect("SEG-13")
class CopiesFromTheStart(LogSegment):
    """Copying from a file begins at its first byte, whatever position is requested."""

    def append_from_file(self, records: object, start: int = 0) -> int:
        return super().append_from_file(records, 0) - start  # type: ignore[arg-type]


# -- rolling and closing -----------------------------------------------------------------------------------------------


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
    # -- indexing, rolling, truncating, recovering --
    Row("SEG-4", "indexes-the-batchs-own-timestamp",
        "A time entry has the timestamp of its batch, not the largest timestamp so far.",
        "_index", "self.time_index.maybe_append(self.maximum.timestamp, self.maximum.offset)",
        "self.time_index.maybe_append(*((timestamp, offset) if 0 <= timestamp < self.maximum.timestamp else "
        "self.max_timestamp_so_far))"),
    Row("SEG-10a", "forgets-the-first-timestamp",
        "The first append does not set the timestamp that the age is counted from.",
        "append", "self.rolling_based_timestamp = info.largest_timestamp", "pass", release=PER_APPEND),
    Row("SEG-20", "ignores-a-full-time-index", "A segment does not roll when its time index is full.",
        "should_roll", "self.time_index.is_full", "self.time_index.is_full and False"),
    Row("SEG-20", "ignores-a-full-offset-index", "A segment does not roll when its offset index is full.",
        "should_roll", "self.offset_index.is_full", "self.offset_index.is_full and False"),
    Row("SEG-38", "truncation-leaves-the-time-index", "Truncation does not change the time index.",
        "truncate_to", "time_index.truncate_to(offset)", "pass"),
    Row("SEG-38", "truncation-makes-no-room", "Truncation does not extend the indexes again.",
        "truncate_to", "offset_index.resize(offset_index.max_index_size)\ntime_index.resize(time_index.max_index_size)",
        "pass"),
    Row("SEG-38", "truncation-counts-on", "Truncation does not reset the count of bytes.",
        "truncate_to", "self.bytes_since_last_index_entry = 0", "pass"),
    Row("SEG-38", "truncation-keeps-the-batch", "Truncation inside a batch keeps that batch.",
        "truncate_to", START,
        "offset = next((b.next_offset for b in self.batches() if b.base_offset < offset <= b.last_offset), offset)"),
    Row("SEG-30", "recovery-forgets-the-last-time-entry", "A recovery does not append the last time entry.",
        "recover", "self.time_index.maybe_append(self.maximum.timestamp, self.maximum.offset, skip_full_check=True)",
        "pass"),
    Row("SEG-30", "recovery-keeps-the-maximum",
        "A recovery continues from the largest timestamp that was known before.",
        "recover", "self.maximum.forget()", "pass"),
)
# fmt: on


# -- recovering --------------------------------------------------------------------------------------------------------
