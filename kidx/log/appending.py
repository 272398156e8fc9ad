"""What an append means to its producers: checked before it is written, noted afterwards."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from kidx.producers import CompletedTxn, InvalidTxnStateError, Origin
from kidx.producers.append_info import UNKNOWN_VERSION
from kidx.records.record import NO_PRODUCER_ID

if TYPE_CHECKING:
    from collections.abc import Iterable

    from kidx.producers import ProducerAppendInfo, ProducerStateManager, Verification
    from kidx.records import RecordBatch
    from kidx.segment import LogSegment


class Verified(NamedTuple):
    """How a call shows that its coordinator knows of the transaction (LG-45).

    Attributes:
        is_required: the log takes no first batch of a transaction without.
        guard: that the log gave out; None for none.
        transaction_version: of a marker's transaction.
    """

    is_required: bool = False
    guard: Verification | None = None
    transaction_version: int = UNKNOWN_VERSION


NOTHING_VERIFIED: Final = Verified()


class ProducerChanges:
    """What an append changes of its producers (``analyzeAndValidateProducerState``).

    Args:
        producers: of the log; left as they are until :meth:`apply`.
        batches: with their final offsets.
        origin: of the append: a client, a coordinator or replication.
        verified: of a leader's call.

    Attributes:
        is_duplicate: a client sends again what is in the log; nothing is to be appended.

    Raises:
        InvalidTxnStateError: a transaction begins that is not verified.
        KidxError: as :meth:`ProducerAppendInfo.append`.
    """

    def __init__(
        self,
        producers: ProducerStateManager,
        batches: Iterable[RecordBatch],
        origin: Origin,
        verified: Verified = NOTHING_VERIFIED,
    ) -> None:
        self.producers = producers
        self._verified = verified
        self.is_duplicate = False
        self._infos: dict[int, ProducerAppendInfo] = {}
        self._calls: list[int] = []
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
            self._calls.append(batch.producer_id)
            located, version = batch.is_transactional, verified.transaction_version
            completed = producers.examine(batch, self._infos, origin, version, located=located)
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
        if batch.is_control and dialect.coordinators_are_verified:
            return
        guard = self._verified.guard
        if guard is None or guard is not self.producers.verifications.get(producer):
            raise InvalidTxnStateError("Record was not part of an ongoing transaction")

    def apply(self, segment: LogSegment) -> None:
        """The batches are in ``segment`` now: its transaction index follows, and what is remembered of producers.

        Raises:
            KidxError, OSError: as :meth:`LogSegment.update_txn_index` and :meth:`ProducerState.complete`.
        """
        self.producers.apply_all(self._infos, self._calls)
        for transaction in self._completed:
            segment.update_txn_index(transaction, self.producers.last_stable_offset(transaction))
            self.producers.complete(transaction)
