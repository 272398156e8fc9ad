"""What ``read_committed`` hides: records of aborted transactions, and everything behind the last stable offset."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, NamedTuple

from kidx.records import ControlRecordType
from kidx.tables.indexes import Counter, read_transaction_index
from kidx.tables.snapshots import open_transactions
from kidx.tables.walking import BatchWalk

if TYPE_CHECKING:
    from kidx.records import RecordBatch
    from kidx.tables.segments import PartitionLog, Segment


class Aborted(NamedTuple):
    """An aborted transaction: a producer, and its first and last offset."""

    producer_id: int
    first_offset: int
    last_offset: int


def last_stable_offset(log: PartitionLog, counter: Counter) -> int | None:
    """The first offset of the oldest transaction that has no end; None if all have one.

    The headers of batches are read, from the last segment on for which the broker has left a snapshot, if it has.

    Raises:
        KidxError, OSError: a segment cannot be read.
    """
    open_since: dict[int, int] = {}
    first = 0
    for number in range(len(log.segments) - 1, 0, -1):
        known = open_transactions(log.segments[number], counter)
        if known is not None:
            open_since, first = known, number
            break
    for segment in log.segments[first:]:
        with segment.store.open(segment.file("log")) as reader:
            for _, batch, _ in BatchWalk(reader, 0, segment.size, source=segment.name, wanted=_is_marker):
                if batch.magic < 2 or not batch.is_transactional:
                    continue
                if not batch.is_control:
                    open_since.setdefault(batch.producer_id, batch.base_offset)
                elif _ends_transaction(batch):
                    open_since.pop(batch.producer_id, None)
            counter.log_bytes += reader.bytes_read
    return min(open_since.values(), default=None)


def _is_marker(batch: RecordBatch) -> bool:
    return batch.is_control


def _ends_transaction(batch: RecordBatch) -> bool:
    kinds = (ControlRecordType.ABORT, ControlRecordType.COMMIT)
    return any(ControlRecordType.parse(record.key) in kinds for record in batch)


def aborted_transactions(segments: Iterable[Segment], first_offset: int, end: int, counter: Counter) -> list[Aborted]:
    """The aborted transactions that touch the offsets from the first to before the end, as a fetch has them (TX-9).

    Args:
        segments: the one that holds the offsets and those behind it: a transaction is listed where its end lies.
        first_offset: of the range.
        end: behind the range.
        counter: of the bytes that are read.

    Raises:
        OSError: an index file cannot be read.
    """
    found: list[Aborted] = []
    for segment in segments:
        entries = read_transaction_index(segment, counter)
        for _, producer_id, first, last, stable in entries.tolist():
            if last >= first_offset and first < end:
                found.append(Aborted(producer_id, first, last))
            if stable >= end:
                return found
    return found


class AbortedFilter:
    """Tells which batches of a range belong to an aborted transaction."""

    def __init__(self, aborted: Iterable[Aborted]) -> None:
        self._by_producer: dict[int, list[Aborted]] = {}
        for transaction in aborted:
            self._by_producer.setdefault(transaction.producer_id, []).append(transaction)

    def hides(self, batch: RecordBatch) -> bool:
        """Whether a consumer with ``read_committed`` does not get the batch."""
        if not self._by_producer or not batch.is_transactional:
            return False
        transactions = self._by_producer.get(batch.producer_id, ())
        return any(each.first_offset <= batch.base_offset <= each.last_offset for each in transactions)
