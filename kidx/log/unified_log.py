"""Log of a partition: its segments, its start, end and high watermark, and appends (``UnifiedLog``)."""

from __future__ import annotations

import contextlib
import os
import shutil
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Self

from kidx.dialect import Dialect, dialect_of
from kidx.discovery import PARTITION_METADATA, SEGMENT_SUFFIXES
from kidx.errors import InvalidArgumentError
from kidx.java_values import INT_MAX
from kidx.log.cleaner import Cleaner, CrashPointCallback, cleanable_range
from kidx.log.config import LogConfig
from kidx.log.epochs import FILE_NAME, LeaderEpochCache
from kidx.log.errors import (
    FailedLogError,
    LogError,
    OffsetOutOfRangeError,
    OffsetsOutOfOrderError,
    RecordTooLargeError,
    UnexpectedAppendOffsetError,
)
from kidx.log.fetch import Fetched, Isolation, OffsetMetadata, Place, fetch, read
from kidx.log.loader import Loader
from kidx.log.lookup import fetch_offset
from kidx.log.producers import NOTHING_VERIFIED, ProducerChanges, TransactionVerification, rebuild_producers
from kidx.log.results import AppendResult, append_result
from kidx.log.retention import delete_old_segments, delete_segments_before_start
from kidx.log.topic_id import InconsistentTopicIdError, TopicIdFile
from kidx.log.validation import ValidationContext, checked_batches, ensure_allowed_size, validate
from kidx.producers import LATE_MS, Origin, ProducerFencedError, ProducerStateManager, VerificationStateEntry
from kidx.records import RecordBatch, iter_memory_batches
from kidx.records.record import NO_TIMESTAMP
from kidx.segment import (
    AppendInfo,
    Clock,
    LogSegment,
    RollParams,
    TimestampAndOffset,
    leader_append_info,
    system_clock,
)
from kidx.segment.append_info import append_info_of
from kidx.segment.files import file_name

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from kidx.log.record_filter import CleanerStats
    from kidx.log.segments import Segments


