"""What differs between Kafka releases, as data.

A *dialect* is the set of version-dependent behaviours of one release. Every value is an id
whose meaning stands beside it here, and the code asks for a property by name
(``dialect.close_trims``), never for a version number.
"""

from __future__ import annotations

import difflib
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Final, Literal

IndexRules = Literal["X1", "X2", "X3", "X4", "X5", "X6"]
AppendRule = Literal["A1", "A2"]
LeaderRule = Literal["L1", "L2", "L3", "L4"]
MaxLookup = Literal["M0", "M1", "M2"]
Shutdown = Literal["C1", "C2", "C3"]


@dataclass(frozen=True)
class Dialect:
    """The behaviours of one release.

    Attributes:
        release: the Kafka version, e.g. ``"3.9.2"``.
        index: X1–X6, the index objects (clauses AI, OI, TI, TX).
        append: A1 one entry an append call, A2 one a batch (SEG-3, SEG-4).
        leader_timestamp: L1–L4, which offset goes with the largest timestamp on the leader (SEG-8).
        max_lookup: M0–M2, what ListOffsets(-3) means (LO-9, LO-10).
        shutdown: C1–C3, what a clean close writes (SEG-24).
        translate: whether ``translateOffset`` answers with the batch's last or base offset (SEG-50).
        list_offsets_versions: lowest and highest version of the ListOffsets request (clauses LO).
    """

    release: str
    index: IndexRules
    append: AppendRule
    leader_timestamp: LeaderRule
    max_lookup: MaxLookup
    shutdown: Shutdown
    translate: Literal["last", "base"]
    list_offsets_versions: tuple[int, int]

    # What follows from the columns. Each property names one observable behaviour.

    @cached_property
    def version(self) -> tuple[int, ...]:
        """The release as numbers, for ordering."""
        return version_of(self.release)

    @cached_property
    def scala_texts(self) -> bool:
        """Exceptions carry the texts of the Scala classes: ``requirement failed: ``, full stops (X1, X2)."""
        return self.index in ("X1", "X2")

    @cached_property
    def position_mismatch_is_state(self) -> bool:
        """A position that does not fit the entries is an IllegalState, not an InvalidArgument (OI-6; X3+)."""
        return not self.scala_texts

    @cached_property
    def unmapped_trim_is_noop(self) -> bool:
        """``trim_to_valid_size`` does nothing once unmapped (AI-16; X4+)."""
        return self.index in ("X4", "X5", "X6")

    @cached_property
    def close_trims(self) -> bool:
        """``close`` trims the file to its entries before unmapping it (X1–X5)."""
        return self.index != "X6"

    @cached_property
    def resize_unmaps_first(self) -> bool:
        """``resize`` gives up the old mapping before it sets the length (KAFKA-19390; AI-44b).

        Shows when the length is refused: the index is left closed. Within X4 only from 3.9.2, 4.0.2 and 4.1.1 on.
        """
        return self.unmapped_trim_is_noop and self.release not in ("4.0.1", "4.1.0")

    @cached_property
    def index_rules(self) -> str:
        """Two releases of the same text behave alike in everything that an index object shows."""
        return self.index if self.resize_unmaps_first or self.index != "X4" else "X4a"

    @cached_property
    def unmapped_flush_is_noop(self) -> bool:
        """``flush`` does nothing once unmapped (AI-19; X6)."""
        return self.index == "X6"

    @cached_property
    def flush_syncs_file(self) -> bool:
        """``flush`` also syncs the file, so that a changed length is durable (AI-23, KAFKA-20979; X6)."""
        return self.index == "X6"

    @cached_property
    def strict_txn_version(self) -> bool:
        """Any version but 0 in a ``.txnindex`` is refused, negative ones included (TX-7; X6)."""
        return self.index == "X6"

    @cached_property
    def txn_text_has_version(self) -> bool:
        """``AbortedTxn(version=0, …)`` in texts (TX-12; up to X5)."""
        return self.index != "X6"

    # Segments (clauses SEG).

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
        """Each batch of an append call may add an index entry (SEG-4); before, one call added one at most (SEG-3)."""
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

    # Logs (clauses LG and LO); asked for by :mod:`kidx.log`.

    @cached_property
    def follower_skips_newer_epochs(self) -> bool:
        """A follower appends no batch of an epoch newer than the one it fetches in (KAFKA-18723)."""
        return self.append_per_batch

    @cached_property
    def refuses_unknown_targets(self) -> bool:
        """A broker refuses a negative target that it does not know (LO-15; from 3.9)."""
        return self.version >= (3, 9)

    @cached_property
    def loading_recovers_epochs(self) -> bool:
        """A segment recovered because of its index files also tells its leader epochs (SEG-35; from 3.0)."""
        return self.version >= (3, 0)

    @cached_property
    def loading_cuts_epochs_at_start(self) -> bool:
        """Loading moves the first epoch to the log start; from 3.0 only to its checkpoint, which may be smaller."""
        return self.version < (3, 0)

    @cached_property
    def deleting_all_forgets_epochs(self) -> bool:
        """Loading a log that ends before its start also empties the epochs (from 2.8)."""
        return self.version >= (2, 8)

    @cached_property
    def recovery_moves_recovery_point(self) -> bool:
        """After loading, everything counts as flushed even if the shutdown was not clean (up to 2.7)."""
        return self.version < (2, 8)

    @cached_property
    def idle_truncation_cuts_epochs(self) -> bool:
        """Truncating behind the end still removes epochs that begin there (from 2.6)."""
        return self.version >= (2, 6)

    @cached_property
    def start_moves_other_offsets(self) -> bool:
        """High watermark and recovery point are never before the log start (from 2.4.1)."""
        return self.version >= (2, 4, 1)

    @cached_property
    def full_truncation_keeps_high_watermark(self) -> bool:
        """After a full truncation to a larger offset, the high watermark stays before the log (2.4.0)."""
        return self.version < (2, 4, 1)

    @cached_property
    def full_truncation_moves_recovery_point(self) -> bool:
        """After a full truncation to a larger offset, that is the recovery point too (2.4.1 to 2.7.0)."""
        return (2, 4, 1) <= self.version < (2, 7, 1)

    @cached_property
    def search_start_survives_truncation(self) -> bool:
        """A search by timestamp begins where the log start once was, also after a truncation before it (LG-21; 3.5)."""
        return (3, 5) <= self.version < (3, 6)

    @cached_property
    def truncation_looks_for_transactions(self) -> bool:
        """Truncating sets the high watermark before it looks at transactions, and may fail (LG-11, LG-31; to 2.7.0)."""
        return self.version < (2, 7, 1)

    @cached_property
    def unstable_offset_has_to_exist(self) -> bool:
        """An open transaction is looked up, and it is an error if it is not there (LG-11; up to 3.7)."""
        return self.version < (3, 8)

    @cached_property
    def truncation_applies_any_watermark(self) -> bool:
        """Truncating also settles transactions where the high watermark stays as it is (LG-31; up to 3.0)."""
        return self.version < (3, 1)

    @cached_property
    def retention_starts_with_start_offset(self) -> bool:
        """Retention goes by start offset, size and time in this order; before, in the opposite one (from 3.0)."""
        return self.version >= (3, 0)

    @cached_property
    def shutdown_flushes_empty_segment(self) -> bool:
        """A clean shutdown flushes an active segment without records too, which opens its indexes (from 3.2)."""
        return self.version >= (3, 2)

    # Producers; asked for by :mod:`kidx.producers` and by a log that keeps them.

    @cached_property
    def markers_have_timestamps(self) -> bool:
        """A producer was last heard of when its marker was written; before, only batches counted (from 2.4.1)."""
        return self.version >= (2, 4, 1)

    @cached_property
    def unknown_sequences_are_refused(self) -> bool:
        """A producer that nothing is known of has to begin with sequence number 0 (KAFKA-8710; 2.4)."""
        return self.version < (2, 5)

    @cached_property
    def snapshots_always_have_a_batch(self) -> bool:
        """A producer read from a snapshot has a last batch, if only that of offset -1 (2.4.0)."""
        return self.version < (2, 4, 1)

    @cached_property
    def snapshots_are_remembered(self) -> bool:
        """Which snapshots there are is known from opening, and they go with their segments (KAFKA-9393; from 2.8)."""
        return self.version >= (2, 8)

    @cached_property
    def snapshots_go_at_once(self) -> bool:
        """A segment's snapshot is renamed with it; before, it went when the files were deleted (from 3.0)."""
        return self.version >= (3, 0)

    @cached_property
    def rolling_keeps_snapshot(self) -> bool:
        """Rolling an empty segment anew leaves its snapshot alone (from 3.1)."""
        return self.version >= (3, 1)

    @cached_property
    def producers_are_in_scala(self) -> bool:
        """Producers are in a hash table of Scala's, which shows in the order of a snapshot (up to 3.4)."""
        return self.version < (3, 5)

    @cached_property
    def appends_are_in_scala(self) -> bool:
        """The producers of one append are in such a table until it is done (up to 3.9)."""
        return self.version < (4, 0)

    @cached_property
    def recovery_knows_its_producers(self) -> bool:
        """Reading producers for a recovery goes on from one segment to the next; before, each began anew (from 2.8)."""
        return self.version >= (2, 8)

    @cached_property
    def start_moves_before_deletion(self) -> bool:
        """Retention moves the log start before it removes segments; before, afterwards (KAFKA-16890; from 3.8)."""
        return self.version >= (3, 8)


