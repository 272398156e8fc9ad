"""Changes that an append makes to one producer, first checked and then applied (``ProducerAppendInfo``)."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Final, NamedTuple

from kidx.errors import InvalidArgumentError
from kidx.java_numbers import INT_MAX, to_int
from kidx.producers.entry import BatchMetadata, ProducerEntry
from kidx.producers.errors import (
    CoordinatorFencedError,
    InvalidTxnStateError,
    OutOfOrderSequenceError,
    ProducerFencedError,
    UnknownProducerError,
)
from kidx.producers.markers import read_marker
from kidx.producers.truncated_records import records_of
from kidx.records import ControlRecordType
from kidx.records.record import NO_PRODUCER_EPOCH, NO_SEQUENCE

if TYPE_CHECKING:
    from kidx.dialect import Dialect
    from kidx.producers.verification import VerificationStateEntry
    from kidx.records import EndTransactionMarker, RecordBatch

UNKNOWN_VERSION: Final = -1
"""Version of a transaction in an append that does not state it, such as a follower's append."""

_RAISES_EPOCHS: Final = 2
"""Version of transactions in which each transaction has its own epoch."""

_LAST_EPOCH: Final = (1 << 15) - 1  # the largest producer epoch: the coordinator assigns a new producer id after it


class Origin(Enum):
    """Origin of an append, which decides what is checked (``AppendOrigin``)."""

    REPLICATION = "replication"
    """Batches from the leader, or from the log itself: nothing is rejected (2.4.0 rejects markers of an old epoch)."""
    COORDINATOR = "coordinator"
    """Batches of a group or transaction coordinator: epochs are checked."""
    CLIENT = "client"
    """Batches of a producer: epochs and sequence numbers are checked."""


class CompletedTxn(NamedTuple):
    """Transaction that a marker has ended: from its first offset to the offset of the marker."""

    producer_id: int
    first_offset: int
    last_offset: int  # offset of the marker
    is_aborted: bool


@dataclass(slots=True)
class Transaction:
    """Open transaction, or a completed one whose marker is not replicated yet (``TxnMetadata``).

    Attributes:
        producer_id: the producer of the transaction.
        first_offset: offset at which it began.
        has_metadata: True if the file position of that offset is known, as it is for transactions that began while the
            log was open (``LogOffsetMetadata``).
        last_offset: offset of its marker; None while it is open.
    """

    producer_id: int
    first_offset: int
    has_metadata: bool = False
    last_offset: int | None = None


