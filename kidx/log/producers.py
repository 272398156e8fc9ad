"""Producers of a log: changed by its appends, and rebuilt from a snapshot and the batches after it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from kidx.producers import CompletedTxn, InvalidTxnStateError, Origin, ProducerFencedError
from kidx.producers.append_info import UNKNOWN_VERSION
from kidx.records.record import NO_PRODUCER_ID

if TYPE_CHECKING:
    from collections.abc import Iterable

    from kidx.log.segments import Segments
    from kidx.producers import ProducerAppendInfo, ProducerStateManager, VerificationStateEntry
    from kidx.producers.entry import BatchMetadata
    from kidx.records import RecordBatch
    from kidx.segment import LogSegment


class TransactionVerification(NamedTuple):
    """Proof, passed with an append, that the coordinator has verified the transaction (LG-45).

    Attributes:
        is_required: True if the log rejects the first batch of a transaction without a guard.
        guard: guard that the log issued, or None.
        transaction_version: version of the transaction that a marker ends.
    """

    is_required: bool = False
    guard: VerificationStateEntry | None = None
    transaction_version: int = UNKNOWN_VERSION


NOTHING_VERIFIED: Final = TransactionVerification()


class ProducerChanges:
    """Changes that an append makes to the producers (``analyzeAndValidateProducerState``).

    Args:
        producers: producers of the log, not modified before :meth:`apply`.
        batches: batches with their final offsets.
        origin: origin of the append: a client, a coordinator or replication.
        verified: proof that came with the append to a leader.
        place: base offset of the segment and position in it at which the batches will be.

    Attributes:
        duplicate: batch of the log that a client repeats, so that the batches must not be appended; or None.

    Raises:
        InvalidTxnStateError: an unverified transaction begins.
        KidxError: See :meth:`ProducerAppendInfo.append`.
    """

    def __init__(
        self,
        producers: ProducerStateManager,
        batches: Iterable[RecordBatch],
        origin: Origin,
        verified: TransactionVerification = NOTHING_VERIFIED,
        place: tuple[int, int] = (0, 0),
    ) -> None:
        self.producers = producers
        self._verified = verified
        self.duplicate: BatchMetadata | None = None
        self._infos: dict[int, ProducerAppendInfo] = {}
        self._producer_ids: list[int] = []
        self._completed: list[CompletedTxn] = []
        following = place[1]
        for batch in batches:
            position, following = following, following + batch.size_in_bytes
            if batch.producer_id <= NO_PRODUCER_ID:
                continue
            known = producers.producers.get(batch.producer_id)
            if origin is Origin.CLIENT and known is not None:
                self.duplicate = known.find_duplicate(batch)
                if self.duplicate is not None:
                    return
            if verified.is_required:
                self._check_verified(batch, origin)
            self._producer_ids.append(batch.producer_id)
            began = (place[0], position) if batch.is_transactional else None
            version = verified.transaction_version
            completed = producers.update_producer(batch, self._infos, origin, version, place=began)
            if completed is not None:
                self._completed.append(completed)

    def _check_verified(self, batch: RecordBatch, origin: Origin) -> None:
        dialect, producer = self.producers.dialect, batch.producer_id
        if origin is Origin.REPLICATION or not (batch.is_transactional and dialect.transactions_are_verified):
            return
        if origin is Origin.COORDINATOR and not dialect.coordinators_are_verified:
            return
        if self.producers.has_ongoing(producer, batch.producer_epoch):
            return
        known = self.producers.producers.get(producer)
        if dialect.old_epochs_are_fenced_first and known is not None and batch.producer_epoch < known.producer_epoch:
            raise ProducerFencedError(
                f"Epoch of producer {producer} is {batch.producer_epoch}, which is smaller than the last seen epoch "
                f"{known.producer_epoch}"
            )
        if batch.is_control and dialect.coordinators_are_verified:
            return
        guard = self._verified.guard
        if guard is None or guard is not self.producers.verifications.get(producer):
            raise InvalidTxnStateError("Record was not part of an ongoing transaction")

    def apply(self, segment: LogSegment) -> None:
        """Apply the changes after the batches were written to ``segment``, also to its transaction index.

        Raises:
            KidxError, OSError: as :meth:`LogSegment.update_txn_index` and :meth:`ProducerState.complete`.
        """
        self.producers.apply_all(self._infos, self._producer_ids)
        for transaction in self._completed:
            segment.update_txn_index(transaction, self.producers.last_stable_offset(transaction))
            self.producers.complete(transaction)


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
        segments: segments of the log that are loaded already.
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
