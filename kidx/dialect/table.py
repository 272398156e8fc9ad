"""Table of the behaviours that differ between Kafka releases, one row each.

A row states the releases that have the behaviour, the clauses that it decides, and a sentence that describes it. To
give a release a behaviour that was back-ported to it, extend the range of the row; no other place repeats it.
"""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass
from typing import Any, ClassVar, Final, Literal, Protocol

from kidx.dialect.behaviour import Behaviour, Section

NO_LIMIT: Final = (1 << 63) - 1

index, segment, log = Section("index"), Section("segment"), Section("log")
producers, leader, cleaning = Section("producers"), Section("leader"), Section("cleaning")
protocol, remote = Section("protocol"), Section("remote")
dumping, running = Section("dumping"), Section("running")


# fmt: off
@dataclass(frozen=True, eq=False)
class Dialect:
    """Behaviours of one release.

    Args:
        release: the Kafka version, e.g. ``"3.9.2"``.
        like: the release whose behaviours it has; the release itself if empty.

    Attributes:
        compressor: codec libraries that rewrite batches, or None for kidx's libraries. Each release comes with its own
            libraries, whose compressed bytes may differ (LG-58).
        decompressor: codec libraries that read batches, which may react differently to corruption (LG-64).
    """

    release: str
    like: str = ""

    compressor: ClassVar[Compressor | None] = None
    decompressor: ClassVar[Decompressor | None] = None

    def __post_init__(self) -> None:
        if not self.like:
            object.__setattr__(self, "like", self.release)

    def with_libraries(self, compressor: Compressor | None, decompressor: Decompressor | None) -> Dialect:
        """Return the same behaviours with these codec libraries."""
        other = copy(self)
        vars(other).update(compressor=compressor, decompressor=decompressor)
        return other

    def rules(self, *sections: str) -> tuple[object, ...]:
        """Return the values of all rows of these sections, by default of all rows.

        Two releases with the same values behave identically in these parts of Kafka.
        """
        return tuple(getattr(self, name) for name, row in ROWS.items() if not sections or row.section in sections)

    # Index classes: AbstractIndex, OffsetIndex, TimeIndex, TransactionIndex.
    scala_texts = index.flag("<=3.4.1", "OI-4 OI-6 OI-8 OI-12 OI-23 TI-4 TI-8 TI-11 TI-21 TI-23",
        "Exceptions carry the texts of the Scala classes: ``requirement failed: ``, full stops.")
    position_mismatch_is_state = index.flag(">=3.5.0", "OI-6 TI-21",
        "A position that does not fit the entries is an IllegalState, not an InvalidArgument.")
    unmapped_trim_is_noop = index.flag("3.9.2, 4.0.1..", "AI-16",
        "``trim_to_valid_size`` has no effect on an unmapped file.")
    close_trims = index.flag("<=4.3.1", "AI-42",
        "``close`` trims the file to its entries before it unmaps the file.")
    resize_unmaps_first = index.flag("3.9.2, 4.0.2, 4.1.1..", "AI-44",
        "``resize`` unmaps before it sets the length (KAFKA-19390): if that fails, the index is closed.")
    unmapped_flush_is_noop = index.flag(">=4.4.0", "AI-19",
        "``flush`` has no effect on an unmapped file.")
    flush_syncs_file = index.flag(">=4.4.0", "AI-23",
        "``flush`` also syncs the file, so that a changed length is durable (KAFKA-20979).")
    strict_txn_version = index.flag(">=4.4.0", "TX-7",
        "Any version except 0 in a ``.txnindex`` is rejected, including negative ones.")
    txn_text_has_version = index.flag("<=4.3.1", "TX-12",
        "An aborted transaction is printed as ``AbortedTxn(version=0, …)``.")

    # LogSegment, FileRecords and the records that they read.
    append_per_batch = segment.flag("3.9.1, 3.9.2, 4.0.1..", "SEG-3 SEG-4 SEG-10",
        "Each batch of an append call may add an index entry; before, one call added at most one (KAFKA-806; LG-27).")
    leader_timestamp: ClassVar[Behaviour[Literal["record", "request", "batch"]]] = segment.choice(
        {"record": "<=3.6.2", "request": "3.7.0..3.7.2", "batch": ">=3.8.0"}, "SEG-8",
        "The offset that a leader indexes with the largest timestamp: the offset of the record, the last one of the "
        "request, or the last one of the batch.")
    max_timestamp_in_two_fields = segment.flag("<=2.8.2", "SEG-6",
        "The largest timestamp of a segment and its offset are read and discarded separately.")
    max_timestamp_may_look_unread = segment.flag("3.0.0..3.6.2", "SEG-44",
        "A pair (-1, -1) from a corrupt time index counts as not yet read, because pairs compare by value.")
    truncation_reloads_in_two_steps = segment.flag("<=3.6.2", "SEG-38",
        "``truncate_to`` trusts the last time entry before it scans the log.")
    translates_to_base_offset = segment.flag(">=4.0.0", "SEG-50",
        "Offset translation and reads return the base offset of the batch, not its last offset.")
    searches_by_base_offset = segment.flag(">=4.1.0", "SEG-51",
        "Offsets are searched for by base offset, not by last offset.")
    truncated_records_are_null = segment.flag("<=3.0.0", "SEG-46",
        "A record that claims more bytes than remain in its batch is null instead of an error.")
    truncated_headers_are_out_of_bounds = segment.flag("<=2.6.3", "SEG-47",
        "A header key that ends past its batch is out of bounds instead of an invalid record.")
    leaks_illegal_argument_for_size = segment.flag("<=3.5.2", "SEG-48",
        "An impossible size of a compressed record is an illegal argument instead of an invalid record.")
    truncated_streams_are_invalid = segment.flag("<=3.5.2", "SEG-49",
        "A gzip stream that ends inside a record is an invalid record, not an I/O error.")
    close_loads_indexes = segment.flag("<=2.5.1", "LZ-3 SEG-28 LG-95",
        "Closing, deleting and renaming a segment open its indexes first.")
    close_finishes_segment = segment.flag("<=4.3.1", "SEG-24 SEG-27",
        "``close`` appends the last time entry and trims the log.")
    close_reports_errors = segment.flag(">=4.0.1", "",
        "``close`` raises an I/O error, and a second ``close`` is harmless (SEG-24d, SEG-24e; KAFKA-19221).")
    segment_text: ClassVar[Behaviour[Literal["time", "option", "plain"]]] = segment.choice(
        {"time": "<=2.6.3", "option": "2.7.0..3.6.2", "plain": ">=3.7.0"}, "",
        "How a segment prints its largest timestamp in errors: ``largestTime=5``, ``…=Some(5)``, ``…=5``.")
    offset_metadata_gap = segment.choice({" ": "<=3.4.1", "": "3.5.0..3.5.2", ", ": ">=3.6.0"}, "",
        "The text between offset and segment in errors: ``(offset=1 segment=…``.")
    recover_ignores_epoch_zero = segment.flag("<=2.6.0", "SEG-31",
        "``recover`` does not record a leader epoch of 0 (KAFKA-10432).")
    empty_transactions_complete = segment.flag("<=2.7.2", "SEG-32",
        "A marker without a transaction before it completes a transaction that consists of the marker.")
    markers_parsed_by_generated_code = segment.flag(">=4.1.0", "SEG-43",
        "Generated code parses a transaction marker, so a truncated one fails and does not count as corruption.")
    other_control_types: ClassVar[Behaviour[tuple[str, ...]]] = segment.choice(
        {(): "<=2.6.3",
         ("QUORUM_REASSIGNMENT", "LEADER_CHANGE"): "2.7.0..2.8.2",
         ("LEADER_CHANGE", "SNAPSHOT_HEADER", "SNAPSHOT_FOOTER"): "3.0.0..3.7.2",
         ("LEADER_CHANGE", "SNAPSHOT_HEADER", "SNAPSHOT_FOOTER", "KRAFT_VERSION", "KRAFT_VOTERS"): ">=3.8.0"}, "",
        "The names of the control records other than transaction markers, from number 2 on.")
    recover_fences_markers = segment.flag("2.4.0", "SEG-39",
        "Replicated markers with an old epoch are rejected, like markers from a client.")

    # Log, UnifiedLog, LocalLog, LogLoader and the leader epoch cache.
    max_lookup: ClassVar[Behaviour[Literal["unknown", "remembered", "read"]]] = log.choice(
        {"unknown": "<=2.8.2", "remembered": "3.0.0..3.7.2", "read": ">=3.8.0"}, "LO-9 LO-10 LO-20",
        "The source of the result of ListOffsets(-3): a lookup of an ordinary timestamp, the pair that a segment "
        "caches, or the batch.")
    follower_skips_newer_epochs = log.flag("3.9.1, 3.9.2, 4.0.1..", "LG-3",
        "A follower appends no batch of an epoch newer than the epoch of its fetch (KAFKA-18723).")
    rejects_unknown_targets = log.flag(">=3.9.0", "LO-15",
        "A broker rejects an unknown negative target.")
    lowest_target = log.choice(
        {-2: "<=2.8.2", -3: "3.0.0..3.4.1", -4: "3.5.0..3.8.1", -5: "3.9.0..4.1.2", -6: ">=4.2.0"}, "LO-3 LO-4 LO-5",
        "The smallest special target: -2 earliest, -3 largest timestamp, -4 earliest local, -5 latest tiered, "
        "-6 earliest pending upload; a smaller number is an ordinary timestamp.")
    loading_recovers_epochs = log.flag(">=3.0.0", "SEG-35",
        "A segment that is recovered because of its index files also records its leader epochs.")
    leaks_number_format_error = log.flag(">=3.1.0", "LG-78",
        "The error for a malformed number in the leader epoch checkpoint does not name the file.")
    stored_epochs_are_checked = log.flag(">=2.7.0", "",
        "The epochs in a checkpoint are assigned one by one, like new ones.")
    loading_truncates_epochs_at_start = log.flag("<=2.8.2", "",
        "Loading moves the first epoch to the log start, not only to its checkpoint, which may be smaller.")
    deleting_all_forgets_epochs = log.flag(">=2.8.0", "LG-18",
        "Loading a log that ends before its start also removes all epochs.")
    recovery_moves_recovery_point = log.flag("<=2.7.2", "",
        "After loading, everything counts as flushed even if the shutdown was not clean.")
    recovery_empties_at_io_errors = log.flag(">=4.0.0", "",
        "An I/O error in the recovery of a segment empties the segment, and later segments are removed. Before, it "
        "takes the log directory offline.")
    idle_truncation_truncates_epochs = log.flag(">=2.6.1", "LG-8",
        "Truncation past the end still removes epochs that begin there.")
    start_moves_other_offsets = log.flag(">=2.4.1", "LG-10",
        "High watermark and recovery point are never below the log start.")
    full_truncation_keeps_high_watermark = log.flag("2.4.0", "LG-10",
        "After a full truncation to a larger offset, the high watermark remains below the log start.")
    full_truncation_moves_recovery_point = log.flag("2.4.1..2.7.0", "",
        "A full truncation to a larger offset also moves the recovery point there.")
    search_start_survives_truncation = log.flag("3.5.0..3.5.2", "LG-21",
        "A search by timestamp begins at the former log start, also after a truncation below it.")
    truncation_updates_transactions = log.flag("<=2.7.0", "LG-11 LG-31",
        "Truncation sets the high watermark before it updates the transactions, and may fail.")
    unstable_offset_must_exist = log.flag("<=3.7.2", "",
        "The first unstable offset is looked up, and a missing one is an error (LG-11).")
    end_has_offset_metadata = log.flag(">=2.7.1", "",
        "A high watermark that is moved to the log end has its position already, without a lookup.")
    loading_sets_watermark_metadata = log.flag("2.7.1..2.8.2", "",
        "A high watermark that loading moves to the log end, together with the log start, has its position already.")
    watermark_metadata_resolved_last = log.flag("<=2.4.1", "LG-79",
        "A fetch compares the first unstable offset with the high watermark before it looks up the high watermark.")
    truncation_applies_any_watermark = log.flag("<=3.0.2", "",
        "Truncation updates the transactions even if the high watermark does not change (LG-31).")
    reads_end_below_start = log.flag("<=2.5.0", "",
        "A read at the log end offset is not rejected if the log start offset is above it, and a read at another limit "
        "looks for its batch.")
    fetch_checks_end_first = log.flag("<=3.0.2", "",
        "A fetch past the log end is rejected before the place of the high watermark is looked up.")
    fetch_ends_with_limits_segment = log.flag(">=3.8.0", "LG-101",
        "A fetch returns no bytes of a segment after the one of its limit, or if the limit's place is unknown.")
    retention_starts_with_start_offset = log.flag(">=3.0.0", "LG-13",
        "Retention checks start offset, size and time in this order, not in the opposite one.")
    shutdown_flushes_empty_segment = log.flag(">=3.2.0", "",
        "A clean shutdown also flushes an active segment without records, which opens its indexes.")

    logs_know_late_transactions = log.flag(">=3.2.0", "LG-106",
        "A log knows whether its oldest transaction has been open for too long.")
    logs_have_topic_ids = log.flag(">=2.8.0", "LG-90",
        "A log has a topic id, which it writes to ``partition.metadata`` (KIP-516).")
    newer_partition_metadata_is_read = log.flag(">=3.7.0", "LG-91",
        "A ``partition.metadata`` of a version above 0 is read.")

    deletion_forgets_epochs = log.flag(">=3.3.0", "LG-93",
        "A log whose directory gets the name of one that will be deleted has no leader epochs any more.")

    deletes_failed_logs = log.flag(">=4.4.0", "LG-97",
        "A log whose disk has failed is deleted like any other.")

    has_remote_index_cache = log.flag(">=3.6.0", "",
        "A log directory may hold the cache of remote index files, which is not a partition (KIP-405).")
    prefers_local_segments = log.flag(">=4.0.0", "LO-19",
        "A lookup by time whose remote candidate is also local searches the local segments.")

    loading_survives_storage_errors = log.flag(">=3.2.1", "",
        "A log whose epochs or topic id cannot be read takes its log directory offline. Before, it ends the broker.")
    unreadable_quorum_state_is_cleared = log.flag("<=3.7.2", "",
        "A quorum state of KRaft that cannot be read is removed, with a warning. Later, it ends the broker.")
    transactions_are_looked_up_offline = log.flag(">=3.0.0", "",
        "A log with an open transaction that is loaded from a log directory that is offline already ends the broker.")
    topic_ids_are_compared_first = log.flag(">=3.0.0", "",
        "A broker with ZooKeeper does not serve a log with another topic id than its topic. Before, it only "
        "compares the ids of logs that it serves already.")
    strays_come_first = log.flag(">=3.7.0", "",
        "A broker of KRaft renames strays before it serves partitions. Earlier ones serve first, give logs without a "
        "topic id the id in the metadata, and then delete the strays (KAFKA-14616).")
    settles_copies = log.flag(">=3.7.1", "",
        "A broker of KRaft renames strays while it loads its logs, and then replaces partitions with the copies "
        "that an interrupted move left (KAFKA-16082).")
    compares_all_properties = log.flag("2.8.0..3.6.2", "",
        "All entries of meta.properties have to be the same in all log directories, and not the ids alone.")
    knows_strays = log.flag(">=3.6.0", "",
        "The name of a directory may end with -stray. Earlier brokers do not start with such a directory.")
    has_directory_ids = log.flag(">=3.7.0", "",
        "Each log directory has an id, and a broker with two equal ids does not start. Without ids, a broker of KRaft "
        "makes the partitions of a log directory that goes offline in another directory, empty (KIP-858).")
    needs_kraft = log.flag(">=4.0.0", "",
        "There are no brokers with ZooKeeper.")
    metadata_versions = log.choice(
        {(0, 0): "<=3.2.3", (1, 7): "3.3.0..3.3.2", (1, 8): "3.4.0..3.4.1", (1, 11): "3.5.0..3.5.2",
         (1, 14): "3.6.0..3.6.2", (1, 19): "3.7.0..3.7.2", (1, 20): "3.8.0..3.8.1", (1, 21): "3.9.0..3.9.2",
         (7, 25): "4.0.0..4.0.2", (7, 27): "4.1.0..4.1.2", (7, 29): "4.2.0..4.2.2", (7, 30): "4.3.0..4.3.1",
         (7, 33): ">=4.4.0"}, "",
        "The lowest and the highest metadata.version of a production cluster; (0, 0) for the previews of KRaft.")

    # ProducerStateManager, ProducerStateEntry, VerificationGuard.
    markers_have_timestamps = producers.flag(">=2.4.1", "",
        "The last timestamp of a producer is also set by a marker, without a batch.")
    rejects_unknown_sequences = producers.flag("<=2.4.1", "LG-36",
        "An unknown producer must begin with sequence number 0 (KAFKA-8710).")
    snapshots_always_have_a_batch = producers.flag("2.4.0", "",
        "A producer that was read from a snapshot has a last batch, possibly one with offset -1.")
    caches_snapshot_list = producers.flag(">=2.8.0", "LG-34",
        "The snapshots are listed when the log is opened, and they are deleted with their segments (KAFKA-9393).")
    snapshot_renamed_with_segment = producers.flag(">=3.0.0", "",
        "A segment's snapshot is renamed with the segment, not removed when its files are deleted.")
    rolling_keeps_snapshot = producers.flag(">=3.1.0", "",
        "Rolling an empty segment, which re-creates it, keeps its snapshot.")
    truncation_keeps_snapshots_first = producers.flag(">=3.1.0", "LG-77",
        "The snapshots of truncated segments are deleted after the last remaining segment has been truncated.")
    producers_in_scala_map = producers.flag("<=3.4.1", "LG-47",
        "Producers are in a Scala hash table, whose order shows in a snapshot.")
    appends_in_scala_map = producers.flag("<=3.9.2", "",
        "The producers of one append are in a Scala hash table until it is done.")
    recovery_reuses_producers = producers.flag(">=2.8.0", "LG-44",
        "Reading producers for a recovery continues from one segment to the next instead of starting again.")
    transactions_are_verified = producers.flag(">=3.6.0", "",
        "A leader can begin the verification of a transaction on request (KIP-890; LG-45a).")
    coordinators_are_verified = producers.flag(">=3.7.0", "",
        "Batches of a coordinator, except markers, also need a verification guard (LG-45).")
    verification_knows_epochs = producers.flag(">=4.0.0", "",
        "Only a transaction of the same epoch continues without a verification guard (LG-45).")
    verification_fences = producers.flag(">=4.1.0", "",
        "No verification begins in an old epoch, and a raised epoch begins with sequence number 0 (LG-45c).")
    old_epochs_are_fenced_first = producers.flag("3.9.2, 4.0.2, 4.1.1..", "LG-45",
        "A batch of an older epoch is fenced before its verification guard is checked (KAFKA-19690; LG-45e).")
    markers_end_epochs = producers.flag(">=4.2.0", "",
        "A marker of the second version has a newer epoch than the transaction that it ends (LG-45d).")
    last_epoch_ends = producers.flag(">=4.3.0", "",
        "In the largest epoch a marker of the second version has the same epoch (LG-45d).")
    completed_transactions_are_records = producers.flag(">=4.2.0", "",
        "A completed transaction is printed like a Java record: ``CompletedTxn[…]``.")
    start_moves_before_deletion = producers.flag(">=3.7.1", "",
        "Retention moves the log start before it removes segments, not afterwards (KAFKA-16073).")

    # LogValidator: what a leader accepts from producers.
    follower_checks_message_size = leader.flag("<=2.5.1", "LG-65",
        "A follower rejects a batch larger than its topic allows, even if its leader has it (KAFKA-9617).")
    record_errors_are_collected = leader.flag(">=2.5.0", "LG-52",
        "A leader checks all records of a batch before it rejects the batch, instead of stopping at the first error.")
    rejects_wrong_inner_offsets = leader.flag("<=2.5.0", "LG-55",
        "Compressed records must have offsets 0, 1, 2, …; later releases assign these offsets.")
    validation_skips_keys = leader.flag(">=2.6.0", "LG-53",
        "A leader does not read keys and values of compressed records that it keeps unchanged.")
    validation_ignores_record_sizes = leader.flag(">=3.6.0", "LG-54",
        "Where a leader skips keys and values, it does not check the size of a record.")
    limits_decompressed_size = leader.flag("4.2.2, 4.4.0..", "LG-62 FR-1",
        "A leader rejects a record, and a search by time fails at a batch, above ``max.decompressed.message.bytes``.")
    timestamps_have_two_limits = leader.flag(">=3.6.0", "LG-50",
        "Records may be older than the clock by one limit and newer by another (KIP-937).")
    single_timestamp_limit = leader.flag("<=3.9.2", "",
        "``message.timestamp.difference.max.ms`` applies if one of the two limits is not set.")
    default_newest_timestamp = leader.choice({NO_LIMIT: "<=3.9.2", 3_600_000: ">=4.0.0"}, "",
        "The default time in milliseconds by which a record may be newer than the clock: one hour (KIP-1030).")
    default_message_bytes = leader.choice({1_000_012: "<=2.4.1", 1_048_588: ">=2.5.0"}, "LG-59",
        "The default of ``max.message.bytes`` and of a broker's ``message.max.bytes`` (KAFKA-4203).")
    accepts_log_append_time_from_clients = leader.flag(">=3.6.0", "LG-51",
        "A producer's batch may claim LogAppendTime, if its timestamp is within the limits.")
    rewriting_keeps_delete_horizon = leader.flag(">=3.1.0", "RB-1",
        "A header that gets another timestamp keeps its delete horizon flag.")

    # LogCleaner, Cleaner, LogCleanerManager.
    sets_delete_horizon = cleaning.flag(">=3.1.0", "CL-10 CL-11",
        "A batch has its own delete horizon for its tombstones or its marker (KIP-534).")
    keeps_last_batch_cleaned: ClassVar[Behaviour[Literal["", "round", "replicated"]]] = cleaning.choice(
        {"": "<=3.9.1", "round": "3.9.2..4.3.1", "replicated": ">=4.4.0"}, "CL-14",
        "The batch that is retained although it is empty: the batch that ends with the round, or at the "
        "high watermark.")
    maps_markers_by_key = cleaning.flag("<=3.0.1, 3.1.0..3.1.1, 3.2.0", "CL-9",
        "A transaction marker is removed when a later record has the bytes of its key (KAFKA-14055).")
    cleaning_converts_old_formats = cleaning.flag(">=4.0.0", "CL-24",
        "The remaining records of batches of magic 0 and 1 are written as magic 2 (KIP-724).")
    cleans_only_below_lso = cleaning.flag(">=3.1.0", "CL-1",
        "Cleaning stops at the last stable offset, not at the first open transaction.")
    cleaning_counts_gaps = cleaning.flag(">=2.4.1", "CL-19",
        "A segment is clean up to the next one, even if its last records are missing (KAFKA-8764).")
    collects_aborted_to_segment_end = cleaning.flag("2.8.2, 3.0.2, 3.1.1..", "",
        "Aborted transactions of a group's whole last segment are collected, not of the cleaned range (KAFKA-13727).")
    empty_ranges_hold_no_segment = cleaning.flag(">=2.5.1", "",
        "An empty range of offsets contains no segment, not even the segment of that offset.")
    empty_segments_join_any_group = cleaning.flag(">=3.0.0", "",
        "A segment without records is merged into the previous one, whatever its offsets are.")
    deletes_replaced_snapshots_individually = cleaning.flag("3.0.0..3.0.2", "",
        "The snapshot of a replaced segment is deleted when its files are renamed, not when all have been.")
    trusts_swap_files = cleaning.flag(">=3.0.0", "CL-18",
        "Opening renames the files of an interrupted swap and deletes what they replace; it does not recover them.")

    # RemoteIndexCache.
    cache_limit: ClassVar[Behaviour[Literal["none", "entries", "bytes"]]] = remote.choice(
        {"none": "<=3.5.2", "entries": "3.6.0..3.6.2", "bytes": ">=3.7.0"}, "RC-12",
        "The limit of the cache of remote index files: a number of entries, or of bytes (KAFKA-15536).")
    cache_leftovers: ClassVar[Behaviour[Literal["none", "exact", "suffix"]]] = remote.choice(
        {"none": "<=3.5.2", "exact": "3.6.0..4.0.2", "suffix": ">=4.1.0"}, "RC-4",
        "A start deletes the files named exactly ``.tmp`` and ``.deleted``, or all with these suffixes (KAFKA-18787).")
    removed_files: ClassVar[Behaviour[Literal["none", "go", "wait"]]] = remote.choice(
        {"none": "<=3.5.2", "go": "3.6.0..4.0.2", "wait": ">=4.1.0"}, "RC-10",
        "The time at which the files of a removed entry are deleted: immediately, or after ten seconds (KAFKA-17184).")
    marked_entries: ClassVar[Behaviour[Literal["none", "reject", "answer"]]] = remote.choice(
        {"none": "<=3.5.2", "reject": "3.6.0..4.0.2", "answer": ">=4.1.0"}, "RC-9",
        "A lookup in an entry whose removal has begun gives an error, or the answer from its files (KAFKA-17184).")
    closed_cache: ClassVar[Behaviour[Literal["none", "instance", "cache"]]] = remote.choice(
        {"none": "<=3.5.2", "instance": "3.6.0..4.0.2", "cache": ">=4.1.0"}, "RC-13",
        "The name in the error of a closed cache: ``Instance`` or ``RemoteIndexCache``.")
    metadata_knows_empty_transactions = remote.flag(">=4.0.0", "TL-14",
        "The metadata of a remote segment says that its transaction index is empty (KAFKA-16780).")
    copies_find_highest_offset = remote.flag(">=3.7.0", "TL-4",
        "The first run of a copy task also sets the highest remote offset of the log, not only its own.")
    highest_remote_offset_is_in_epoch = remote.flag(">=3.7.0", "TL-4",
        "The highest remote offset is at most the last offset of its leader epoch in the log.")
    local_retention_knows_log_start = remote.flag(">=3.7.0", "TL-5",
        "Local retention also deletes segments below the log start that are not copied.")
    local_retention_may_be_total = remote.flag("3.7.2, 3.8.1..", "TL-5",
        "A local retention of -2 is the retention of both tiers; before, it is no limit.")
    local_retention_needs_no_policy = remote.flag(">=4.2.0", "TL-5",
        "Local retention also applies to a topic whose ``cleanup.policy`` is empty (KIP-1161).")
    local_retention_rolls = remote.flag(">=3.7.0", "TL-6",
        "Local retention rolls an active segment that it would delete.")
    truncation_moves_local_start = remote.flag(">=3.7.0", "TL-2",
        "A full truncation moves the local log start offset to the new start.")
    remote_segments_may_begin_before_epochs = remote.flag(">=3.7.1", "TL-24",
        "A remote segment belongs to a log that has forgotten the segment's first leader epochs or the start of one.")
    lookup_omits_unfinished_copies = remote.flag(">=3.6.1", "TL-24",
        "A lookup by time omits remote segments whose copy failed or whose deletion has started.")
    expires_older_epochs_last = remote.flag(">=3.6.1", "TL-13",
        "An expiration task deletes segments of forgotten epochs last, and each other one once.")
    expires_at_exact_age = remote.flag("<=4.2.2", "TL-11",
        "An expiration task also deletes a segment whose age is exactly ``retention.ms``.")
    start_follows_last_listed = remote.flag("<=3.7.2", "TL-11 TL-12",
        "An expiration task moves the log start past the last segment that it lists as expired, not past the highest.")
    rejects_age_before_1970 = remote.flag("<=3.9.0", "TL-11",
        "An expiration task fails if ``retention.ms`` is longer than the time since 1970.")
    remote_fetch_begins_at_batch = remote.flag(">=3.9.1", "TL-18",
        "A remote fetch has the offset and the position of its first batch, not of the lookup.")
    failed_copies_leave_files = remote.flag("<=3.8.0", "TL-21",
        "The files of a failed copy remain in storage.")
    cleans_up_remotely = remote.flag(">=4.0.0", "TL-21",
        "A failed copy is deleted with its metadata, and failed deletions are repeated (KAFKA-17062).")
    remote_size = remote.choice(
        {"all": "<=3.8.0", "complete": "3.8.1..3.9.2", "copied": "4.0.0..4.3.1", "exact": ">=4.4.0"}, "TL-8",
        "Failed copies, or only failed deletions, count; the local segment at the highest remote offset counts twice.")
    trusts_valid_segments = remote.flag(">=4.3.0", "TL-8",
        "Once all copied segments have been valid, an expiration task counts every later one, too.")
    expiration_finds_highest_offset = remote.flag(">=4.4.0", "TL-15",
        "An expiration task also determines the highest remote offset, if the log does not know it yet.")
    unused_entries_expire = remote.flag(">=4.3.0", "RC-14",
        "An entry that is not used for some time is removed (KAFKA-19970).")

    # The ListOffsets request.
    list_offsets_versions = protocol.choice(
        {(0, 5): "<=2.7.2", (0, 6): "2.8.0..2.8.2", (0, 7): "3.0.0..3.4.1", (0, 8): "3.5.0..3.8.1",
         (0, 9): "3.9.0..3.9.2", (1, 10): "4.0.0..4.1.2", (1, 11): ">=4.2.0"}, "",
        "The lowest and the highest version of the request.")

    # kafka-dump-log and the formatters of internal topics.
    dumps_checkpoints = dumping.flag(">=3.3.0", "",
        "A ``.checkpoint`` file is dumped as a log.")
    dumps_leader_changes = dumping.flag(">=4.1.0", "",
        "The content of a leader change is printed, not only its name.")
    metadata_is_framed = dumping.flag(">=3.0.0", "",
        "A record of the metadata log begins with frame version 1, not 0.")
    dumps_offsets_as_json = dumping.flag(">=3.8.0", "",
        "Records of ``__consumer_offsets`` are printed as JSON.")
    dumps_transactions_as_json = dumping.flag(">=4.1.0", "",
        "Records of ``__transaction_state`` are printed as JSON.")
    dumps_internal_records_plainly = dumping.flag("2.4.0", "",
        "An offset is printed as ``offset::group:topic:0`` and ``7:metadata``, a group's key as JSON, a transaction's "
        "key as ``transactionalId=t``, and a removal not at all.")
    dumped_partitions_are_a_set = dumping.flag("<=2.4.1", "",
        "The partitions of a transaction are printed as a ``HashSet``.")
    coordinator_versions_are_checked = dumping.flag(">=4.0.0", "",
        "A coordinator record of an unknown version is rejected; a missing key is no longer reported as an offset key.")
    transaction_states_are_named = dumping.flag(">=4.4.0", "",
        "The state of a transaction is printed as a name, not as a number.")

    # Packaging and configuration of a broker.
    index_classes_are_in_scala = running.flag("<=3.4.1", "",
        "The index classes are written in Scala, in ``kafka.log``.")
    segment_classes_are_in_scala = running.flag("<=3.6.2", "",
        "The segment classes are written in Scala, and need the whole class path.")
    loading_removes_marker_first = running.flag(">=2.8.0", "",
        "A broker removes ``.kafka_cleanshutdown`` before it loads its logs, not afterwards (KAFKA-10471; PF-9).")
    search_results_are_records = running.flag(">=4.2.0", "",
        "A search for aborted transactions returns a Java record, with methods instead of fields.")
    dump_tool_in_own_jar = running.flag(">=4.3.0", "",
        "``DumpLogSegments`` is in ``kafka-tools``, which the broker does not depend on.")
    logs_with_log4j2 = running.flag(">=4.0.0", "", "The broker logs through log4j 2, not log4j 1.")
    runs_with_kraft = running.flag(">=3.3.0", "",
        "KRaft is ready for production; before, it was missing or a preview.")
    runs_with_zookeeper = running.flag("<=3.9.2", "", "A broker can run with ZooKeeper.")
    has_share_groups = running.flag(">=4.0.0", "", "A broker has share groups, with a dedicated topic.")
    smallest_segment = running.choice({14: "<=3.9.2", 1 << 20: ">=4.0.0"}, "",
        "The smallest ``segment.bytes`` that a topic may have (KIP-1030).")
    old_formats: ClassVar[Behaviour[Literal["written", "for_older_brokers", "rejected"]]] = running.choice(
        {"written": "<=2.8.2", "for_older_brokers": "3.0.0..3.9.2", "rejected": ">=4.0.0"}, "",
        "The case in which ``message.format.version`` makes a leader write batches of magic 0 and 1: always, only if "
        "other brokers may be of 2.8, or never.")
# fmt: on


ROWS: Final[dict[str, Behaviour[Any]]] = {
    name: value for name, value in vars(Dialect).items() if isinstance(value, Behaviour)
}
"""Rows of the table by the name of the behaviour."""


class Compressor(Protocol):
    """Codec libraries that compress."""

    def __call__(self, codec: Any, data: bytes, magic: int) -> bytes:
        """Return the compressed bytes for a batch of this magic; the codec is a ``kidx.records.Codec``."""


class Decompressor(Protocol):
    """Codec libraries that decompress."""

    def __call__(self, codec: Any, data: bytes, magic: int, *, mode: Any) -> Any:
        """Return the output for a batch of this magic as a ``kidx.records.codecs.DecompressedStream``.

        The result is None if the output has more bytes than these libraries accept.

        Args:
            codec: a ``kidx.records.Codec``.
            data: the compressed bytes.
            magic: format of the batch.
            mode: a ``kidx.records.codecs.ReadMode``: the number of bytes requested per read (LG-64).
        """
