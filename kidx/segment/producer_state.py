"""Which transactions are open, as far as a log tells (``ProducerStateManager``, ``ProducerAppendInfo``).

Only what decides the content of a ``.txnindex`` is kept: epochs, and where each producer's open transaction began.
Batches come as they do from a leader or from the log itself; what only a client's batches are checked for is left out.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, NamedTuple

from kidx.dialect import Dialect, dialect_of
from kidx.errors import InvalidArgumentError
from kidx.java_numbers import to_long
from kidx.records import ControlRecordType
from kidx.records.record import NO_PRODUCER_EPOCH, NO_PRODUCER_ID
from kidx.segment.cut_records import records_of
from kidx.segment.errors import CoordinatorFencedError, InvalidTxnStateError, ProducerFencedError
from kidx.segment.markers import read_marker

if TYPE_CHECKING:
    from kidx.records import EndTransactionMarker, RecordBatch


class CompletedTxn(NamedTuple):
    """A transaction that a marker has ended: from its first offset to the marker's."""

    producer_id: int
    first_offset: int
    last_offset: int
    is_aborted: bool


@dataclass(slots=True)
class ProducerEntry:
    """What is known of one producer; ``current_txn_first_offset`` is None outside a transaction."""

    producer_epoch: int = NO_PRODUCER_EPOCH
    coordinator_epoch: int = -1
    current_txn_first_offset: int | None = None


@dataclass(slots=True)
class ProducerState:
    """The producers of one partition.

    Attributes:
        topic_partition: for messages, e.g. ``"orders-0"``.
        dialect: the rules of a release.
        producers: by producer id.
        ongoing: producer ids of the open transactions, by first offset.
        map_end_offset: the offset after the last batch seen.
    """

    topic_partition: str = "t-0"
    dialect: Dialect = field(default_factory=dialect_of)
    producers: dict[int, ProducerEntry] = field(default_factory=dict)
    ongoing: dict[int, int] = field(default_factory=dict)
    map_end_offset: int = 0

    def snapshot(self) -> ProducerState:
        """What a snapshot file keeps of it: all but what has been read of the log since."""
        entries = {producer: replace(entry) for producer, entry in self.producers.items()}
        return replace(self, producers=entries, ongoing=dict(self.ongoing))

    @property
    def first_undecided_offset(self) -> int | None:
        """Where the earliest open transaction began; None if none is open."""
        return min(self.ongoing, default=None)

    def update(self, batch: RecordBatch) -> CompletedTxn | None:
        """Takes a batch into account.

        Returns:
            The transaction that it completes, still open until :meth:`complete` is told so.

        Raises:
            InvalidTxnStateError: a plain batch while its producer's transaction is open.
            ProducerFencedError, CoordinatorFencedError: a marker with an old epoch, in 2.4.0.
            KidxError: a marker that cannot be read; see :func:`kidx.segment.markers.read_marker`.
        """
        if batch.producer_id <= NO_PRODUCER_ID:
            return None
        entry = self.producers.get(batch.producer_id) or ProducerEntry()
        if batch.is_control:
            completed = self._control(batch, entry)
        else:
            completed = None
            self._data(batch, entry)
        self.producers[batch.producer_id] = entry
        return completed

    def _data(self, batch: RecordBatch, entry: ProducerEntry) -> None:
        first, is_transactional = batch.base_offset, batch.is_transactional
        if entry.current_txn_first_offset is not None and not is_transactional:
            raise InvalidTxnStateError(
                f"Expected transactional write from producer {batch.producer_id} at offset (offset={first}"
                f"{self.dialect.offset_metadata_gap}segment=[-1:-1]) in partition {self.topic_partition}"
            )
        entry.producer_epoch = batch.producer_epoch
        if entry.current_txn_first_offset is None and is_transactional:
            entry.current_txn_first_offset = first
            self.ongoing[first] = batch.producer_id

    def _control(self, batch: RecordBatch, entry: ProducerEntry) -> CompletedTxn | None:
        record = next(records_of(batch, self.dialect), None)
        if record is None:  # compaction has removed the marker, and the transaction before it
            return None
        marker = read_marker(record, self.dialect)
        offset = batch.base_offset
        if self.dialect.recover_fences_markers:
            self._fence(batch, entry, marker)
        first = entry.current_txn_first_offset
        if first is None and self.dialect.empty_transactions_complete:
            first = offset
            self.ongoing[offset] = batch.producer_id
        entry.producer_epoch = batch.producer_epoch
        entry.coordinator_epoch = marker.coordinator_epoch
        entry.current_txn_first_offset = None
        if first is None:
            return None
        return CompletedTxn(batch.producer_id, first, offset, marker.control_type is ControlRecordType.ABORT)

    def _fence(self, batch: RecordBatch, entry: ProducerEntry, marker: EndTransactionMarker) -> None:
        offset = batch.base_offset
        if batch.producer_epoch < entry.producer_epoch:
            raise ProducerFencedError(
                f"Producer's epoch at offset {offset} is no longer valid in partition {self.topic_partition}:"
                f" {batch.producer_epoch} (request epoch), {entry.producer_epoch} (current epoch)"
            )
        if entry.coordinator_epoch > marker.coordinator_epoch:
            raise CoordinatorFencedError(
                f"Invalid coordinator epoch for producerId {batch.producer_id} at offset {offset} in partition"
                f" {self.topic_partition}: {marker.coordinator_epoch} (zombie), {entry.coordinator_epoch} (current)"
            )

    def last_stable_offset(self, completed: CompletedTxn) -> int:
        """Where the first open transaction of another producer began, else the offset after ``completed`` (TX-15)."""
        others = [first for first, producer in self.ongoing.items() if producer != completed.producer_id]
        return min(others) if others else to_long(completed.last_offset + 1)

    def complete(self, completed: CompletedTxn) -> None:
        """Removes a completed transaction from the open ones.

        Raises:
            InvalidArgumentError: it is not open.
        """
        if self.ongoing.pop(completed.first_offset, None) is None:
            raise InvalidArgumentError(
                f"Attempted to complete transaction {self._text(completed)} on partition {self.topic_partition}"
                " which was not started"
            )

    def _text(self, completed: CompletedTxn) -> str:
        producer_id, first, last, is_aborted = completed
        aborted = str(is_aborted).lower()
        if self.dialect.version >= (4, 2):
            return (
                f"CompletedTxn[producerId={producer_id}, firstOffset={first}, lastOffset={last}, isAborted={aborted}]"
            )
        return f"CompletedTxn(producerId={producer_id}, firstOffset={first}, lastOffset={last}, isAborted={aborted})"
