"""Which transactions' batches and markers may go (``CleanedTransactionMetadata``; CL-8, CL-9)."""

from __future__ import annotations

import heapq
from collections.abc import Iterable
from itertools import count
from typing import TYPE_CHECKING

from kidx.records import ControlRecordType

if TYPE_CHECKING:
    from kidx.index.entries import AbortedTxn
    from kidx.index.transaction import TransactionIndex
    from kidx.records import RecordBatch


class CleanedTransactions:
    """The transactions that a reader of the log is in.

    Attributes:
        index: of the segment that is written; gets the aborted transactions of which a batch was there.
    """

    def __init__(self) -> None:
        self.index: TransactionIndex | None = None
        self._committed: set[int] = set()
        self._aborted: dict[int, tuple[AbortedTxn, list[int]]] = {}
        self._ahead: list[tuple[int, int, AbortedTxn]] = []
        self._number = count()

    def expect(self, aborted: Iterable[AbortedTxn]) -> None:
        """Aborted transactions that the next batches may belong to."""
        for transaction in aborted:
            heapq.heappush(self._ahead, (transaction.first_offset, next(self._number), transaction))

    def _begin_until(self, offset: int) -> None:
        while self._ahead and self._ahead[0][0] <= offset:
            transaction = heapq.heappop(self._ahead)[2]
            self._aborted.setdefault(transaction.producer_id, (transaction, []))

    def may_go(self, batch: RecordBatch) -> bool:
        """Whether a batch, the next one of the log, belongs to an aborted transaction, or is a marker of nothing.

        Raises:
            KidxError: the record of a marker cannot be read.
        """
        self._begin_until(batch.last_offset)
        if batch.is_control:
            return self._marker_may_go(batch)
        if not batch.is_transactional:
            return False
        aborted = self._aborted.get(batch.producer_id)
        if aborted is None:
            self._committed.add(batch.producer_id)
            return False
        aborted[1].append(batch.last_offset)
        return True

    def _marker_may_go(self, batch: RecordBatch) -> bool:
        record = next(iter(batch), None)
        if record is None:
            return True
        kind = ControlRecordType.parse(record.key)
        if kind is ControlRecordType.ABORT:
            aborted = self._aborted.pop(batch.producer_id, None)
            if aborted is None or not aborted[1]:
                return True
            if self.index is not None:
                self.index.append(aborted[0])
            return False
        if kind is ControlRecordType.COMMIT:
            known = batch.producer_id in self._committed
            self._committed.discard(batch.producer_id)
            return not known
        return False
