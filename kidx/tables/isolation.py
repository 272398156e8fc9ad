"""The ``read_committed`` isolation level: records of aborted transactions, and the last stable offset."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from itertools import chain
from typing import TYPE_CHECKING, NamedTuple

from kidx.errors import KidxError
from kidx.records import ControlRecordType
from kidx.tables.batch_walk import BatchWalk
from kidx.tables.indexes import Counter, read_transaction_index
from kidx.tables.snapshots import open_transactions

if TYPE_CHECKING:
    from kidx.records import RecordBatch
    from kidx.tables.segments import PartitionLog, Segment


class Aborted(NamedTuple):
    """An aborted transaction: its producer id, and its first and last offset."""

    producer_id: int
    first_offset: int
    last_offset: int


class TransactionPosition(NamedTuple):
    """A position in a log and its transaction state: the first offset of each open transaction, by producer id."""

    base_offset: int
    position: int
    open_since: dict[int, int]


def last_stable_offset(
    log: PartitionLog,
    counter: Counter,
    seen: dict[str, TransactionPosition] | None = None,
    settled: int = 0,
    *,
    use_indexes: bool = True,
) -> int | None:
    """Return the first offset of the oldest open transaction; None if no transaction is open.

    Batch headers are read from the last segment that has a producer snapshot on, or from the first segment.

    Args:
        counter: the counter of bytes read.
        seen: the state that earlier calls reached, by directory; this call continues from there.
        settled: an offset up to which no broker truncates the log; only state up to it is stored in ``seen``.
        use_indexes: False to read all logs, and no producer snapshot.

    Raises:
        KidxError, OSError: a segment cannot be read.
    """
    seen = {} if seen is None else seen
    before = seen.pop(log.directory, None)
    sizes = {segment.base_offset: segment.size for segment in log.segments}
    known = before if before is not None and sizes.get(before.base_offset, -1) >= before.position else None
    base, position, open_since = known or _from_snapshot(log, counter, use_indexes=use_indexes)
    for segment in log.segments:
        if segment.base_offset < base:
            continue
        start = position if segment.base_offset == base else 0
        with segment.store.open(segment.file("log")) as reader:
            walk = BatchWalk(
                reader, start, segment.size, source=segment.name, wanted=_is_marker, may_grow=segment.is_last
            )
            for _, batch, _ in walk:
                _follow(batch, open_since)
                if batch.next_offset <= settled:
                    seen[log.directory] = TransactionPosition(segment.base_offset, walk.position, open_since.copy())
            counter.log_bytes += reader.bytes_read
    return min(open_since.values(), default=None)


def _from_snapshot(log: PartitionLog, counter: Counter, *, use_indexes: bool) -> TransactionPosition:
    for segment in log.segments[:0:-1] if use_indexes else ():
        known = open_transactions(segment, counter)
        if known is not None:
            return TransactionPosition(segment.base_offset, 0, known)
    return TransactionPosition(log.segments[0].base_offset, 0, {})


def _follow(batch: RecordBatch, open_since: dict[int, int]) -> None:
    """Add the transaction that a batch begins, or remove the transaction that its marker ends."""
    if batch.magic < 2 or not batch.is_transactional:
        return
    if not batch.is_control:
        open_since.setdefault(batch.producer_id, batch.base_offset)
    elif _ends_transaction(batch):
        open_since.pop(batch.producer_id, None)


def _is_marker(batch: RecordBatch) -> bool:
    return batch.is_control


def _aborts_transaction(batch: RecordBatch) -> bool:
    return any(ControlRecordType.parse(record.key) is ControlRecordType.ABORT for record in batch)


def _ends_transaction(batch: RecordBatch) -> bool:
    kinds = (ControlRecordType.ABORT, ControlRecordType.COMMIT)
    return any(ControlRecordType.parse(record.key) in kinds for record in batch)


def aborted_transactions(
    segments: Iterable[Segment], first_offset: int, end: int, counter: Counter, *, use_indexes: bool = True
) -> list[Aborted]:
    """Return the aborted transactions that overlap offsets from ``first_offset`` to ``end``, as a fetch does (TX-9).

    A broker that starts recovers a segment without ``.index``, and writes its ``.txnindex`` from the markers in its
    log. So the markers are read here, too, where a transaction may end in such a segment.

    Args:
        segments: the segment of the offsets and all later segments, because a transaction is in the index of the
            segment in which it ends; without the segments that have no aborted transaction by their files, if the
            indexes are used.
        first_offset: the first offset of the range.
        end: the offset after the range.
        counter: the counter of bytes read.
        use_indexes: False to read all markers.

    Raises:
        OSError: an index file cannot be read.
    """
    if not use_indexes:
        return _aborted_by_markers(segments, end, counter)
    found: list[Aborted] = []
    seen: list[Segment] = []
    remaining = iter(segments)
    for segment in remaining:
        seen.append(segment)
        if is_unindexed(segment):
            return _aborted_by_markers(chain(seen, remaining), end, counter)
        entries = read_transaction_index(segment, counter)
        for _, producer_id, first, last, stable in entries.tolist():
            if last >= first_offset and first < end:
                found.append(Aborted(producer_id, first, last))
            if stable >= end:
                return found
    return found


def is_unindexed(segment: Segment) -> bool:
    """Return True if a segment has no ``.index``, so that its ``.txnindex`` need not exist either."""
    return "index" not in segment.sizes


def _aborted_by_markers(segments: Iterable[Segment], end: int, counter: Counter) -> list[Aborted]:
    """Return the aborted transactions with records before ``end``, from the batches of the logs.

    A transaction that began in an earlier segment begins here with its first batch in these segments.
    """
    found: list[Aborted] = []
    open_since: dict[int, int] = {}
    for segment in segments:
        with segment.store.open(segment.file("log")) as reader, suppress(KidxError):  # reading reports corruption
            walk = BatchWalk(reader, 0, segment.size, source=segment.name, wanted=_is_marker, may_grow=segment.is_last)
            for _, batch, _ in walk:
                if batch.base_offset >= end and not open_since:
                    return found
                if batch.magic < 2 or not batch.is_transactional or (batch.base_offset >= end and not batch.is_control):
                    continue
                if not batch.is_control:
                    open_since.setdefault(batch.producer_id, batch.base_offset)
                elif _ends_transaction(batch):
                    first = open_since.pop(batch.producer_id, None)
                    if first is not None and _aborts_transaction(batch):
                        found.append(Aborted(batch.producer_id, first, batch.last_offset))
        counter.log_bytes += reader.bytes_read
    return found


class AbortedFilter:
    """A lookup of the batches that belong to an aborted transaction."""

    def __init__(self, aborted: Iterable[Aborted]) -> None:
        self._by_producer: dict[int, list[Aborted]] = {}
        for transaction in aborted:
            self._by_producer.setdefault(transaction.producer_id, []).append(transaction)

    def hides(self, batch: RecordBatch) -> bool:
        """Return True if a ``read_committed`` consumer does not get the batch."""
        if not self._by_producer or not batch.is_transactional:
            return False
        transactions = self._by_producer.get(batch.producer_id, ())
        return any(each.first_offset <= batch.base_offset <= each.last_offset for each in transactions)
