"""Recovery: rebuilds a segment's indexes from its log (``LogSegment.recover``; SEG-30)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from kidx.index.entries import TimestampOffset
from kidx.producers import ProducerState
from kidx.records import CorruptRecordError, InvalidRecordError

if TYPE_CHECKING:
    from kidx.dialect import Dialect
    from kidx.index.offset import OffsetIndex
    from kidx.index.time import TimeIndex
    from kidx.index.transaction import TransactionIndex
    from kidx.producers import CompletedTxn
    from kidx.records import RecordBatch
    from kidx.segment.file_records import FileRecords
    from kidx.segment.max_timestamp import MaxTimestamp


class RecoverableSegment(Protocol):
    """Attributes of a segment that recovery needs; :class:`~kidx.LogSegment` describes them."""

    dialect: Dialect
    log: FileRecords
    maximum: MaxTimestamp
    index_interval_bytes: int

    @property
    def size(self) -> int:
        """Size of the log in bytes."""

    @property
    def offset_index(self) -> OffsetIndex:
        """The ``.index`` file, opened by its first use."""

    @property
    def time_index(self) -> TimeIndex:
        """The ``.timeindex`` file, opened by its first use."""

    @property
    def txn_index(self) -> TransactionIndex:
        """The ``.txnindex`` file."""

    def ensure_offset_in_range(self, offset: int) -> None:
        """Raise an error if the indexes cannot hold the offset."""

    def update_txn_index(self, completed: CompletedTxn, last_stable_offset: int) -> None:
        """Append a completed transaction if it was aborted."""


class EpochCache(Protocol):
    """Start offsets of the leader epochs of a log."""

    @property
    def latest_epoch(self) -> int | None:
        """Last epoch, or None."""

    def assign(self, epoch: int, start_offset: int) -> None:
        """Record the start of an epoch."""


def recover(
    segment: RecoverableSegment, producer_state: ProducerState | None = None, epoch_cache: EpochCache | None = None
) -> int:
    """Rebuild all three indexes and truncate the log before the first invalid batch (SEG-30, SEG-34).

    Indexing also stops at a transaction marker that cannot be read, but the batch of that marker is kept.

    Args:
        segment: the segment; its index files are emptied, or created.
        producer_state: the producers as of the start of this segment; by default none are known.
        epoch_cache: cache that the leader epochs are added to; None discards them.

    Returns:
        The number of bytes truncated from the log.

    Raises:
        SegmentOffsetOverflowError: a batch's last offset is out of the indexes' range.
        InvalidOffsetError: an entry's offset does not follow the last one (SEG-33).
        InvalidArgumentError: an index is full.
        KidxError: :meth:`ProducerState.update` fails, except at an unreadable record or marker; or a header cannot be
            read. After any error the indexes remain incomplete.
    """
    state = ProducerState(dialect=segment.dialect) if producer_state is None else producer_state
    segment.offset_index.reset()
    segment.time_index.reset()
    segment.txn_index.reset()
    segment.maximum.forget()
    valid_bytes = _index_batches(segment, state, epoch_cache)
    truncated = segment.size - valid_bytes
    segment.log.truncate_to(valid_bytes)
    segment.offset_index.trim_to_valid_size()
    segment.time_index.maybe_append(segment.maximum.timestamp, segment.maximum.offset, skip_full_check=True)
    segment.time_index.trim_to_valid_size()
    return truncated


def _index_batches(segment: RecoverableSegment, state: ProducerState, epoch_cache: EpochCache | None) -> int:
    """Index every batch up to the first invalid one and return its position."""
    valid_bytes = last_index_entry = 0
    try:
        for batch in segment.log.batches():
            batch.ensure_valid()
            last = batch.last_offset
            segment.ensure_offset_in_range(last)
            if batch.max_timestamp > segment.maximum.timestamp:
                segment.maximum.set(TimestampOffset(batch.max_timestamp, last))
            if valid_bytes - last_index_entry > segment.index_interval_bytes:
                segment.offset_index.append(last, valid_bytes)
                segment.time_index.maybe_append(segment.maximum.timestamp, segment.maximum.offset)
                last_index_entry = valid_bytes
            valid_bytes += batch.size_in_bytes
            if batch.magic >= 2:
                _record_epoch(segment, batch, epoch_cache)
                _record_producer(segment, batch, state)
    except (CorruptRecordError, InvalidRecordError):
        # If _record_producer raises, valid_bytes already includes the batch: as in Kafka, indexing stops but the batch
        # is kept.
        pass
    return valid_bytes


def _record_epoch(segment: RecoverableSegment, batch: RecordBatch, cache: EpochCache | None) -> None:
    if cache is None:
        return
    lowest = 1 if segment.dialect.recover_ignores_epoch_zero else 0
    epoch, latest = batch.partition_leader_epoch, cache.latest_epoch
    if epoch >= lowest and (latest is None or epoch > latest):
        cache.assign(epoch, batch.base_offset)


def _record_producer(segment: RecoverableSegment, batch: RecordBatch, state: ProducerState) -> None:
    completed = state.update(batch)
    if completed is not None:
        segment.update_txn_index(completed, state.last_stable_offset(completed))
        state.complete(completed)
    state.map_end_offset = batch.next_offset
