"""Defects of a log: results of ListOffsets, rolls, truncations and deletions.

A row is a mutant: violated clause, name, defect, function (the names that lead to it from the class), fragment of its
source (``START``: its beginning), and replacement. A class with ``@defect`` is a mutant, too.
"""

from __future__ import annotations

from conformance.implementations.mutants.registry import START, TRIMMING, Row, defect, plant
from kidx.log import UnifiedLog

# fmt: off
plant(
    UnifiedLog,
    # -- ListOffsets --
    Row("LO-1", "earliest-is-the-first-segments",
        "The earliest offset is the first segment's base, not the log start offset.",
        "fetch_offset_by_timestamp.fetch_offset", "TimestampAndOffset(NO_TIMESTAMP, log.start_offset, epoch)",
        "TimestampAndOffset(NO_TIMESTAMP, log.segments.first.base_offset if target == EARLIEST else "
        "log.start_offset, epoch)"),
    Row("LO-1", "earliest-has-no-epoch", "The earliest offset has no leader epoch.",
        "fetch_offset_by_timestamp.fetch_offset", "TimestampAndOffset(NO_TIMESTAMP, log.start_offset, epoch)",
        "TimestampAndOffset(NO_TIMESTAMP, log.start_offset, None if target == EARLIEST else epoch)"),
    Row("LO-2a", "latest-is-the-high-watermark", "The latest offset of a log is its high watermark.",
        "fetch_offset_by_timestamp.fetch_offset", "log.end_offset", "log.high_watermark"),
    Row("LO-2a", "latest-is-the-last-record", "The latest offset is the last record's (off by one).",
        "fetch_offset_by_timestamp.fetch_offset", "log.end_offset", "max(log.end_offset - 1, 0)"),
    Row("LO-2a", "latest-has-no-epoch", "The latest offset has no leader epoch.",
        "fetch_offset_by_timestamp.fetch_offset", "log.epochs.latest_epoch", "None"),
    Row("LO-10", "maximum-of-the-active-segment", "Only the active segment is searched for the largest timestamp.",
        "fetch_offset_by_timestamp.fetch_offset._max_timestamp_scanned",
        "TimestampAndOffset(timestamp, found, epoch if epoch >= 0 else None)",
        "TimestampAndOffset(timestamp, found, epoch if epoch >= 0 else None) if found >= "
        "log.segments.active.base_offset else None"),
    Row("LO-10", "maximum-is-the-batchs-last",
        "The offset of the largest timestamp is the last offset of its batch, as up to 3.7.",
        "fetch_offset_by_timestamp.fetch_offset._max_timestamp_scanned",
        "TimestampAndOffset(timestamp, found, epoch if epoch >= 0 else None)",
        "TimestampAndOffset(timestamp, offset, epoch if epoch >= 0 else None)"),
    Row("LO-6", "passes-over-equal-segments",
        "A segment whose largest timestamp is the target is skipped (``>`` for ``>=``).",
        "fetch_offset_by_timestamp.fetch_offset._search.find_in_segments", "segment.largest_timestamp >= timestamp",
        "segment.largest_timestamp > timestamp"),
    Row("LO-6", "finds-deleted-records", "A search by timestamp also finds records before the log start offset.",
        "fetch_offset_by_timestamp.fetch_offset._search.find_in_segments",
        "segment.find_offset_by_timestamp(timestamp, start)",
        "segment.find_offset_by_timestamp(timestamp, start if timestamp < 0 else segment.base_offset)"),
    Row("LO-15a", "knows-nothing-of-unknown-targets",
        "A negative target without a meaning gets no result, instead of the result of an ordinary timestamp.",
        "fetch_offset_by_timestamp", START, "if target < -6: return None"),
    # -- leader epochs --
    Row("LG-85", "epochs-end-at-the-log-end", "Every leader epoch ends at the log end offset.",
        "end_offset_for_epoch", "self.epochs.end_of(epoch, self.end_offset)",
        "(found := self.epochs.end_of(epoch, self.end_offset)) and (found[0], self.end_offset)"),
    Row("LG-85", "older-epochs-are-not-found", "The end of an epoch that the log does not have is not found.",
        "end_offset_for_epoch", "self.epochs.end_of(epoch, self.end_offset)",
        "self.epochs.end_of(epoch, self.end_offset) if any(e.epoch == epoch for e in self.epochs.entries) else None"),
    # -- loading --
    Row("LG-105", "orphaned-indexes-remain", "An index file without a log file remains when the log is opened.",
        "__init__.Loader._load_files", "file.unlink()", "pass"),
    # -- fetches --
    Row("LG-101", "consumers-read-up-to-the-log-end", "A fetch of a consumer also returns what is not replicated.",
        "fetch.fetch", 'isolation == "log_end"', "True"),
    Row("LG-101", "first-batch-may-be-cut", "A fetch that requests less than the first batch gets only a part of it.",
        "fetch.fetch",
        "read(log, offset, max_bytes, limit, whole_batch=whole_batch, lists_aborted=lists_aborted)",
        "read(log, offset, max_bytes, limit, lists_aborted=lists_aborted)"),
    Row("LG-102", "aborted-transactions-of-one-segment",
        "A fetch does not list aborted transactions whose markers are in later segments.",
        "fetch.fetch.read._aborted", "result.is_complete", "True"),
    Row("LG-102", "aborted-transactions-of-the-whole-log", "A fetch also lists aborted transactions after its bytes.",
        "fetch.fetch.read._aborted", "upper is None", "True"),
    Row("LG-103", "place-of-the-end-remains-after-a-roll", "After a roll, the log end has a place in the old segment.",
        "_roll", "self._set_end_offset(self.end_offset)", "pass"),
    Row("LG-103", "open-transactions-have-no-place", "The last stable offset has the place of the high watermark.",
        "last_stable_metadata", "OffsetMetadata(first, *self.first_unstable_place)",
        "OffsetMetadata(first, *(self.watermark_place or self.first_unstable_place))"),
    Row("LG-104", "followers-lower-the-high-watermark", "A follower at a lower offset lowers the high watermark.",
        "raise_high_watermark", "before.offset < watermark.offset", "before.offset != watermark.offset"),
    Row("LG-104", "high-watermark-remains-in-the-old-segment",
        "The high watermark keeps its place in the old segment when a follower has the same offset in the new one.",
        "raise_high_watermark", "before.offset < watermark.offset or is_newer", "before.offset < watermark.offset"),
    # -- flushing --
    Row("LG-107", "appends-flush-one-record-later", "An append flushes when flush.messages records are exceeded.",
        "_append", "self.end_offset - flushed >= self.config.flush_messages",
        "self.end_offset - flushed > self.config.flush_messages"),
    # -- late transactions --
    Row("LG-106", "ended-transactions-are-late", "A transaction that has ended is reported as late.",
        "has_late_transaction", "self.producers.oldest_transaction_timestamp",
        "max((self.producers.last_timestamp(e) for e in self.producers.producers.values()), default=-1)"),
    Row("LG-106", "longest-transaction-is-late", "A transaction is late when exactly the longest time has passed.",
        "has_late_transaction", "now - last > longest_ms + LATE_MS", "now - last >= longest_ms + LATE_MS"),
    # -- results of appends --
    Row("LG-98", "result-ends-one-offset-later", "The last offset of an append is one too large.",
        "append_as_leader.append_result", "info.largest_offset", "info.largest_offset + 1"),
    Row("LG-86", "result-has-no-append-time", "A producer does not get the log append time.",
        "append_as_leader", "NO_TIMESTAMP if context.log_append_time is None else context.log_append_time",
        "NO_TIMESTAMP"),
    Row("LG-86", "result-begins-at-the-first-segment", "The log start offset of a result is the first segment's base.",
        "_append", START, "result = result._replace(log_start_offset=self.segments.first.base_offset)"),
    Row("LG-87", "duplicate-has-the-offsets-of-a-new-batch",
        "The result of a duplicate has the offsets that the batch would have had.",
        "_append", "return result.repeating(changes.duplicate)", "return result"),
    Row("LG-100", "duplicate-has-no-timestamp", "The result of a duplicate has no log append time.",
        "_append", "return result.repeating(changes.duplicate)",
        "return result.repeating(changes.duplicate)._replace(log_append_time=result.log_append_time)"),
    # -- topic ids --
    Row("LG-90", "topic-ids-are-not-written", "A topic id is not written to partition.metadata.",
        "assign_topic_id", "self._topic_id_file.path.exists()", "not self._topic_id_file.path.exists()"),
    Row("LG-90", "accepts-another-topic-id", "A log with a topic id accepts a different topic id.",
        "assign_topic_id", "self.topic_id not in (None, topic_id)", "False"),
    Row("LG-91b", "newer-metadata-is-rejected", "A partition.metadata of a version above 0 is rejected, as up to 3.6.",
        "__init__", "self.dialect.newer_partition_metadata_is_read", "False"),
    # -- the directory --
    Row("LG-92", "appends-to-the-old-directory", "New segments are created in the directory with the old name.",
        "rename_directory", "self.directory = self._loader.directory = self.producers.directory = target",
        "self._loader.directory = self.producers.directory = target"),
    Row("LG-92", "epochs-remain-in-the-old-directory", "Leader epochs are written to the directory with the old name.",
        "rename_directory", "self.epochs = self._loader.epochs = self._stored_epochs()", "pass"),
    Row("LG-92", "snapshots-remain-in-the-old-directory", "Snapshots are written to the directory with the old name.",
        "rename_directory", "self.directory = self._loader.directory = self.producers.directory = target",
        "self.directory = self._loader.directory = target"),
    Row("LG-93", "deletion-keeps-epochs", "A log that will be deleted has leader epochs, as up to 3.2.",
        "rename_directory", "deletes and self.dialect.deletion_forgets_epochs", "False"),
    Row("LG-94", "truncates-on-a-failed-disk", "A log whose disk has failed is truncated.",
        "_truncate_fully", "self._check_usable()", "pass"),
    Row("LG-97a", "deletes-on-a-failed-disk", "A log whose disk has failed is deleted.",
        "delete", "not self.dialect.deletes_failed_logs", "False", TRIMMING),
    Row("LG-97b", "deletes-nothing-on-a-failed-disk", "A log whose disk has failed is not deleted, as up to 4.3.",
        "delete", "not self.dialect.deletes_failed_logs", "True"),
    Row("LG-96", "deleted-log-leaves-files", "A deleted log leaves the file of its leader epochs.",
        "delete", "shutil.rmtree(self.directory)",
        "[path.unlink() for path in self.directory.iterdir() if path.name != FILE_NAME]"),
    # -- rolling, truncating, deleting, opening --
    Row("LG-5", "rolls-at-the-end",
        "A new segment begins at the log end even if the next batch begins later.",
        "_roll", START, "expected_offset = 0"),
    Row("LG-6", "refuses-to-roll-an-empty-segment", "Rolling an empty segment does nothing.",
        "_roll", START, "if self.segments.active.size == 0: return self.segments.active"),
    Row("SEG-22", "rolls-without-finishing", "A roll does not finish the previous segment.",
        "_roll", "active.on_become_inactive_segment()", "pass"),
    Row("LG-12", "deletes-up-to-the-end", "Records beyond the high watermark can be deleted.",
        "delete_records", START,
        "if self.high_watermark < offset <= self.end_offset: self.update_high_watermark(offset)"),
    Row("LG-15", "forgets-to-make-room-again",
        "Opening a log does not preallocate the indexes of the last segment again.",
        "__init__", "self._delete_detached()",
        "self._delete_detached(); self.segments.active.offset_index.trim_to_valid_size(); "
        "self.segments.active.time_index.trim_to_valid_size()"),
    Row("LG-15", "recovers-after-a-clean-start", "Segments are recovered although the last shutdown was clean.",
        "__init__", START, "clean, recovery_point = False, 0"),
    Row("LG-2", "ignores-gaps-of-a-follower", "A follower rejects batches that do not begin exactly at its log end.",
        "append_as_follower", START,
        "if len(records) >= 8 and int.from_bytes(records[:8], 'big', signed=True) > self.end_offset: return"),
    Row("LO-10", "maximum-is-the-latest-of-equals",
        "Among segments with the same largest timestamp, the result is from the last one.",
        "fetch_offset_by_timestamp.fetch_offset._max_timestamp_scanned",
        "max(log.segments, key=lambda segment: segment.max_timestamp_so_far.timestamp)",
        "max(reversed(list(log.segments)), key=lambda segment: segment.max_timestamp_so_far.timestamp)"),
    Row("LO-23", "goes-on-to-the-next-segment",
        "A search by timestamp continues if the first segment that could contain the record has none.",
        "fetch_offset_by_timestamp.fetch_offset._search.find_in_segments",
        "return segment.find_offset_by_timestamp(timestamp, start)",
        "if found := segment.find_offset_by_timestamp(timestamp, start): return found"),
    Row("LG-7", "cuts-one-offset-too-late", "A truncation keeps the batch that contains the offset.",
        "truncate_to", START,
        "offset += offset < self.end_offset and any(batch.base_offset == offset for segment in self.segments for "
        "batch in segment.batches())"),
    Row("LG-7", "truncation-keeps-epochs", "A truncation keeps the epochs that begin after it.",
        "truncate_to", "self.epochs.truncate_from_end(offset)", "pass"),
    Row("LG-12", "deletes-whole-segments-only", "The log start offset is moved only to the start of a segment.",
        "delete_records", START,
        "if offset <= self.high_watermark: offset = max((s.base_offset for s in self.segments if s.base_offset <= "
        "offset), default=offset)"),
    Row("LG-14", "retains-one-segment-more", "A segment that ends exactly at the log start offset is kept.",
        "delete_old_segments.delete_old_segments.delete_by_rule._before_start",
        "following.base_offset <= log.start_offset", "following.base_offset < log.start_offset"),
)
# fmt: on


# -- rolling, cutting, deleting ----------------------------------------------------------------------------------------


@defect("LG-7")
class TruncationKeepsTheHighWatermark(UnifiedLog):
    """A truncation below the high watermark does not lower it."""

    def truncate_to(self, offset: int) -> bool:
        before = self.high_watermark
        done = super().truncate_to(offset)
        self.high_watermark = before
        return done
