"""Changes that an append makes to the state of producers: checked before the write, applied after it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from kidx.producers import CompletedTxn, InvalidTxnStateError, Origin, ProducerFencedError
from kidx.producers.append_info import UNKNOWN_VERSION
from kidx.records.record import NO_PRODUCER_ID

if TYPE_CHECKING:
    from collections.abc import Iterable

    from kidx.producers import ProducerAppendInfo, ProducerStateManager, VerificationStateEntry
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

    Attributes:
        is_duplicate: True if a client repeats a batch of the log; the batches must not be appended.

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
    ) -> None:
        self.producers = producers
        self._verified = verified
        self.is_duplicate = False
        self._infos: dict[int, ProducerAppendInfo] = {}
        self._producer_ids: list[int] = []
        self._completed: list[CompletedTxn] = []
        for batch in batches:
            if batch.producer_id <= NO_PRODUCER_ID:
                continue
            known = producers.producers.get(batch.producer_id)
            if origin is Origin.CLIENT and known is not None and known.find_duplicate(batch) is not None:
                self.is_duplicate = True
                return
            if verified.is_required:
                self._check_verified(batch, origin)
            self._producer_ids.append(batch.producer_id)
            has_metadata, version = batch.is_transactional, verified.transaction_version
            completed = producers.update_producer(batch, self._infos, origin, version, has_metadata=has_metadata)
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
