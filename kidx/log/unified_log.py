"""A partition's log: segments, their start, end and high watermark, and appends to them (``UnifiedLog``)."""

from __future__ import annotations

import os
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Self

from kidx.dialect import Dialect, dialect_of
from kidx.java_numbers import INT_MAX
from kidx.log.appending import NOTHING_VERIFIED, ProducerChanges, Verified
from kidx.log.cleaning import Cleaner, Cleaning, Watch, cleanable_range
from kidx.log.config import LogConfig
from kidx.log.epochs import FILE_NAME, LeaderEpochCache
from kidx.log.errors import OffsetsOutOfOrderError, RecordTooLargeError, UnexpectedAppendOffsetError
from kidx.log.loader import Loader
from kidx.log.lookup import fetch_offset
from kidx.log.segmented import SegmentedLog
from kidx.log.validation import Terms, checked_batches, ensure_allowed_size, validate
from kidx.producers import Origin, ProducerFencedError, ProducerStateManager, Verification
from kidx.records import RecordBatch, iter_memory_batches
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

if TYPE_CHECKING:
    from kidx.log.segments import Segments


class UnifiedLog(SegmentedLog):
    """The log of one partition, opened or created; a context manager that closes it as a clean shutdown does.

    What a broker does in the background is done at once: removed files are deleted, a rolled segment counts as flushed.
    There is no tiered storage. Compaction is an operation, :meth:`clean`.

    Args:
        directory: of the partition, e.g. ``/data/orders-0``.
        config: of the topic; Kafka's defaults if None.
        log_start_offset: the broker's checkpoint of it.
        recovery_point: the broker's checkpoint below which everything is on disk; only asked for if not clean.
        clean: whether the last shutdown was; if not, segments from the recovery point on are recovered (SEG-35).
        clock: the wall clock, milliseconds.
        dialect: a release such as ``"3.9.2"``, or a :class:`~kidx.dialect.Dialect`; the newest release by default.

    Attributes:
        start_offset: the first offset that a client may see.
        search_start: where 3.5 lets a search by timestamp begin: the start offset, not taken back by a truncation.
        end_offset: the offset of the next record.
        high_watermark: everything below is on all replicas; at first the start offset, see
            :meth:`update_high_watermark`.
        recovery_point: everything below is on disk.
        first_unstable_offset: where the first transaction began that is open, or completed and not replicated, as far
            as that was looked for; None if there is none.
        segments, epochs, producers: the parts.

    Raises:
        KidxError, OSError: what loading cannot mend.
    """

    producer_state: type[ProducerStateManager] = ProducerStateManager
    validate = staticmethod(validate)
    cleaner: type[Cleaner] = Cleaner

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
        self.directory.mkdir(parents=True, exist_ok=True)
        self.epochs = LeaderEpochCache(
            self.directory / FILE_NAME,
            numbers_escape=self.dialect.epochs_escape,
            are_checked=self.dialect.stored_epochs_are_checked,
        )
        self.producers = self.producer_state(
            self.directory, self.dialect, expiration_ms=self.config.producer_id_expiration_ms
        )
        loader = Loader(
            self.directory,
            self.config,
            self.dialect,
            clock,
            self.epochs,
            self.producers,
            start_offset=log_start_offset,
            recovery_point=recovery_point,
            clean=clean,
        )
        self.end_offset = loader.load()
        self._open_segment: Callable[[int], LogSegment] = loader.open_segment
        self.segments: Segments = loader.segments
        self.start_offset = max(log_start_offset, self.segments.first.base_offset)
        self.search_start = self.start_offset
        self.recovery_point = loader.recovery_point
        if self.recovery_point < self.start_offset and self.dialect.start_moves_other_offsets:
            self.recovery_point = self.start_offset
        moved = self.start_offset != log_start_offset
        self.high_watermark = (
            self.start_offset if not moved or self.dialect.start_moves_other_offsets else log_start_offset
        )
        self.watermark_is_located = (
            moved and self.high_watermark >= self.end_offset and self.dialect.loading_locates_moved_watermark
        )
        self.epochs.truncate_from_end(self.end_offset)
        self.epochs.truncate_from_start(
            self.start_offset if not moved or self.dialect.loading_cuts_epochs_at_start else log_start_offset
        )
        self.first_unstable_offset: int | None = None
        self.producers.remove_stray_snapshots(segment.base_offset for segment in self.segments)
        self._rebuild_producers(clean=clean)
        self._settle()
        self._delete_retired()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return (
            f"UnifiedLog({str(self.directory)!r}, {self.start_offset}..{self.end_offset},"
            f" {len(self.segments)} segments, dialect={self.dialect.release!r})"
        )

    # -- appending ---------------------------------------------------------------------------------------------

    def start_verification(
        self, producer_id: int, sequence: int, epoch: int, *, raises_epochs: bool = False
    ) -> Verification | None:
        """Begins to verify a producer's next transaction (``maybeStartTransactionVerification``; LG-45).

        Args:
            producer_id: whose.
            sequence: of the batch that it may begin with.
            epoch: of the producer.
            raises_epochs: it raises its epoch with each transaction (from 4.0).

        Returns:
            The guard that the batch has to come with; None if the transaction is open, or before 3.6.

        Raises:
            ProducerFencedError: the epoch is an old one, from 4.1 on.
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
        guard: Verification | None = None,
        transaction_version: int = 0,
    ) -> None:
        """Gives batches their offsets, changes them as the topic wants them, and appends them.

        Args:
            records: what a producer sends: a v2 batch whose first offset is 0, or messages of the older formats.
            leader_epoch: of this leader.
            from_client: a producer sent it; False for a transaction coordinator's marker.
            guard: of :meth:`start_verification`, for a transaction that begins.
            transaction_version: of a marker's transaction (from 4.2).

        Raises:
            InvalidRecordError, CorruptRecordError, RecordTooLargeError, InvalidTimestampError: they are refused.
            KidxError, OSError: as :func:`~kidx.log.validation.validate` and :meth:`LogSegment.append`.
        """
        with self._operation():
            limit = self.config.max_message_bytes
            decompressor = self.dialect.decompressor
            batches = checked_batches(
                records, self.directory.name, limit, from_client=from_client, decompressor=decompressor
            )
            if not batches:
                return
            terms = Terms(self.dialect, self.config, self.end_offset, leader_epoch, self.clock(), from_client)
            final, rebuilt, first_largest = self.validate(batches, terms)
            appended = list(iter_memory_batches(final, decompressor=decompressor))
            if rebuilt:
                ensure_allowed_size(appended, limit)
            info = leader_append_info(final, dialect=self.dialect, rebuilt=rebuilt, first_largest=first_largest)
            origin = Origin.CLIENT if from_client else Origin.COORDINATOR
            verified = Verified(self.config.verifies_transactions, guard, transaction_version)
            self._append(final, appended, info, self.end_offset, origin, verified)

    def append_as_follower(self, records: bytes, leader_epoch: int = INT_MAX) -> None:
        """Appends batches as a leader sent them.

        Args:
            records: any number of batches of any format.
            leader_epoch: of the leader fetched from; newer batches are left out (KAFKA-18723; from 3.9.1 and 4.0.1).

        Raises:
            OffsetsOutOfOrderError, UnexpectedAppendOffsetError: the offsets do not go on where the log ends.
            CorruptRecordError, RecordTooLargeError, InvalidArgumentError: a batch is refused.
            KidxError, OSError: as :meth:`LogSegment.append`.
        """
        with self._operation():
            batches = checked_batches(
                records,
                self.directory.name,
                self.config.max_message_bytes,
                highest_epoch=leader_epoch,
                leaves_out=lambda: self.dialect.follower_skips_newer_epochs,
                asks_for_sizes=lambda: self.dialect.followers_ask_for_sizes,
                decompressor=self.dialect.decompressor,
            )
            if not batches:
                return
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
            self._append(valid, batches, append_info_of(batches), first if has_first else None, Origin.REPLICATION)

    def _append(
        self,
        records: bytes,
        batches: list[RecordBatch],
        info: AppendInfo,
        first: int | None,
        origin: Origin,
        verified: Verified = NOTHING_VERIFIED,
    ) -> None:
        for batch in batches:
            if batch.magic >= 2:
                self.epochs.assign(batch.partition_leader_epoch, batch.base_offset)
            elif self.epochs.entries:
                self.epochs.clear()
        if len(records) > self.config.segment_bytes:
            raise RecordTooLargeError(
                f"{len(records)} bytes exceed the maximum segment size of {self.config.segment_bytes}"
            )
        segment = self._maybe_roll(len(records), info, first)
        changes = ProducerChanges(self.producers, batches, origin, verified)
        if changes.is_duplicate:
            return
        segment.append(
            records,
            largest_offset=info.largest_offset,
            largest_timestamp=info.largest_timestamp,
            shallow_offset=info.shallow_offset,
        )
        self._set_end_offset(info.largest_offset + 1)
        changes.apply(segment)
        self.producers.map_end_offset = self.end_offset
        self._settle()

    def _maybe_roll(self, size: int, info: AppendInfo, first: int | None) -> LogSegment:
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
        return self._roll(info.largest_offset - INT_MAX if first is None else first)

    def expire_producers(self) -> None:
        """Forgets the producers that have been silent for too long, as a broker does now and then."""
        self.producers.remove_expired(self.clock(), self.config.producer_id_expiration_ms)

    # -- cleaning ----------------------------------------------------------------------------------------------

    def clean(
        self,
        checkpoint: int | None = None,
        *,
        io_buffer_size: int = 1 << 19,
        slots: int = 1 << 20,
        at: Watch | None = None,
    ) -> Cleaning | None:
        """Compacts the log once, as the cleaner of a broker does that has chosen it (CL-1 to CL-20).

        Args:
            checkpoint: up to where it has been cleaned before; None for never.
            io_buffer_size: bytes that are read and written at once, half of ``log.cleaner.io.buffer.size``. Decides
                which index entries there are (CL-5).
            slots: keys that fit into the cleaner's table, by ``log.cleaner.dedupe.buffer.size``.
            at: told of each place that a crash may come at; the files stay as they are there if it raises.

        Returns:
            Where the next round begins, and what was read and written; None if there is nothing to clean.

        Raises:
            IllegalStateError: a batch is too large, or to be emptied though it is of an old format (CL-15).
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

    def fetch_offset_by_timestamp(self, target: int) -> TimestampAndOffset | None:
        """The first record with a timestamp ≥ ``target``, or what a special target asks for; None if there is none.

        What a release does not know as special is an ordinary timestamp. What a consumer would get to see of the
        answer, :func:`kidx.log.list_offset` says.

        Args:
            target: milliseconds; -1 latest, -2 earliest, -3 largest timestamp, -4 … -6 see :mod:`kidx.log.lookup`.

        Raises:
            KidxError, OSError: an index or a log cannot be read.
        """
        return fetch_offset(self, target)

    # -- closing -----------------------------------------------------------------------------------------------

    def flush(self, *, force_active: bool = False) -> None:
        """Syncs the segments that may not be on disk, and moves the recovery point to the end.

        Args:
            force_active: also an active segment without a record.

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
        """Closes all segments as a broker does at a clean shutdown (SEG-24).

        Args:
            prepare: in 4.4 and later, do before what ``LogManager`` does at shutdown: the last time entry, and trimming
                the active segment. Without it that release leaves the room behind the entries (SEG-27).

        Raises:
            KidxError, OSError: as :meth:`LogSegment.close`.
        """
        if prepare and not self.dialect.close_finishes_segment:
            self.segments.active.on_become_inactive_segment()
        if prepare:
            nothing_left = self.end_offset in (self.recovery_point, self.segments.active.base_offset)
            self.flush(force_active=nothing_left and self.dialect.shutdown_flushes_empty_segment)
        self.producers.take_snapshot()
        for segment in self.segments:
            segment.close()

    def abandon(self) -> None:
        """Lets go of all files as they are, as a killed process does."""
        for segment in self.segments:
            segment.close_handlers()
