"""Rebuild of a log's producers from a snapshot and the batches after it (``rebuildProducerState``)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from kidx.producers import Origin
from kidx.records.record import NO_PRODUCER_ID

if TYPE_CHECKING:
    from kidx.log.segments import Segments
    from kidx.producers import CompletedTxn, ProducerAppendInfo, ProducerStateManager
    from kidx.records import RecordBatch
    from kidx.segment import LogSegment


def rebuild_producers(
    producers: ProducerStateManager,
    segments: Segments,
    *,
    start_offset: int,
    end_offset: int,
    now: int,
    clean: bool = False,
    known: ProducerStateManager | None = None,
) -> None:
    """Update ``producers`` to their state at ``end_offset``, and write the snapshots on the way.

    Args:
        producers: the current state.
        segments: segments of the log that are loaded already.
        start_offset: start offset of the log.
        end_offset: offset up to which batches are applied.
        now: milliseconds; a producer that has been idle for too long is not loaded from a snapshot.
        clean: True after a clean shutdown. Without any snapshot, no producer exists then, and no batch is read (LG-30).
        known: state that the batches are checked against up to 2.7: the producers of the log, which are empty in a
            recovery (LG-44); ``producers`` by default.

    Raises:
        KidxError: See :meth:`ProducerAppendInfo.append`.
        OSError: a log or a snapshot cannot be read, written or deleted.
    """
    snapshot_offsets = [*segments.last_two_bases, end_offset]
    if clean and producers.latest_snapshot is None:
        for offset in snapshot_offsets:
            producers.map_end_offset = offset
            producers.take_snapshot()
        return
    source = producers if known is None or producers.dialect.recovery_reuses_producers else known
    none_known = producers.is_empty and producers.map_end_offset >= end_offset
    producers.truncate_and_reload(start_offset, end_offset, now)
    if end_offset > producers.map_end_offset and not none_known:
        last = segments.floor(end_offset)
        for segment in segments.values_between(producers.map_end_offset, end_offset):
            begin = max(segment.base_offset, producers.map_end_offset, start_offset)
            producers.map_end_offset = begin
            if segment.base_offset in snapshot_offsets:
                producers.take_snapshot()
            _load(producers, source, _batches(segment, begin, end_offset if segment is last else None))
    producers.map_end_offset = end_offset
    producers.take_snapshot()


def _batches(segment: LogSegment, begin: int, end: int | None) -> Iterable[RecordBatch]:
    """Return the batches from the batch that contains ``begin`` up to the batch of ``end``."""
    stop = None if end is None else segment.translate_offset(end)
    data = segment.read(begin, segment.size, segment.size if stop is None else stop.position)
    return () if data is None else segment.batches(data.position, data.position + data.size)


def _load(producers: ProducerStateManager, source: ProducerStateManager, batches: Iterable[RecordBatch]) -> None:
    infos: dict[int, ProducerAppendInfo] = {}
    producer_ids: list[int] = []
    completed: list[CompletedTxn] = []
    for batch in batches:
        if batch.producer_id <= NO_PRODUCER_ID:
            continue
        producer_ids.append(batch.producer_id)
        transaction = source.update_producer(batch, infos, Origin.REPLICATION)
        if transaction is not None:
            completed.append(transaction)
    producers.apply_all(infos, producer_ids)
    for transaction in completed:
        producers.complete(transaction)
