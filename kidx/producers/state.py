"""Producers and transactions of one partition, in memory (``ProducerStateManager`` without its files)."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, ClassVar

from kidx.dialect import Dialect, dialect_of
from kidx.errors import InvalidArgumentError
from kidx.java_numbers import to_long
from kidx.producers.append_info import CompletedTxn, Origin, ProducerAppendInfo, Transaction
from kidx.producers.entry import ProducerEntry
from kidx.records.record import NO_PRODUCER_ID, NO_TIMESTAMP

if TYPE_CHECKING:
    from kidx.records import RecordBatch


@dataclass(slots=True)
class ProducerState:
    """Producers of one partition.

    Attributes:
        append_info: class of the changes of an append.
        topic_partition: topic and partition in messages, e.g. ``"orders-0"``.
        dialect: rules of a release.
        producers: entries by producer id.
        ongoing: the open transactions, by first offset.
        unreplicated: the completed transactions whose marker is not below the high watermark yet, by first offset.
        map_end_offset: the offset after the last batch applied.
    """

    append_info: ClassVar[type[ProducerAppendInfo]] = ProducerAppendInfo

    topic_partition: str = "t-0"
    dialect: Dialect = field(default_factory=dialect_of)
    producers: dict[int, ProducerEntry] = field(default_factory=dict)
    ongoing: dict[int, Transaction] = field(default_factory=dict)
    unreplicated: dict[int, Transaction] = field(default_factory=dict)
    map_end_offset: int = 0

    # -- queries --------------------------------------------------------------------------------------------------

    @property
    def is_empty(self) -> bool:
        """True if no producer is known, and no completed transaction waits for its replication."""
        return not self.producers and not self.unreplicated

    @property
    def first_undecided_offset(self) -> int | None:
        """First offset of the earliest open transaction, or None."""
        return min(self.ongoing, default=None)

    @property
    def first_unstable(self) -> Transaction | None:
        """Earliest transaction that is open, or completed and not replicated; or None."""
        candidates = [held[min(held)] for held in (self.unreplicated, self.ongoing) if held]
        return min(candidates, key=lambda transaction: transaction.first_offset, default=None)

    def last_timestamp(self, entry: ProducerEntry) -> int:
        """Return the last timestamp of a producer in milliseconds; 2.4.0 takes it from the last batch."""
        if self.dialect.markers_have_timestamps:
            return entry.last_timestamp
        return entry.batches[-1].timestamp if entry.batches else NO_TIMESTAMP

    def snapshot(self) -> ProducerState:
        """Return a copy that is independent of later changes."""
        entries = {producer: replace(entry, batches=entry.batches.copy()) for producer, entry in self.producers.items()}
        return ProducerState(
            self.topic_partition,
            self.dialect,
            entries,
            dict(self.ongoing),
            dict(self.unreplicated),
            self.map_end_offset,
        )

    # -- changes by an append --------------------------------------------------------------------------------------

    def prepare(self, producer_id: int, origin: Origin) -> ProducerAppendInfo:
        """Return an empty set of changes of a producer (``prepareUpdate``)."""
        current = self.producers.get(producer_id) or ProducerEntry()
        return self.append_info(self.topic_partition, producer_id, current, origin, self.dialect)

    def apply(self, info: ProducerAppendInfo) -> None:
        """Apply the changes of an append; transactions that it completes remain open until :meth:`complete`."""
        known = self.producers.get(info.producer_id)
        if known is None:
            self.producers[info.producer_id] = info.updated
        else:
            known.update(info.updated)
        for transaction in info.started:
            self.ongoing[transaction.first_offset] = transaction

    def update(self, batch: RecordBatch) -> CompletedTxn | None:
        """Apply a replicated batch.

        Returns:
            The transaction that it completes, which remains open until :meth:`complete`.

        Raises:
            KidxError: See :meth:`ProducerAppendInfo.append`.
        """
        if batch.producer_id <= NO_PRODUCER_ID:
            return None
        info = self.prepare(batch.producer_id, Origin.REPLICATION)
        completed = info.append(batch)
        self.apply(info)
        return completed

    def last_stable_offset(self, completed: CompletedTxn) -> int:
        """Return the first offset of the other producers' open transactions; without any, the next offset (TX-15)."""
        others = [first for first, open_ in self.ongoing.items() if open_.producer_id != completed.producer_id]
        return min(others) if others else to_long(completed.last_offset + 1)

    def complete(self, completed: CompletedTxn) -> None:
        """End a transaction, which remains unstable until its marker is replicated.

        Raises:
            InvalidArgumentError: the transaction is not open.
        """
        transaction = self.ongoing.pop(completed.first_offset, None)
        if transaction is None:
            raise InvalidArgumentError(
                f"Attempted to complete transaction {self._text(completed)} on partition {self.topic_partition}"
                " which was not started"
            )
        transaction.last_offset = completed.last_offset
        self.unreplicated[completed.first_offset] = transaction

    def _text(self, completed: CompletedTxn) -> str:
        producer_id, first, last, is_aborted = completed
        aborted = str(is_aborted).lower()
        opening, closing = "[]" if self.dialect.completed_transactions_are_records else "()"
        fields = f"producerId={producer_id}, firstOffset={first}, lastOffset={last}, isAborted={aborted}"
        return f"CompletedTxn{opening}{fields}{closing}"

    # -- changes by replication and time --------------------------------------------------------------------------

    def on_high_watermark(self, high_watermark: int) -> None:
        """Forget the completed transactions whose marker is below the high watermark, and so on all replicas."""
        self.unreplicated = {
            first: transaction
            for first, transaction in self.unreplicated.items()
            if transaction.last_offset is None or transaction.last_offset >= high_watermark
        }

    def is_expired(self, entry: ProducerEntry, now: int, expiration_ms: int) -> bool:
        """Return True if a producer without an open transaction has been idle for ``expiration_ms`` milliseconds."""
        return entry.current_txn_first_offset is None and now - self.last_timestamp(entry) >= expiration_ms

    def remove_expired(self, now: int, expiration_ms: int) -> None:
        """Forget producers that have been idle for ``expiration_ms`` milliseconds."""
        for producer in [p for p, entry in self.producers.items() if self.is_expired(entry, now, expiration_ms)]:
            del self.producers[producer]