class ProducerAppendInfo:
    """Batches of one producer in one append.

    Args:
        topic_partition: topic and partition in messages, e.g. ``"orders-0"``.
        producer_id: the producer of the batches.
        current: the current entry of the producer, which is not modified.
        origin: origin of the append: a client, a coordinator or replication.
        dialect: rules of a release.

    Attributes:
        updated: the entry after the append.
        started: the transactions that begin.
        verification: verification of the transaction that may begin, or None if nothing is verified.
        transaction_version: version of the transactions that markers end (4.2).
    """

    def __init__(
        self,
        topic_partition: str,
        producer_id: int,
        current: ProducerEntry,
        origin: Origin,
        dialect: Dialect,
    ) -> None:
        self.topic_partition = topic_partition
        self.producer_id = producer_id
        self.current = current
        self.origin = origin
        self.dialect = dialect
        self.updated = current.without_batches()
        self.started: list[Transaction] = []
        self.verification: VerificationStateEntry | None = None
        self.transaction_version = UNKNOWN_VERSION

    def append(self, batch: RecordBatch, *, has_metadata: bool = False) -> CompletedTxn | None:
        """Check a batch and add its changes.

        Args:
            batch: a batch of this producer.
            has_metadata: True if the file position of the batch is known.

        Returns:
            The transaction that it completes.

        Raises:
            ProducerFencedError, CoordinatorFencedError, OutOfOrderSequenceError: a check for the origin of the append
                failed.
            InvalidTxnStateError: a batch outside a transaction, while the producer's transaction is open.
            InvalidArgumentError: a coordinator's marker without a transaction version, from 4.2 on.
            KidxError: an unreadable marker; see :func:`kidx.producers.markers.read_marker`.
        """
        if not batch.is_control:
            self._data(batch, has_metadata=has_metadata)
            return None
        record = next(records_of(batch, self.dialect), None)
        if record is None:  # compaction has removed the marker, and the transaction before it
            return None
        marker = read_marker(record, self.dialect)
        return self._marker(batch, marker, record.timestamp)

    def _data(self, batch: RecordBatch, *, has_metadata: bool) -> None:
        first = batch.base_offset
        if self.origin is Origin.CLIENT or (
            self.origin is Origin.COORDINATOR and not self.dialect.recover_fences_markers
        ):
            self._check_epoch(batch.producer_epoch, first)
        if self.origin is Origin.CLIENT:
            self._check_sequence(batch.producer_epoch, batch.base_sequence, first)
        delta = to_int(batch.last_offset - first)
        self.updated.add_batch(
            batch.producer_epoch, BatchMetadata(batch.last_sequence, batch.last_offset, delta, batch.max_timestamp)
        )
        is_open = self.updated.current_txn_first_offset is not None
        if is_open and not batch.is_transactional:
            raise InvalidTxnStateError(
                f"Expected transactional write from producer {self.producer_id} at offset (offset={first}"
                f"{self.dialect.offset_metadata_gap}segment=[-1:-1]) in partition {self.topic_partition}"
            )
        if batch.is_transactional and not is_open:
            self.updated.current_txn_first_offset = first
            self.started.append(Transaction(self.producer_id, first, has_metadata))

    def _marker(self, batch: RecordBatch, marker: EndTransactionMarker, timestamp: int) -> CompletedTxn | None:
        offset = batch.base_offset
        if self.origin is not Origin.REPLICATION or self.dialect.recover_fences_markers:
            if not self._ends_its_epoch(batch.producer_epoch, offset):
                self._check_epoch(batch.producer_epoch, offset)
            self._check_coordinator(marker.coordinator_epoch, offset)
        first = self.updated.current_txn_first_offset
        if first is None and self.dialect.empty_transactions_complete:
            first = offset
            self.started.append(Transaction(self.producer_id, offset))
        self.updated.update_epoch(batch.producer_epoch)
        self.updated.current_txn_first_offset = None
        self.updated.coordinator_epoch = marker.coordinator_epoch
        if self.dialect.markers_have_timestamps:
            self.updated.last_timestamp = timestamp
        if first is None:
            return None
        return CompletedTxn(self.producer_id, first, offset, marker.control_type is ControlRecordType.ABORT)

    def _ends_its_epoch(self, epoch: int, offset: int) -> bool:
        """Return True if a marker with the producer's current epoch is valid (transaction version 2; from 4.2).

        The marker of an open transaction must have a newer epoch, unless the epoch is the largest one (4.3). If no
        transaction is open, a marker of the current epoch is a repetition.
        """
        version = self.transaction_version
        if UNKNOWN_VERSION < version < _RAISES_EPOCHS or not self.dialect.markers_end_epochs:
            return False
        if version == UNKNOWN_VERSION:
            raise InvalidArgumentError(f"transactionVersion must be explicitly specified for markers of {self.origin}")
        known = self.updated.producer_epoch
        is_closed = self.updated.current_txn_first_offset is None
        if epoch == known and not is_closed and not (epoch == _LAST_EPOCH and self.dialect.last_epoch_ends):
            raise ProducerFencedError(
                f"Epoch of producer {self.producer_id} at offset {offset} in {self.topic_partition} is {epoch}, which"
                " its open transaction has already"
            )
        return epoch == known

    def _check_epoch(self, epoch: int, offset: int) -> None:
        known = self.updated.producer_epoch
        if epoch >= known:
            return
        raise ProducerFencedError(
            f"Producer's epoch at offset {offset} is no longer valid in partition {self.topic_partition}:"
            f" {epoch} (request epoch), {known} (current epoch)"
        )

    def _check_coordinator(self, epoch: int, offset: int) -> None:
        known = self.updated.coordinator_epoch
        if known > epoch:
            raise CoordinatorFencedError(
                f"Invalid coordinator epoch for producerId {self.producer_id} at offset {offset} in partition"
                f" {self.topic_partition}: {epoch} (zombie), {known} (current)"
            )

    def _check_sequence(self, epoch: int, sequence: int, offset: int) -> None:
        where = f"producer {self.producer_id} at offset {offset} in partition {self.topic_partition}"
        self._check_verified(sequence, where)
        if epoch != self.updated.producer_epoch:
            if sequence == 0:
                return
            if self.updated.producer_epoch != NO_PRODUCER_EPOCH:
                raise OutOfOrderSequenceError(f"{where}: epoch {epoch} begins with {sequence} (seq. number)")
            if self.dialect.rejects_unknown_sequences:
                raise UnknownProducerError(f"Found no record of {where}")
            return
        last = self._last_sequence(epoch)
        if last == NO_SEQUENCE and sequence != 0 and self.dialect.rejects_unknown_sequences:
            raise UnknownProducerError(f"{where}: the next expected sequence number is not known")
        follows = sequence == last + 1 or (sequence == 0 and last == INT_MAX)
        known = self.current.producer_epoch != NO_PRODUCER_EPOCH
        if not follows and (known or self.dialect.rejects_unknown_sequences):
            raise OutOfOrderSequenceError(
                f"{where}: {sequence} (incoming seq. number), {last} (current end sequence number)"
            )

    def _check_verified(self, sequence: int, where: str) -> None:
        """Check that a transaction begins with the smallest sequence number that it was verified for."""
        verification = self.verification
        if verification is None:
            return
        is_new_epoch = verification.raises_epochs and not self.current.batches and self.dialect.verification_fences
        if (is_new_epoch and sequence != 0) or sequence > verification.lowest_sequence:
            raise OutOfOrderSequenceError(
                f"{where}: {sequence} (incoming seq. number), {verification.lowest_sequence} (earliest seen sequence)"
            )

    def _last_sequence(self, epoch: int) -> int:
        if self.updated.batches:
            return self.updated.last_sequence
        return self.current.last_sequence if epoch == self.current.producer_epoch else NO_SEQUENCE
