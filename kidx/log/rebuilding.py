"""Reading the producers of a log anew, from a snapshot and what the log holds behind it (``rebuildProducerState``)."""

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
    """Makes ``producers`` what they were at ``end_offset``, and takes snapshots on the way.

    Args:
        producers: what is known already.
        segments: of the log, as far as they are loaded.
        start_offset: of the log.
        end_offset: up to which batches count.
        now: milliseconds; a producer that has been silent for too long is not read from a snapshot.
        clean: after a clean stop without any snapshot there have been no producers, and nothing is read (LG-30).
        known: producers that up to 2.7 each segment's batches are held against: those of the log itself, which
            knows none in a recovery (LG-44); ``producers`` by default.

    Raises:
        KidxError: as :meth:`ProducerAppendInfo.append`.
        OSError: a log or a snapshot cannot be read, written or deleted.
    """
    marks = [*segments.last_two_bases, end_offset]
    if clean and producers.latest_snapshot is None:
        for offset in marks:
            producers.map_end_offset = offset
            producers.take_snapshot()
        return
    source = producers if known is None or producers.dialect.recovery_knows_its_producers else known
    none_known = producers.is_empty and producers.map_end_offset >= end_offset
    producers.truncate_and_reload(start_offset, end_offset, now)
    if end_offset > producers.map_end_offset and not none_known:
        last = segments.floor(end_offset)
        for segment in segments.values_between(producers.map_end_offset, end_offset):
            begin = max(segment.base_offset, producers.map_end_offset, start_offset)
            producers.map_end_offset = begin
            if segment.base_offset in marks:
                producers.take_snapshot()
            _load(producers, source, _batches(segment, begin, end_offset if segment is last else None))
    producers.map_end_offset = end_offset
    producers.take_snapshot()


def _batches(segment: LogSegment, begin: int, end: int | None) -> Iterable[RecordBatch]:
    """The batches from the one that holds ``begin`` up to the one that holds ``end``."""
    stop = None if end is None else segment.translate_offset(end)
    data = segment.read(begin, segment.size, segment.size if stop is None else stop.position)
    return () if data is None else segment.batches(data.position, data.position + data.size)


def _load(producers: ProducerStateManager, source: ProducerStateManager, batches: Iterable[RecordBatch]) -> None:
    infos: dict[int, ProducerAppendInfo] = {}
    calls: list[int] = []
    completed: list[CompletedTxn] = []
    for batch in batches:
        if batch.producer_id <= NO_PRODUCER_ID:
            continue
        calls.append(batch.producer_id)
        transaction = source.examine(batch, infos, Origin.REPLICATION)
        if transaction is not None:
            completed.append(transaction)
    producers.apply_all(infos, calls)
    for transaction in completed:
        producers.complete(transaction)