class UnifiedLog:
    """Log of one partition, opened or created; a context manager that closes it as a clean shutdown does.

    Work that a broker does in the background is done immediately: removed files are deleted, a rolled segment counts as
    flushed. There is no tiered storage. Compaction is an operation, :meth:`clean`.

    Args:
        directory: directory of the partition, e.g. ``/data/orders-0``.
        config: settings of the topic; Kafka's defaults if None.
        log_start_offset: the broker's checkpoint of the log start.
        recovery_point: the broker's checkpoint below which everything is on disk; only used if ``clean`` is False.
        clean: True if the last shutdown was clean; else segments from the recovery point on are recovered (SEG-35).
        clock: the wall clock in milliseconds.
        dialect: a release such as ``"3.9.2"``, or a :class:`~kidx.dialect.Dialect`; the newest release by default.

    Attributes:
        start_offset: the first offset that is visible to a client.
        search_start: offset at which a search by timestamp begins in 3.5, also after a truncation below it.
        end_offset: the offset of the next record.
        high_watermark: offset below which everything is on all replicas; at first the start offset, see
            :meth:`update_high_watermark`.
        watermark_place: place of the high watermark, or None until a fetch needs it. It remains as it was found, even
            if its segment no longer exists.
        end_place: place of the end offset; a read ends before it. A rejected append may have written batches there.
        recovery_point: offset below which everything is on disk.
        first_unstable_offset: first offset of the earliest transaction that is open, or completed and not replicated
            yet; or None.
        first_unstable_place: place of that offset; None if it is unknown.
        segments: the segments by base offset.
        epochs: the leader epochs.
        producers: the state of the producers.
        is_failed: True after :meth:`fail`.
        topic_id: the topic id in base64; None if the log has none, and up to 2.7.

    Raises:
        KidxError, OSError: an error that loading cannot repair.
    """

    producer_state: type[ProducerStateManager] = ProducerStateManager  # this and the next three: for subclasses
    validate = staticmethod(validate)
    cleaner: type[Cleaner] = Cleaner
    segment_type: type[LogSegment] = LogSegment

    def __init__(
        self,
        directory: str | os.PathLike[str],
        config: LogConfig | None = None,
        *,
        log_start_offset: int = 0,
        recovery_point: int = 0,
        clean: bool = True,
        clock: Clock = system_clock,
        dialect: str | Dialect | None = None,
    ) -> None:
        self.directory = Path(directory)
        self.config = config or LogConfig()
        self.dialect = dialect_of(dialect)
        self.clock = clock
        self.is_failed = False
        self.directory.mkdir(parents=True, exist_ok=True)
        self.epochs = self._stored_epochs()
        self.producers = self.producer_state(
            self.directory, self.dialect, expiration_ms=self.config.producer_id_expiration_ms
        )
        self._loader = loader = Loader(
            self.directory,
            self.config,
            self.dialect,
            clock,
            self.epochs,
            self.producers,
            start_offset=log_start_offset,
            recovery_point=recovery_point,
            clean=clean,
            segment_type=self.segment_type,
        )
        self.segments: Segments = loader.segments
        self.end_offset = loader.load()
        self._open_segment: Callable[[int], LogSegment] = loader.open_segment
        self.start_offset = self._loaded_start(log_start_offset)
        self.search_start = self.start_offset
        self.recovery_point = loader.recovery_point
        if self.recovery_point < self.start_offset and self.dialect.start_moves_other_offsets:
            self.recovery_point = self.start_offset
        moved = self.start_offset != log_start_offset
        self.high_watermark = (
            self.start_offset if not moved or self.dialect.start_moves_other_offsets else log_start_offset
        )
        sets_place = moved and self.high_watermark >= self.end_offset and self.dialect.loading_sets_watermark_metadata
        self.watermark_place: Place | None = self.end_place if sets_place else None
        self.epochs.truncate_from_end(self.end_offset)
        self.epochs.truncate_from_start(
            self.start_offset if not moved or self.dialect.loading_truncates_epochs_at_start else log_start_offset
        )
        self.first_unstable_offset: int | None = None
        self.first_unstable_place: Place | None = None
        self.producers.remove_stray_snapshots(segment.base_offset for segment in self.segments)
        self._rebuild_producers(clean=clean)
        self._update_first_unstable_offset()
        self._delete_detached()
        self._topic_id_file = TopicIdFile(
            self.directory / PARTITION_METADATA, reads_newer=self.dialect.newer_partition_metadata_is_read
        )
        self.topic_id = self._topic_id_file.read() if self.dialect.logs_have_topic_ids else None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return (
            f"UnifiedLog({str(self.directory)!r}, {self.start_offset}..{self.end_offset},"
            f" {len(self.segments)} segments, dialect={self.dialect.release!r})"
        )

    def _stored_epochs(self) -> LeaderEpochCache:
        return LeaderEpochCache(
            self.directory / FILE_NAME,
            numbers_escape=self.dialect.leaks_number_format_error,
            are_checked=self.dialect.stored_epochs_are_checked,
        )

    def _loaded_start(self, log_start_offset: int) -> int:
        """Return the log start after loading, given the checkpoint of it."""
        return max(log_start_offset, self.segments.first.base_offset)

    @property
    def size(self) -> int:
        """Size of all ``.log`` files in bytes."""
        return sum(segment.size for segment in self.segments)

    # -- offsets -------------------------------------------------------------------------------------------------------

    @property
    def end_offset(self) -> int:
        """Offset of the next record; to set it is to move :attr:`end_place` to the end of the active segment."""
        return self._end_offset

    @end_offset.setter
    def end_offset(self, offset: int) -> None:
        active = self.segments.active
        self._end_offset, self.end_place = offset, (active.base_offset, active.size)

    @property
    def last_stable_offset(self) -> int:
        """Last stable offset: each record below it is replicated and in no open transaction."""
        first = self.first_unstable_offset
        return self.high_watermark if first is None else min(first, self.high_watermark)

    def _update_first_unstable_offset(self) -> None:
        """Determine the first unstable offset again (``maybeIncrementFirstUnstableOffset``).

        If a transaction began before the log start, or before the log was opened, its offset is looked up. The result
        is the log start, or from 4.0 the base offset of the batch that contains it, which may be smaller (LG-20).

        Raises:
            FailedLogError: the disk of the log has failed.
            OffsetOutOfRangeError: the log no longer contains that offset, up to 3.7 (LG-11).
            KidxError, OSError: the batch cannot be read.
        """
        self._check_usable()
        first = self.producers.first_unstable
        if first is None:
            self.first_unstable_offset = self.first_unstable_place = None
        elif first.place is not None and first.first_offset >= self.start_offset:
            self.first_unstable_offset, self.first_unstable_place = first.first_offset, first.place
        else:
            found = self._offset_metadata(max(first.first_offset, self.start_offset))
            self.first_unstable_offset, self.first_unstable_place = found.offset, found.place

    def _offset_metadata(self, offset: int) -> OffsetMetadata:
        """Return the first offset that a read from ``offset`` reports (SEG-50), or the log end, and its place.

        From 3.8 on, an offset that the log does not have is returned without a place.

        Raises:
            OffsetOutOfRangeError: the log does not have the offset, up to 3.7.
            KidxError, OSError: the batch cannot be read.
        """
        try:
            return read(self, offset, 1, self.end_metadata).start
        except OffsetOutOfRangeError:
            if self.dialect.unstable_offset_must_exist:
                raise
            return OffsetMetadata(offset)

    @property
    def end_metadata(self) -> OffsetMetadata:
        """The log end offset and its place."""
        return OffsetMetadata(self.end_offset, *self.end_place)

    def watermark_metadata(self) -> OffsetMetadata:
        """Return the high watermark and its place, which is looked up if it is unknown.

        The lookup may change the high watermark (LG-67, LG-79).

        Raises:
            OffsetOutOfRangeError: the log has no record at the high watermark, up to 3.7.
            KidxError, OSError: the batch cannot be read.
        """
        self._check_usable()
        if self.watermark_place is None:
            self._set_watermark(self._offset_metadata(self.high_watermark))
        return OffsetMetadata(self.high_watermark, *(self.watermark_place or ()))

    def last_stable_metadata(self) -> OffsetMetadata:
        """Return the last stable offset and its place.

        Raises:
            KidxError, OSError: as :meth:`watermark_metadata`.
        """
        self._check_usable()
        if self.dialect.watermark_metadata_resolved_last:
            limit = self.high_watermark
        else:
            limit = self.watermark_metadata().offset
        first = self.first_unstable_offset
        if first is None or first >= limit:
            return self.watermark_metadata()
        if self.first_unstable_place is None:
            found = self._offset_metadata(first)
            self.first_unstable_offset, self.first_unstable_place = found.offset, found.place
            return found
        return OffsetMetadata(first, *self.first_unstable_place)

    def _set_watermark(self, watermark: OffsetMetadata) -> None:
        self.high_watermark, self.watermark_place = watermark.offset, watermark.place
        self.producers.on_high_watermark(watermark.offset)
        self._update_first_unstable_offset()

    def update_high_watermark(self, offset: int) -> int:
        """Set the high watermark, limited to the range from start to end offset, and return it.

        Raises:
            KidxError, OSError: the first unstable offset cannot be looked up.
        """
        if offset < self.start_offset:  # even past the end, after a truncation that stopped half way (LG-11)
            self._set_watermark(OffsetMetadata(self.start_offset))
        elif offset < self.end_offset:
            self._set_watermark(OffsetMetadata(offset))
        else:
            ends = self.dialect.end_has_offset_metadata
            self._set_watermark(self.end_metadata if ends else OffsetMetadata(self.end_offset))
        return self.high_watermark

    def raise_high_watermark(self, watermark: OffsetMetadata) -> OffsetMetadata | None:
        """Raise the high watermark, as a leader does (``maybeIncrementHighWatermark``, LG-104).

        The same offset replaces it if its place is in a newer segment.

        Returns:
            The previous high watermark, or None if it was not replaced.

        Raises:
            InvalidArgumentError: the offset is larger than the log end offset.
            KidxError, OSError: as :meth:`watermark_metadata`.
        """
        if watermark.offset > self.end_offset:
            raise InvalidArgumentError(f"High watermark {watermark} exceeds the log end offset {self.end_metadata}")
        before = self.watermark_metadata()
        is_newer = before.offset == watermark.offset and before.is_on_older_segment(watermark)
        if not (before.offset < watermark.offset or is_newer):
            return None
        self._set_watermark(watermark)
        return before

    def offset_snapshot(self) -> tuple[int, int, int, int]:
        """Return start, end, high watermark and last stable offset, as a fetch gets them (``fetchOffsetSnapshot``).

        Raises:
            KidxError, OSError: as :meth:`watermark_metadata`.
        """
        last_stable = self.last_stable_metadata()
        watermark = self.watermark_metadata()
        return self.start_offset, self.end_offset, watermark.offset, last_stable.offset

    def end_offset_for_epoch(self, epoch: int) -> tuple[int, int] | None:
        """Return the largest known leader epoch up to ``epoch`` and the offset at which it ends, or None (LG-85).

        A follower whose last records have ``epoch`` truncates there (``endOffsetForEpoch``, KIP-279).
        """
        return self.epochs.end_of(epoch, self.end_offset)

    def _set_end_offset(self, offset: int) -> None:
        self.end_offset = offset
        if self.high_watermark >= offset:
            self._set_watermark(self.end_metadata)
        if self.recovery_point > offset and self.dialect.start_moves_other_offsets:
            self.recovery_point = offset

    def _set_start_offset(self, offset: int) -> None:
        self.start_offset = offset
        if min(self.high_watermark, self.recovery_point) >= offset or not self.dialect.start_moves_other_offsets:
            return
        if self.high_watermark < offset:
            self.update_high_watermark(offset)
        self.recovery_point = max(self.recovery_point, offset)

    def delete_records(self, offset: int) -> None:
        """Move the log start offset up to ``offset``; :meth:`delete_old_segments` deletes the files.

        Raises:
            OffsetOutOfRangeError: ``offset`` is larger than the high watermark.
        """
        if offset > self.high_watermark:
            raise OffsetOutOfRangeError(
                f"Cannot increment the log start offset to {offset} of partition {self.directory.name}"
                f" since it is larger than the high watermark {self.high_watermark}"
            )
        self._check_usable()
        if offset > self.start_offset:
            self._set_start_offset(offset)
            self.search_start = offset
            self.epochs.truncate_from_start(offset)
            self.producers.on_log_start(offset)
            self._update_first_unstable_offset()

    def assign_epoch_start_offset(self, epoch: int, offset: int) -> None:
        """Record that a leader epoch begins at ``offset``, as a new leader does.

        Raises:
            InvalidArgumentError: ``epoch`` or ``offset`` is negative.
        """
        self.epochs.assign(epoch, offset)

    def assign_topic_id(self, topic_id: str) -> None:
        """Give the log the id of its topic, and write it to ``partition.metadata`` if there is no such file (LG-90).

        Args:
            topic_id: 16 bytes in base64, without padding.

        Raises:
            InconsistentTopicIdError: the log has another topic id.
            OSError: the file cannot be written.
        """
        if not self.dialect.logs_have_topic_ids:
            return
        if self.topic_id not in (None, topic_id):
            raise InconsistentTopicIdError(
                f"Tried to assign topic ID {topic_id} to log for topic partition {self.directory.name},"
                f"but log already contained topic ID {self.topic_id}"
            )
        self.topic_id = topic_id
        if not self._topic_id_file.path.exists():
            self._topic_id_file.write(topic_id)

    # -- appending -----------------------------------------------------------------------------------------------------

    def start_verification(
        self, producer_id: int, sequence: int, epoch: int, *, raises_epochs: bool = False
    ) -> VerificationStateEntry | None:
        """Start the verification of a producer's next transaction (``maybeStartTransactionVerification``; LG-45).

        Args:
            sequence: sequence number of the batch that the transaction may begin with.
            raises_epochs: True if the producer raises its epoch with each transaction (from 4.0).

        Returns:
            The guard to pass to :meth:`append_as_leader`; None if the transaction is open already, or before 3.6.

        Raises:
            ProducerFencedError: the producer has a newer epoch already (from 4.1 on).
        """
        if not self.dialect.transactions_are_verified:
            return None
        known = self.producers.producers.get(producer_id)
        if known is not None and epoch < known.producer_epoch and self.dialect.verification_fences:
            raise ProducerFencedError(
                f"Epoch of producer {producer_id} is {epoch}, which is smaller than {known.producer_epoch}"
            )
        if self.producers.has_ongoing(producer_id, epoch):
            return None
        return self.producers.verify(producer_id, sequence, epoch, self.clock(), raises_epochs=raises_epochs)

    def append_as_leader(
        self,
        records: bytes,
        leader_epoch: int,
        *,
        from_client: bool = True,
        guard: VerificationStateEntry | None = None,
        transaction_version: int = 0,
    ) -> AppendResult:
        """Assign offsets to batches, change them as the topic requires, and append them.

        Args:
            records: data from a producer: a v2 batch whose first offset is 0, or messages of the older formats.
            from_client: True if a producer sent the records; False for a transaction coordinator's marker.
            guard: guard from :meth:`start_verification` if a transaction begins, or None.
            transaction_version: version of the transaction that a marker ends (from 4.2).

        Raises:
            InvalidRecordError, CorruptRecordError, RecordTooLargeError, InvalidTimestampError: rejected records.
            KidxError, OSError: as :func:`~kidx.log.validation.validate` and :meth:`LogSegment.append`.
        """
        with self._operation():
            limit, decompressor = self.config.largest_message(self.dialect), self.dialect.decompressor
            batches = checked_batches(
                records, self.directory.name, limit, from_client=from_client, decompressor=decompressor
            )
            if not batches:
                return AppendResult.nothing(self.start_offset)
            self._check_usable()
            context = ValidationContext(
                self.dialect, self.config, self.end_offset, leader_epoch, self.clock(), from_client
            )
            final, rebuilt, first_largest = self.validate(batches, context)
            appended = list(iter_memory_batches(final, decompressor=decompressor))
            if rebuilt:
                ensure_allowed_size(appended, limit)
            info = leader_append_info(final, dialect=self.dialect, rebuilt=rebuilt, first_largest=first_largest)
            origin = Origin.CLIENT if from_client else Origin.COORDINATOR
            verified = TransactionVerification(self.config.verifies_transactions, guard, transaction_version)
            result = append_result(
                batches,
                info,
                first=self.end_offset,
                start=self.start_offset,
                log_append_time=NO_TIMESTAMP if context.log_append_time is None else context.log_append_time,
            )
            return self._append(final, appended, info, result, origin, verified)

    def append_as_follower(self, records: bytes, leader_epoch: int = INT_MAX) -> AppendResult:
        """Append batches as received from a leader.

        Args:
            records: any number of batches of any format.
            leader_epoch: epoch of the leader; batches of a newer epoch are skipped in 3.9.1, 3.9.2 and from 4.0.1 on.

        Raises:
            OffsetsOutOfOrderError, UnexpectedAppendOffsetError: the offsets do not continue at the log end.
            CorruptRecordError, RecordTooLargeError, InvalidArgumentError: a batch is rejected.
            KidxError, OSError: as :meth:`LogSegment.append`.
        """
        with self._operation():
            batches = checked_batches(
                records,
                self.directory.name,
                self.config.largest_message(self.dialect),
                highest_epoch=leader_epoch,
                skips_newer=lambda: self.dialect.follower_skips_newer_epochs,
                checks_size=lambda: self.dialect.follower_checks_message_size,
                decompressor=self.dialect.decompressor,
            )
            if not batches:
                return AppendResult.nothing(self.start_offset)
            self._check_usable()
            lasts = [-1, *(batch.last_offset for batch in batches)]
            if any(previous >= last for previous, last in pairwise(lasts)):
                raise OffsetsOutOfOrderError(f"Out of order offsets found in append to {self.directory.name}")
            has_first = batches[0].magic >= 2
            first = batches[0].base_offset if has_first else batches[0].last_offset
            if first < self.end_offset:
                raise UnexpectedAppendOffsetError(
                    f"Unexpected offset in append to {self.directory.name}: {first} is less than the next offset"
                    f" {self.end_offset}"
                )
            valid = records[: sum(batch.size_in_bytes for batch in batches)]
            info, start = append_info_of(batches), self.start_offset
            result = append_result(batches, info, first=first if has_first else None, start=start)
            return self._append(valid, batches, info, result, Origin.REPLICATION)

    def _append(
        self,
        records: bytes,
        batches: list[RecordBatch],
        info: AppendInfo,
        result: AppendResult,
        origin: Origin,
        verified: TransactionVerification = NOTHING_VERIFIED,
    ) -> AppendResult:
        for batch in batches:
            if batch.magic >= 2:
                self.epochs.assign(batch.partition_leader_epoch, batch.base_offset)
            elif self.epochs.entries:
                self.epochs.clear()
        if len(records) > self.config.segment_bytes:
            raise RecordTooLargeError(
                f"{len(records)} bytes exceed the maximum segment size of {self.config.segment_bytes}"
            )
        flushed = self.recovery_point  # what a roll flushes, it flushes in the background, after the append
        segment = self._maybe_roll(len(records), info, result.first_offset)
        changes = ProducerChanges(self.producers, batches, origin, verified, (segment.base_offset, segment.size))
        if changes.duplicate is not None:
            return result.repeating(changes.duplicate)
        segment.append(
            records,
            largest_offset=info.largest_offset,
            largest_timestamp=info.largest_timestamp,
            shallow_offset=info.shallow_offset,
        )
        self._set_end_offset(info.largest_offset + 1)
        changes.apply(segment)
        self.producers.map_end_offset = self.end_offset
        self._update_first_unstable_offset()
        if self.end_offset - flushed >= self.config.flush_messages:
            self.flush()
        return result

    def _maybe_roll(self, size: int, info: AppendInfo, first: int) -> LogSegment:
        segment = self.segments.active
        params = RollParams(
            self.config.segment_ms,
            self.config.segment_bytes,
            info.largest_timestamp,
            info.largest_offset,
            size,
            self.clock(),
        )
        if not segment.should_roll(params):
            return segment
        return self._roll(info.largest_offset - INT_MAX if first < 0 else first)

    def expire_producers(self) -> None:
        """Forget the producers that have been idle for too long, as a broker does periodically."""
        self.producers.remove_expired(self.clock(), self.config.producer_id_expiration_ms)

    def has_late_transaction(self, now: int, longest_ms: int) -> bool:
        """Return True if the oldest transaction has been open for too long, as one that nothing ends (LG-106).

        Args:
            now: time in milliseconds.
            longest_ms: ``transaction.max.timeout.ms`` of the broker, the longest allowed transaction.
        """
        last = self.producers.oldest_transaction_timestamp
        return self.dialect.logs_know_late_transactions and last > 0 and now - last > longest_ms + LATE_MS

    # -- rolling and truncation ----------------------------------------------------------------------------------------

    def roll(self) -> LogSegment:
        """Start a new segment at the log end (SEG-22, SEG-23).

        Raises:
            LogError: a segment of that name exists already, and it is not empty.
            KidxError, OSError: as :meth:`LogSegment.on_become_inactive_segment`.
        """
        with self._operation():
            return self._roll(0)

    def _roll(self, expected_offset: int) -> LogSegment:
        self._check_usable()
        base = max(expected_offset, self.end_offset)
        active = self.segments.active
        if base in self.segments:
            if active.base_offset != base or active.size > 0:
                existing = self.segments.values_from(base)[0]
                raise LogError(
                    f"Trying to roll a new log segment with start offset {base} while it already exists. Existing "
                    f"segment is {existing.kafka_text()}."
                )
            self._detach([active], rolling=True)
        elif base < active.base_offset:
            raise LogError(  # in old releases the message opens the time index of the segment that it describes (LG-68)
                f"Trying to roll a new log segment with start offset {base} lower than start offset of the active "
                f"segment {active.kafka_text()}"
            )
        else:
            for suffix in SEGMENT_SUFFIXES:
                with contextlib.suppress(FileNotFoundError):
                    os.unlink(f"{self.directory}/{file_name(base, suffix)}")  # noqa: PTH108 -- measurable in every roll
            active.on_become_inactive_segment()
        segment = self._open_segment(base)
        self.segments.add(segment)
        self.producers.map_end_offset = base
        self.producers.take_snapshot()
        self._set_end_offset(self.end_offset)
        self.recovery_point = max(self.recovery_point, base)
        return segment

    def truncate_to(self, offset: int) -> bool:
        """Remove everything from ``offset`` on, including the whole batch that contains it.

        Returns:
            True if ``offset`` is below the end of the log.

        Raises:
            InvalidArgumentError: ``offset`` is negative.
            KidxError, OSError: as :meth:`LogSegment.truncate_to`.
        """
        if offset < 0:
            raise InvalidArgumentError(
                f"Cannot truncate partition {self.directory.name} to a negative offset ({offset})."
            )
        with self._operation():
            if offset >= self.end_offset:
                if self.dialect.idle_truncation_truncates_epochs:
                    self.epochs.truncate_from_end(self.end_offset)
                return False
            self._check_usable()
            if self.segments.first.base_offset > offset:
                self._truncate_fully(offset)
                return True
            later = [segment for segment in self.segments if segment.base_offset > offset]
            if self.dialect.truncation_keeps_snapshots_first:
                self.segments.detach(later)
                self.segments.active.truncate_to(offset)
                self._delete_snapshots(later)
            else:
                self._detach(later)
                self.segments.active.truncate_to(offset)
            start = min(offset, self.start_offset)
            if self.dialect.truncation_updates_transactions:
                self._set_end_offset(offset)
                self._set_start_offset(start)
            self.end_offset = offset
            self.recovery_point = min(self.recovery_point, offset)
            self.start_offset = start
            self.epochs.truncate_from_end(offset)
            self._rebuild_producers()
            if self.dialect.truncation_updates_transactions:
                self._update_first_unstable_offset()
            elif self.high_watermark >= offset or self.dialect.truncation_applies_any_watermark:
                self.update_high_watermark(self.high_watermark)
            return True

    def truncate_fully_and_start_at(self, offset: int) -> None:
        """Remove everything and start again at ``offset``, as a follower that lags too far does.

        Raises:
            OSError: a file cannot be renamed or created.
        """
        with self._operation():
            self._truncate_fully(offset)

    def _truncate_fully(self, offset: int) -> None:
        self._check_usable()
        self._detach(list(self.segments))
        self.segments.add(self._open_segment(offset))
        if self.dialect.truncation_updates_transactions:
            self._set_end_offset(offset)
        self.end_offset = offset
        self.recovery_point = min(self.recovery_point, offset)
        self.epochs.clear()
        self.producers.truncate_fully_and_start_at(offset)
        self.start_offset = offset
        if self.dialect.full_truncation_moves_recovery_point:
            self.recovery_point = offset
        if self.dialect.full_truncation_keeps_high_watermark:
            self._update_first_unstable_offset()
            self.high_watermark = min(self.high_watermark, offset)
            return
        if not self.dialect.truncation_updates_transactions:
            self._rebuild_producers()
        elif self.high_watermark == offset:
            # It is the end with its place, from which a later truncation inside a batch does not move it.
            self._update_first_unstable_offset()
            return
        self.update_high_watermark(offset)

    @contextlib.contextmanager
    def _operation(self) -> Iterator[None]:
        """Delete the files of removed segments when the block ends, also after an error."""
        try:
            yield
        finally:
            self._delete_detached()

    def _delete_detached(self) -> None:
        self.producers.delete_set_aside()
        detached = self.segments.delete_detached()
        if detached and self.dialect.caches_snapshot_list and not self.dialect.snapshot_renamed_with_segment:
            for segment in detached:
                self.producers.delete_snapshot(segment.base_offset)

    def _detach(self, segments: list[LogSegment], *, rolling: bool = False) -> None:
        """Remove segments, and the snapshots at their base offsets."""
        self.segments.detach(segments)
        if not (rolling and self.dialect.rolling_keeps_snapshot):
            self._delete_snapshots(segments)

    def _delete_snapshots(self, segments: list[LogSegment]) -> None:
        if self.dialect.snapshot_renamed_with_segment:
            for segment in segments:
                self.producers.delete_snapshot(segment.base_offset)

    def _rebuild_producers(self, *, clean: bool = False) -> None:
        rebuild_producers(
            self.producers,
            self.segments,
            start_offset=self.start_offset,
            end_offset=self.end_offset,
            now=self.clock(),
            clean=clean,
        )

    # -- retention -----------------------------------------------------------------------------------------------------

    def delete_old_segments(self) -> int:
        """Apply retention by time, by size and by start offset; return the number of deleted segments.

        Raises:
            KidxError, OSError: as rolling and deleting.
        """
        with self._operation():
            return delete_old_segments(self)

    def delete_segments_before_start(self) -> int:
        """Delete only the segments below the log start; return their number.

        Raises:
            KidxError, OSError: as rolling and deleting.
        """
        with self._operation():
            return delete_segments_before_start(self)

    def remove_oldest(self, segments: list[LogSegment]) -> None:
        """Remove these first segments for retention; roll an empty segment first if they are all segments.

        Raises:
            KidxError, OSError: as rolling and deleting.
        """
        if len(segments) == len(self.segments):
            self._roll(0)
        self._check_usable()
        following = self.segments.higher(segments[-1].base_offset)
        start = self.segments.active.base_offset if following is None else following.base_offset
        if self.dialect.start_moves_before_deletion:
            self.delete_records(start)
            self._detach(segments)
        else:
            self._detach(segments)
            self.delete_records(start)

    # -- compaction ----------------------------------------------------------------------------------------------

    def clean(
        self,
        checkpoint: int | None = None,
        *,
        io_buffer_size: int = 1 << 19,
        slots: int = 1 << 20,
        at: CrashPointCallback | None = None,
    ) -> CleanerStats | None:
        """Compact the log once, as a broker's cleaner does after it has selected the log (CL-1 to CL-20).

        Args:
            checkpoint: offset up to which the log has been cleaned; None for never.
            io_buffer_size: number of bytes read and written at a time, half of ``log.cleaner.io.buffer.size``. It
                decides the index entries (CL-5).
            slots: number of keys that fit into the cleaner's offset map, from ``log.cleaner.dedupe.buffer.size``.
            at: callback that is called at each point at which a crash may happen, or None. If it raises, the files
                remain as they are at that point.

        Returns:
            The start of the next round and the statistics, or None if nothing can be cleaned.

        Raises:
            IllegalStateError: a batch is too large, or would be emptied although it has an old format (CL-15).
            KidxError, OSError: as reading batches, writing them, and :meth:`LogSegment.append`.
        """
        bounds = cleanable_range(self, checkpoint)
        if bounds is None:
            return None
        if at is not None:
            return self.cleaner(self, io_buffer_size, slots, at).clean(*bounds)
        with self._operation():
            return self.cleaner(self, io_buffer_size, slots).clean(*bounds)

    # -- reading -----------------------------------------------------------------------------------------------

    def fetch(self, offset: int, max_bytes: int, isolation: Isolation = "log_end", *, whole_batch: bool) -> Fetched:
        """Return the place and the size of what a fetch gets, and the aborted transactions (LG-101, LG-102).

        Args:
            offset: the first requested offset.
            max_bytes: maximum number of bytes.
            isolation: limit of the read; only ``"txn_committed"`` returns aborted transactions.
            whole_batch: True to return the first batch even if it is larger than ``max_bytes``.

        Raises:
            OffsetOutOfRangeError: the log does not have the offset.
            InvalidArgumentError: ``max_bytes`` is negative.
            KidxError, OSError: an index or a log cannot be read.
        """
        return fetch(self, offset, max_bytes, isolation, whole_batch=whole_batch)

    def fetch_offset_by_timestamp(self, target: int) -> TimestampAndOffset | None:
        """Return the first record with a timestamp ≥ ``target``, or the result of a special target; or None.

        A negative number that the release does not support as a special target is an ordinary timestamp.
        :func:`kidx.log.list_offset` returns the part of the result that is visible to a consumer.

        Args:
            target: milliseconds; -1 latest, -2 earliest, -3 largest timestamp, -4 … -6 see :mod:`kidx.log.lookup`.

        Raises:
            KidxError, OSError: an index or a log cannot be read.
        """
        return fetch_offset(self, target)

    # -- moving and deleting -----------------------------------------------------------------------------------

    def rename_directory(self, name: str, *, deletes: bool = False) -> None:
        """Rename the directory, as a broker does that moves the log to another disk, or deletes it later (LG-92).

        Args:
            name: the new name, in the same parent directory.
            deletes: True if the log will be deleted. From 3.3 on, it then forgets its leader epochs (LG-93).

        Raises:
            OSError: the directory cannot be renamed.
        """
        target = self.directory.with_name(name)
        if target == self.directory:
            return
        self.directory.rename(target)
        self.directory = self._loader.directory = self.producers.directory = target
        for segment in self.segments:
            segment.update_parent_dir(target)
        self._topic_id_file.path = target / PARTITION_METADATA
        if deletes and self.dialect.deletion_forgets_epochs:
            self.epochs.path = target / FILE_NAME
            self.epochs.entries = []
        else:
            self.epochs = self._loader.epochs = self._stored_epochs()

    def delete(self) -> None:
        """Delete the directory with all its files (LG-96).

        Raises:
            FailedLogError: up to 4.3, the disk of the log has failed (LG-97).
            OSError: a file cannot be deleted.
        """
        if not self.dialect.deletes_failed_logs:
            self._check_usable()
        self.release_handles()
        shutil.rmtree(self.directory)

    # -- closing -----------------------------------------------------------------------------------------------

    def flush(self, *, force_active: bool = False) -> None:
        """Sync the segments that may not be on disk, and move the recovery point to the end.

        Args:
            force_active: True to sync also an active segment without a record.

        Raises:
            OSError: a file cannot be synced.
        """
        limit = self.end_offset + 1 if force_active else self.end_offset
        if limit <= self.recovery_point:
            return
        for segment in self.segments.values_from(self.recovery_point):
            if segment.base_offset < limit:
                segment.flush()
        self.recovery_point = max(self.recovery_point, self.end_offset)

    def close(self, *, prepare: bool = True) -> None:
        """Close all segments as a broker does at a clean shutdown (SEG-24).

        Args:
            prepare: True to flush first; from 4.4.0 on, also to append the last time entry and trim the active segment,
                as ``LogManager`` does at shutdown. If False, 4.4.0 keeps the preallocated tails (SEG-27).

        Raises:
            KidxError, OSError: as :meth:`LogSegment.close`.
        """
        self._check_usable()
        if prepare and not self.dialect.close_finishes_segment:
            self.segments.active.on_become_inactive_segment()
        if prepare:
            nothing_left = self.end_offset in (self.recovery_point, self.segments.active.base_offset)
            self.flush(force_active=nothing_left and self.dialect.shutdown_flushes_empty_segment)
        self.producers.take_snapshot()
        for segment in self.segments:
            segment.close()

    def fail(self) -> None:
        """Close all files without changing them, as a broker does when a disk has failed (LG-94).

        Up to 2.5 the indexes are first opened, and so created (LG-95).
        """
        for segment in self.segments:
            segment.close_handlers()
        self.is_failed = True

    def _check_usable(self) -> None:
        if self.is_failed:
            raise FailedLogError(f"The memory mapped buffer for log of {self.directory.name} is already closed")

    def release_handles(self) -> None:
        """Close all files without changing them, as a killed process does."""
        for segment in self.segments:
            segment.close_handlers()