# fmt: off
_SPANS: Final[tuple[tuple[tuple[str, ...], tuple[str, ...], tuple[int, int]], ...]] = (
    # releases                              index append leader -3   shutdown translate   ListOffsets
    (("2.4.0", "2.4.1", "2.5.0", "2.5.1"), ("X1", "A1", "L1", "M0", "C1", "last"), (0, 5)),
    (("2.6.0", "2.6.1", "2.6.2", "2.6.3", "2.7.0", "2.7.1", "2.7.2"),
                                           ("X2", "A1", "L1", "M0", "C2", "last"), (0, 5)),
    (("2.8.0", "2.8.1", "2.8.2"),          ("X2", "A1", "L1", "M0", "C2", "last"), (0, 6)),
    (("3.0.0", "3.0.1", "3.0.2", "3.1.0", "3.1.1", "3.1.2", "3.2.0", "3.2.1", "3.2.2", "3.2.3",
      "3.3.0", "3.3.1", "3.3.2", "3.4.0", "3.4.1"),
                                           ("X2", "A1", "L1", "M1", "C2", "last"), (0, 7)),
    (("3.5.0", "3.5.1", "3.5.2", "3.6.0", "3.6.1", "3.6.2"),
                                           ("X3", "A1", "L1", "M1", "C2", "last"), (0, 8)),
    (("3.7.0", "3.7.1", "3.7.2"),          ("X3", "A1", "L2", "M1", "C2", "last"), (0, 8)),
    (("3.8.0", "3.8.1"),                   ("X3", "A1", "L3", "M2", "C2", "last"), (0, 8)),
    (("3.9.0",),                           ("X3", "A1", "L3", "M2", "C2", "last"), (0, 9)),
    (("3.9.1",),                           ("X3", "A2", "L4", "M2", "C2", "last"), (0, 9)),
    (("3.9.2",),                           ("X4", "A2", "L4", "M2", "C2", "last"), (0, 9)),
    (("4.0.0",),                           ("X3", "A1", "L3", "M2", "C2", "base"), (1, 10)),
    (("4.0.1", "4.0.2", "4.1.0", "4.1.1", "4.1.2"),
                                           ("X4", "A2", "L4", "M2", "C2", "base"), (1, 10)),
    (("4.2.0", "4.2.1", "4.3.0", "4.3.1"), ("X5", "A2", "L4", "M2", "C2", "base"), (1, 11)),
    (("4.4.0",),                           ("X6", "A2", "L4", "M2", "C3", "base"), (1, 11)),
)
# fmt: on


