"""What differs between the segments of releases (clauses SEG)."""

from __future__ import annotations

from functools import cached_property
from typing import Literal

from kidx.dialect.index import IndexBehaviours


class SegmentBehaviours(IndexBehaviours):
    """One observable behaviour a property."""

    @cached_property
    def segment_rules(self) -> str:
        """Two releases of the same text behave alike in everything that a segment shows."""
        columns = (
            self.index_rules,
            self.append,
            self.translate,
            self.shutdown,
            self.segment_text,
            self.offset_metadata_gap,
            *self.other_control_types,
        )
        switches = (
            self.maximum_is_two_fields,
            self.truncation_reloads_in_two_steps,
            self.searches_by_base_offset,
            self.streams_timestamp_search,
            self.close_reports_errors,
            self.recover_ignores_epoch_zero,
            self.empty_transactions_complete,
            self.recover_fences_markers,
            self.cut_records_are_null,
            self.cut_headers_are_out_of_bounds,
            self.compressed_sizes_escape,
            self.cut_streams_are_invalid,
            self.markers_are_generated,
        )
        return "-".join(columns) + "-" + "".join("01"[switch] for switch in switches)

    @cached_property
    def append_per_batch(self) -> bool:
        """Each batch of an append call may add an index entry (SEG-4); before, one call added one at most (SEG-3).

        With it came what the age of a segment is counted from (SEG-10), and calls that fill an index midway (LG-27).
        """
        return self.append == "A2"

    @cached_property
    def maximum_is_two_fields(self) -> bool:
        """Largest timestamp and its offset are read and forgotten apart (SEG-6; up to 2.8)."""
        return self.version < (3, 0)

    @cached_property
    def maximum_may_look_unknown(self) -> bool:
        """A pair (-1, -1) read from a damaged time index counts as not read yet: pairs compare by value (3.0–3.6)."""
        return (3, 0) <= self.version < (3, 7)

    @cached_property
    def truncation_reloads_in_two_steps(self) -> bool:
        """``truncate_to`` believes the last time entry before it scans the log (SEG-38; the Scala class, up to 3.6)."""
        return self.version < (3, 7)

    @cached_property
    def translates_to_base_offset(self) -> bool:
        """Offset translation and reads name the batch's base offset (SEG-50)."""
        return self.translate == "base"

    @cached_property
    def searches_by_base_offset(self) -> bool:
        """Offsets are searched for by base offset; before, by last offset (SEG-51; from 4.1)."""
        return self.version >= (4, 1)

    @cached_property
    def streams_timestamp_search(self) -> bool:
        """A search by timestamp decompresses only as far as it has to (FR-1; 4.4)."""
        return self.version >= (4, 4)

    @cached_property
    def cut_records_are_null(self) -> bool:
        """A record that claims more bytes than its batch has left is null instead of refused (2.4–2.8; SEG-46)."""
        return self.version < (3, 0)

    @cached_property
    def cut_headers_are_out_of_bounds(self) -> bool:
        """A header's key that ends behind its batch is out of bounds instead of an invalid record (2.4–2.6; SEG-47)."""
        return self.version < (2, 7)

    @cached_property
    def compressed_sizes_escape(self) -> bool:
        """A compressed record's size that makes no sense is an illegal argument instead of invalid (to 3.5; SEG-48)."""
        return self.version < (3, 6)

    @cached_property
    def cut_streams_are_invalid(self) -> bool:
        """A gzip stream that ends inside a record is invalid, and no I/O error (up to 3.5; SEG-49)."""
        return self.version < (3, 6)

    @cached_property
    def close_loads_indexes(self) -> bool:
        """Closing, deleting and renaming a segment open its indexes first (SEG-24; C1)."""
        return self.shutdown == "C1"

    @cached_property
    def close_finishes_segment(self) -> bool:
        """``close`` appends the last time entry and trims the log (SEG-24; C1, C2)."""
        return self.shutdown != "C3"

    @cached_property
    def close_reports_errors(self) -> bool:
        """``close`` lets an I/O error through (SEG-24, KAFKA-19221); closing once more is harmless."""
        return self.version >= (4, 0, 1)

    @cached_property
    def segment_text(self) -> Literal["time", "option", "plain"]:
        """How a segment names itself in errors: ``largestTime=5``, ``…=Some(5)`` (from 2.7), ``…=5`` (from 3.7)."""
        if self.version < (2, 7):
            return "time"
        return "option" if self.version < (3, 7) else "plain"

    @cached_property
    def offset_metadata_gap(self) -> str:
        """What stands between offset and segment in errors: ``(offset=1 segment=…``; nothing in 3.5."""
        if self.scala_texts:
            return " "
        return "" if self.version < (3, 6) else ", "

    @cached_property
    def recover_ignores_epoch_zero(self) -> bool:
        """``recover`` does not note a leader epoch of 0 (SEG-31, KAFKA-10432)."""
        return self.version < (2, 6, 1)

    @cached_property
    def empty_transactions_complete(self) -> bool:
        """A marker without a transaction before it completes one that is as long as itself (up to 2.7)."""
        return self.version < (2, 8)

    @cached_property
    def markers_are_generated(self) -> bool:
        """A transaction marker cut short is no damage but a failure: generated code reads it (from 4.1)."""
        return self.version >= (4, 1)

    @cached_property
    def other_control_types(self) -> tuple[str, ...]:
        """Names of the control records that are no transaction markers, from number 2 on."""
        if self.version < (2, 7):
            return ()
        if self.version < (3, 0):
            return ("QUORUM_REASSIGNMENT", "LEADER_CHANGE")
        names = ("LEADER_CHANGE", "SNAPSHOT_HEADER", "SNAPSHOT_FOOTER")
        return names if self.version < (3, 8) else (*names, "KRAFT_VERSION", "KRAFT_VOTERS")

    @cached_property
    def recover_fences_markers(self) -> bool:
        """Replicated markers with an old epoch are refused, as a client's are (2.4.0)."""
        return self.version < (2, 4, 1)
