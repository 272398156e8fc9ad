"""Defects of a cleaner: retained records, its checkpoint, and opening a log after the cleaner was killed."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from conformance.implementations.mutants.registry import PER_APPEND, defect
from kidx.log import UnifiedLog
from kidx.log.cleaning import CleanedTransactions, Cleaner, CleanerBuffer, CleanerStats, OffsetMap, RecordFilter

if TYPE_CHECKING:
    from kidx.index.transaction import TransactionIndex
    from kidx.records import Record, RecordBatch
    from kidx.segment import LogSegment


def _with(**parts: Any) -> type[Cleaner]:
    """Return a cleaner with other parts."""
    return type("SpoiltCleaner", (Cleaner,), parts)


@defect("CL-22")
class CleansYoungSegments(UnifiedLog):
    """Records do not have to be as old as the topic wants."""

    def clean(self, checkpoint: int | None = None, **options: Any) -> CleanerStats | None:
        config = self.config
        self.config = replace(config, min_compaction_lag_ms=0)
        try:
            return super().clean(checkpoint, **options)
        finally:
            self.config = config


# -- retention ------------------------------------------------------------------------------------------------------


class _NoProducers(RecordFilter):
    def is_last_of_producer(self, batch: RecordBatch) -> bool:
        del batch
        return False


@defect("CL-13")
class ForgetsLastBatchesOfProducers(UnifiedLog):
    """The last batch of a producer goes when its records do."""

    cleaner = _with(record_filter=_NoProducers)


class _EveryTombstone(RecordFilter):
    def retains_tombstones(self, batch: RecordBatch) -> bool:
        del batch
        return True


@defect("CL-10b")
class KeepsTombstonesForGood(UnifiedLog):
    """Tombstones are retained after their horizon."""

    cleaner = _with(record_filter=_EveryTombstone)


class _NoTombstone(RecordFilter):
    def retains_tombstones(self, batch: RecordBatch) -> bool:
        del batch
        return False


@defect("CL-10b")
class DropsTombstonesAtOnce(UnifiedLog):
    """Tombstones go in the first round."""

    cleaner = _with(record_filter=_NoTombstone)


class _NoHorizon(RecordFilter):
    def next_delete_horizon(self, batch: RecordBatch, kept: list[Record], *, marks_nothing: bool) -> int | None:
        del batch, kept, marks_nothing
        return None


@defect("CL-10b")
class NotesNoHorizon(UnifiedLog):
    """A batch with tombstones gets no delete horizon."""

    cleaner = _with(record_filter=_NoHorizon)


class _Keyless(RecordFilter):
    def retains_record(self, batch: RecordBatch, record: Record) -> bool:
        return record.key is None or super().retains_record(batch, record)


@defect("CL-12")
class KeepsRecordsWithoutKeys(UnifiedLog):
    """Records without keys are retained."""

    cleaner = _with(record_filter=_Keyless)


class _ShortBatches(RecordFilter):
    def rebuild(self, batch: RecordBatch, kept: list[Record], horizon: int | None, magic: int) -> bytes:
        whole = super().rebuild(batch, kept, horizon, magic)
        if magic < 2 or batch.last_offset == kept[-1].offset:
            return whole
        return _ended(whole, kept[-1].offset)


def _ended(data: bytes, last_offset: int) -> bytes:
    from kidx.records import iter_memory_batches, write_batch  # noqa: PLC0415
    from kidx.records.layout import RECORD_BATCH_OVERHEAD  # noqa: PLC0415

    batch: Any = next(iter(iter_memory_batches(data)))
    return write_batch(
        data[RECORD_BATCH_OVERHEAD:],
        base_offset=batch.base_offset,
        last_offset=last_offset,
        count=batch.count,
        codec=batch.codec,
        timestamp_type=batch.timestamp_type,
        base_timestamp=batch.base_timestamp,
        max_timestamp=batch.max_timestamp,
        producer_id=batch.producer_id,
        producer_epoch=batch.producer_epoch,
        base_sequence=batch.base_sequence,
        is_transactional=batch.is_transactional,
        is_control=batch.is_control,
        has_delete_horizon=batch.delete_horizon_ms is not None,
        partition_leader_epoch=batch.partition_leader_epoch,
    )


@defect("CL-7")
class EndsBatchesWithTheirLastRecord(UnifiedLog):
    """A batch of which records go ends with the last one left."""

    cleaner = _with(record_filter=_ShortBatches)


def _never_last(cleaner: Cleaner, batch: RecordBatch, upper: int) -> bool:
    del cleaner, batch, upper
    return False


@defect("CL-14b")
class LosesTheEndOfTheLog(UnifiedLog):
    """A batch that ends at the high watermark goes when its records do."""

    cleaner = _with(is_last=_never_last)


def _last_of_round(cleaner: Cleaner, batch: RecordBatch, upper: int) -> bool:
    del cleaner
    return batch.next_offset == upper


@defect("CL-14b")
class KeepsTheLastBatchOfARound(UnifiedLog):
    """A batch that ends where the round ends is retained, replicated or not."""

    cleaner = _with(is_last=_last_of_round)


# -- transactions ---------------------------------------------------------------------------------------------------


class _AllCommitted(CleanedTransactions):
    def is_discardable(self, batch: RecordBatch) -> bool:
        return super().is_discardable(batch) and batch.is_control


@defect("CL-8")
class KeepsAbortedTransactions(UnifiedLog):
    """Batches of an aborted transaction are retained."""

    cleaner = _with(transactions=_AllCommitted)


class _AllNeeded(CleanedTransactions):
    def is_discardable(self, batch: RecordBatch) -> bool:
        return super().is_discardable(batch) and not batch.is_control


@defect("CL-9a")
class KeepsEveryMarker(UnifiedLog):
    """A marker that is no longer needed is retained."""

    cleaner = _with(transactions=_AllNeeded)


class _Unindexed(CleanedTransactions):
    @property
    def index(self) -> TransactionIndex | None:
        return None

    @index.setter
    def index(self, index: TransactionIndex | None) -> None:
        del index


@defect("CL-8")
class ForgetsAbortedTransactions(UnifiedLog):
    """The cleaned segment has no transaction index."""

    cleaner = _with(transactions=_Unindexed)


# -- segments and keys ----------------------------------------------------------------------------------------------


class _Endless(OffsetMap):
    @property
    def is_full(self) -> bool:
        return False


@defect("CL-3")
class HasRoomForEveryKey(UnifiedLog):
    """The table of keys is never full."""

    cleaner = _with(offset_map=_Endless)


def _each_alone(cleaner: Cleaner, segments: Sequence[LogSegment], upper: int) -> list[list[LogSegment]]:
    del cleaner, upper
    return [[segment] for segment in segments]


@defect("CL-4")
class MergesNoSegments(UnifiedLog):
    """Small segments are not merged."""

    cleaner = _with(grouped=_each_alone)


def _keeps(cleaner: Cleaner, replaced: LogSegment) -> None:
    del cleaner, replaced


@defect("CL-16")
class KeepsSnapshotsOfReplacedSegments(UnifiedLog):
    """The producers' snapshots of merged segments are retained."""

    cleaner = _with(delete_snapshot=_keeps)


