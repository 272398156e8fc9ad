"""History of one partition: the batches that a broker has acknowledged and returned.

Responses are checked only against this history. It contains no segments or files, so a broker without Kafka's storage
has the same history.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from kidx.records import TimestampType

if TYPE_CHECKING:
    from collections.abc import Iterable

    from kidx.records import RecordBatch


class StoredRecord(NamedTuple):
    """Record as a fetch returns it. The timestamp is in milliseconds; a missing one is -1."""

    offset: int
    timestamp: int
    key: bytes | None = None
    value: bytes | None = None


class StoredBatch(NamedTuple):
    """Batch as a fetch returns it, decompressed. The producer id is -1 if there is no producer."""

    base_offset: int
    last_offset: int
    max_timestamp: int
    leader_epoch: int
    producer_id: int
    is_transactional: bool
    is_control: bool
    records: tuple[StoredRecord, ...]
    is_stamped: bool = False
    """True if the timestamp was set by the broker (LogAppendTime)."""

    @classmethod
    def of(cls, batch: RecordBatch) -> StoredBatch:
        """Convert a batch in memory.

        Raises:
            KidxError: The batch cannot be read.
        """
        batch.ensure_valid()
        records = tuple(StoredRecord(each.offset, each.timestamp, each.key, each.value) for each in batch)
        return cls(
            batch.base_offset,
            batch.last_offset,
            batch.max_timestamp,
            batch.partition_leader_epoch,
            batch.producer_id,
            batch.is_transactional,
            batch.is_control,
            records,
            batch.timestamp_type is TimestampType.LOG_APPEND_TIME,
        )


class EndedTransaction(NamedTuple):
    """Aborted transaction: its producer, the offset of its first record, and the offset of its marker."""

    producer_id: int
    first_offset: int
    last_offset: int


@dataclass(slots=True)
class PartitionHistory:
    """History of one partition.

    Attributes:
        start: The first offset that was not deleted.
        batches: All appended batches, deleted or not.
        undecided: The first offset of each producer's open transaction.
        aborted: All aborted transactions.
    """

    leader_epoch: int
    start: int = 0
    batches: list[StoredBatch] = field(default_factory=list)
    undecided: dict[int, int] = field(default_factory=dict)
    aborted: list[EndedTransaction] = field(default_factory=list)

    @property
    def end(self) -> int:
        """Offset of the next record, which is also the high watermark, because there is only one replica."""
        return self.batches[-1].last_offset + 1 if self.batches else 0

    @property
    def stable_ends(self) -> tuple[int, ...]:
        """Possible ends of committed reads: the first undecided record that still exists, or the start of its batch."""
        if not self.undecided:
            return (self.end,)
        first = max(min(self.undecided.values()), self.start)
        inside = next((b.base_offset for b in self.batches if b.base_offset <= first <= b.last_offset), first)
        return (first,) if inside == first else (first, inside)

    def add(self, batch: StoredBatch) -> None:
        """Add a batch, which must follow the last batch."""
        self.batches.append(batch)
        if batch.is_control:
            first = self.undecided.pop(batch.producer_id, None)
            if first is not None and _aborts(batch):
                self.aborted.append(EndedTransaction(batch.producer_id, first, batch.last_offset))
        elif batch.is_transactional:
            self.undecided.setdefault(batch.producer_id, batch.base_offset)

    def is_aborted(self, batch: StoredBatch) -> bool:
        """Return True if a batch is part of an aborted transaction."""
        return batch.is_transactional and any(
            each.producer_id == batch.producer_id and each.first_offset <= batch.base_offset <= each.last_offset
            for each in self.aborted
        )


def committed(batches: Iterable[StoredBatch], aborted: Iterable[Any]) -> list[StoredRecord]:
    """Return the records that a read_committed consumer reads from a fetch with aborted transactions (KIP-98)."""
    waiting = sorted(aborted, key=lambda each: each.first_offset)
    skipped: set[int] = set()
    found: list[StoredRecord] = []
    for batch in batches:
        while waiting and waiting[0].first_offset <= batch.last_offset:
            skipped.add(waiting.pop(0).producer_id)
        if batch.is_control:
            if _aborts(batch):
                skipped.discard(batch.producer_id)
        elif not (batch.is_transactional and batch.producer_id in skipped):
            found += batch.records
    return found


def _aborts(batch: StoredBatch) -> bool:
    key = batch.records[0].key if batch.records else None
    return key is not None and key[2:4] == b"\0\0"
