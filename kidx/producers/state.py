"""The producers and transactions of one partition, in memory (``ProducerStateManager`` without its files)."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

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
    """The producers of one partition.

    Attributes:
        topic_partition: for messages, e.g. ``"orders-0"``.
        dialect: the rules of a release.
        producers: by producer id.
        ongoing: the open transactions, by first offset.
        unreplicated: those completed whose marker is not below the high watermark yet, by first offset.
        map_end_offset: the offset after the last batch seen.
    """

    topic_partition: str = "t-0"
    dialect: Dialect = field(default_factory=dialect_of)
    producers: dict[int, ProducerEntry] = field(default_factory=dict)
    ongoing: dict[int, Transaction] = field(default_factory=dict)
    unreplicated: dict[int, Transaction] = field(default_factory=dict)
    map_end_offset: int = 0

    # -- what there is -----------------------------------------------------------------------------------------

    @property
    def is_empty(self) -> bool:
        """No producer is known, and no transaction waits for its replication."""
        return not self.producers and not self.unreplicated

    @property
    def first_undecided_offset(self) -> int | None:
        """Where the earliest open transaction began; None if none is open."""
        return min(self.ongoing, default=None)

    @property
    def first_unstable(self) -> Transaction | None:
        """The earliest transaction that is open, or completed and not replicated."""
        candidates = [held[min(held)] for held in (self.unreplicated, self.ongoing) if held]
        return min(candidates, key=lambda transaction: transaction.first_offset, default=None)

    def last_timestamp(self, entry: ProducerEntry) -> int:
        """When a producer was last heard of, milliseconds; 2.4.0 asks its last batch."""
        if self.dialect.markers_have_timestamps:
            return entry.last_timestamp
        return entry.batches[-1].timestamp if entry.batches else NO_TIMESTAMP

    def snapshot(self) -> ProducerState:
        """A copy that what is read of the log later does not change."""
        entries = {producer: replace(entry, batches=entry.batches.copy()) for producer, entry in self.producers.items()}
        return ProducerState(
            self.topic_partition,
            self.dialect,
            entries,
            dict(self.ongoing),
            dict(self.unreplicated),
            self.map_end_offset,
        )

    # -- what an append changes --------------------------------------------------------------------------------

    def prepare(self, producer_id: int, origin: Origin) -> ProducerAppendInfo:
        """A fresh record of what an append changes of a producer (``prepareUpdate``)."""
        current = self.producers.get(producer_id) or ProducerEntry()
        return ProducerAppendInfo(self.topic_partition, producer_id, current, origin, self.dialect)

    def apply(self, info: ProducerAppendInfo) -> None:
        """Remembers what an append has changed; transactions that it completes stay open until :meth:`complete`."""
        known = self.producers.get(info.producer_id)
        if known is None:
            self.producers[info.producer_id] = info.updated
        else:
            known.update(info.updated)
        for transaction in info.started:
            self.ongoing[transaction.first_offset] = transaction

    def update(self, batch: RecordBatch) -> CompletedTxn | None:
        """Takes a replicated batch into account.

        Returns:
            The transaction that it completes, still open until :meth:`complete`.

        Raises:
            KidxError: as :meth:`ProducerAppendInfo.append`.
        """
        if batch.producer_id <= NO_PRODUCER_ID:
            return None
        info = self.prepare(batch.producer_id, Origin.REPLICATION)
        completed = info.append(batch)
        self.apply(info)
        return completed

    def last_stable_offset(self, completed: CompletedTxn) -> int:
        """Where the first open transaction of another producer began, else the offset after ``completed`` (TX-15)."""
        others = [first for first, open_ in self.ongoing.items() if open_.producer_id != completed.producer_id]
        return min(others) if others else to_long(completed.last_offset + 1)

    def complete(self, completed: CompletedTxn) -> None:
        """A transaction has ended; it counts as unstable until its marker is replicated.

        Raises:
            InvalidArgumentError: it is not open.
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
        if self.dialect.version >= (4, 2):
            return (
                f"CompletedTxn[producerId={producer_id}, firstOffset={first}, lastOffset={last}, isAborted={aborted}]"
            )
        return f"CompletedTxn(producerId={producer_id}, firstOffset={first}, lastOffset={last}, isAborted={aborted})"

    # -- what time changes -------------------------------------------------------------------------------------

    def on_high_watermark(self, high_watermark: int) -> None:
        """Everything below is on all replicas: transactions that ended there are stable."""
        self.unreplicated = {
            first: transaction
            for first, transaction in self.unreplicated.items()
            if transaction.last_offset is None or transaction.last_offset >= high_watermark
        }

    def is_expired(self, entry: ProducerEntry, now: int, expiration_ms: int) -> bool:
        """Whether a producer without an open transaction has not been heard of for so many milliseconds."""
        return entry.current_txn_first_offset is None and now - self.last_timestamp(entry) >= expiration_ms

    def remove_expired(self, now: int, expiration_ms: int) -> None:
        """Forgets producers that have not been heard of for so many milliseconds."""
        for producer in [p for p, entry in self.producers.items() if self.is_expired(entry, now, expiration_ms)]:
            del self.producers[producer]
