"""Transactions whose batches and markers can be discarded (``CleanedTransactionMetadata``; CL-8, CL-9)."""

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
    """State of the transactions at a reader's position in the log.

    Attributes:
        index: transaction index of the output segment; gets the aborted transactions of which a batch was present.
    """

    def __init__(self) -> None:
        self.index: TransactionIndex | None = None
        self._committed: set[int] = set()
        self._aborted: dict[int, tuple[AbortedTxn, list[int]]] = {}
        self._ahead: list[tuple[int, int, AbortedTxn]] = []
        self._number = count()

    def expect(self, aborted: Iterable[AbortedTxn]) -> None:
        """Add aborted transactions that the next batches may belong to."""
        for transaction in aborted:
            heapq.heappush(self._ahead, (transaction.first_offset, next(self._number), transaction))

    def _begin_until(self, offset: int) -> None:
        while self._ahead and self._ahead[0][0] <= offset:
            transaction = heapq.heappop(self._ahead)[2]
            self._aborted.setdefault(transaction.producer_id, (transaction, []))

    def is_discardable(self, batch: RecordBatch) -> bool:
        """Return True if the next batch of the log belongs to an aborted transaction, or is a marker without a batch.

        Raises:
            KidxError: the record of a marker cannot be read.
        """
        self._begin_until(batch.last_offset)
        if batch.is_control:
            return self._is_marker_discardable(batch)
        if not batch.is_transactional:
            return False
        aborted = self._aborted.get(batch.producer_id)
        if aborted is None:
            self._committed.add(batch.producer_id)
            return False
        aborted[1].append(batch.last_offset)
        return True

    def _is_marker_discardable(self, batch: RecordBatch) -> bool:
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