def version_of(release: str) -> tuple[int, ...]:
    """``"3.9.2"`` as ``(3, 9, 2)``.

    Raises:
        ValueError: not numbers with dots between them.
    """
    return tuple(int(part) for part in release.split("."))


DIALECTS: Final[dict[str, Dialect]] = {
    release: Dialect(release, *columns, versions)  # type: ignore[arg-type, call-arg]
    for releases, columns, versions in _SPANS
    for release in releases
}
"""Every published release from 2.4.0 to 4.4.0, oldest first."""

NEWEST: Final = max(DIALECTS, key=version_of)


@cache
def dialect_of(release: str | Dialect | None = None) -> Dialect:
    """The dialect of a release; of the newest one if none is named.

    Raises:
        ValueError: kidx does not know the release.
    """
    if isinstance(release, Dialect):
        return release
    if release is None:
        return DIALECTS[NEWEST]
    try:
        return DIALECTS[release]
    except KeyError:
        raise ValueError(f"unknown Kafka release {release!r}; kidx knows {', '.join(DIALECTS)}") from None


def unknown_release(release: str) -> str:
    """What to say of a release that kidx does not know: those that may be meant, or the first and the last."""
    meant = [name for name in DIALECTS if name.startswith(f"{release}.")][-1:]
    meant += difflib.get_close_matches(release, [name for name in reversed(DIALECTS) if name not in meant], 3, 0.75)
    hint = f"did you mean {' or '.join(meant[:3])}?" if meant else f"kidx knows {next(iter(DIALECTS))} to {NEWEST}"
    return f"unknown Kafka release {release!r}; {hint}"
