"""What an append means to its producers: checked before it is written, noted afterwards."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kidx.producers import CompletedTxn, Origin
from kidx.records.record import NO_PRODUCER_ID

if TYPE_CHECKING:
    from collections.abc import Iterable

    from kidx.producers import ProducerAppendInfo, ProducerStateManager
    from kidx.records import RecordBatch
    from kidx.segment import LogSegment


class ProducerChanges:
    """What an append changes of its producers (``analyzeAndValidateProducerState``).

    Args:
        producers: of the log; left as they are until :meth:`apply`.
        batches: with their final offsets.
        origin: of the append: a client, a coordinator or replication.

    Attributes:
        is_duplicate: a client sends again what is in the log; nothing is to be appended.

    Raises:
        KidxError: as :meth:`ProducerAppendInfo.append`.
    """

    def __init__(self, producers: ProducerStateManager, batches: Iterable[RecordBatch], origin: Origin) -> None:
        self.producers = producers
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
            self._examine(batch, origin)

    def _examine(self, batch: RecordBatch, origin: Origin) -> None:
        self._calls.append(batch.producer_id)
        info = self._infos.get(batch.producer_id)
        if info is None:
            info = self._infos[batch.producer_id] = self.producers.prepare(batch.producer_id, origin)
        completed = info.append(batch, located=batch.is_transactional)
        if completed is not None:
            self._completed.append(completed)

    def apply(self, segment: LogSegment) -> None:
        """The batches are in ``segment`` now: its transaction index follows, and what is remembered of producers.

        Raises:
            KidxError, OSError: as :meth:`LogSegment.update_txn_index` and :meth:`ProducerState.complete`.
        """
        self.producers.apply_all(self._infos, self._calls)
        for transaction in self._completed:
            segment.update_txn_index(transaction, self.producers.last_stable_offset(transaction))
            self.producers.complete(transaction)