def _one_by_one(
    cleaner: Cleaner, cleaned: LogSegment, pieces: Iterable[bytes], largest_offset: int, timestamp: int, offset: int
) -> None:
    del cleaner, largest_offset, timestamp, offset
    for piece in pieces:
        cleaned.append(piece)


@defect("CL-5a", release=PER_APPEND)
class AppendsBatchesOneByOne(UnifiedLog):
    """Each batch that is left is an append, and may get an entry."""

    cleaner = _with(write=_one_by_one)


class _Grown(CleanerBuffer):
    def restore(self) -> None:
        pass


@defect("CL-6", release=PER_APPEND)
class KeepsTheGrownBuffer(UnifiedLog):
    """A buffer that has grown remains large for the next segments."""

    cleaner = _with(buffer=_Grown)


@defect("CL-2")
class TrustsEveryCheckpoint(UnifiedLog):
    """A checkpoint past the end of the log counts as its end."""

    def clean(self, checkpoint: int | None = None, **options: Any) -> CleanerStats | None:
        return super().clean(None if checkpoint is None else min(checkpoint, self.end_offset), **options)


# -- killed ---------------------------------------------------------------------------------------------------------


@defect("CL-18b")
class DropsSwappedSegments(UnifiedLog):
    """Opening deletes files that end with .swap."""

    def __init__(self, directory: Any, *arguments: Any, **options: Any) -> None:
        for file in Path(directory).glob("*.swap"):
            file.unlink()
        super().__init__(directory, *arguments, **options)


@defect("CL-17")
class TakesHalfWrittenSegments(UnifiedLog):
    """Opening takes files that end with .cleaned for swapped ones."""

    def __init__(self, directory: Any, *arguments: Any, **options: Any) -> None:
        for file in Path(directory).glob("*.cleaned"):
            file.rename(file.with_suffix(".swap"))
        super().__init__(directory, *arguments, **options)
