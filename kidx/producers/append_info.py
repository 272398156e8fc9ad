"""What an append changes of one producer, checked first and noted afterwards (``ProducerAppendInfo``)."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Final, NamedTuple

from kidx.errors import InvalidArgumentError
from kidx.java_numbers import INT_MAX, to_int
from kidx.producers.cut_records import records_of
from kidx.producers.entry import BatchMetadata, ProducerEntry
from kidx.producers.errors import (
    CoordinatorFencedError,
    InvalidTxnStateError,
    OutOfOrderSequenceError,
    ProducerFencedError,
    UnknownProducerError,
)
from kidx.producers.markers import read_marker
from kidx.records import ControlRecordType
from kidx.records.record import NO_PRODUCER_EPOCH, NO_SEQUENCE

if TYPE_CHECKING:
    from kidx.dialect import Dialect
    from kidx.producers.verification import Verification
    from kidx.records import EndTransactionMarker, RecordBatch

UNKNOWN_VERSION: Final = -1
"""The version of a transaction in an append that does not say it, such as a follower's."""

_RAISES_EPOCHS: Final = 2
"""The version of transactions in which each has an epoch of its own."""

_LAST_EPOCH: Final = (1 << 15) - 1


class Origin(Enum):
    """The origin of an append: it decides what is checked (``AppendOrigin``)."""

    REPLICATION = "replication"
    """A leader's batches, or the log's own: nothing is refused (2.4.0 refuses markers of an old epoch)."""
    COORDINATOR = "coordinator"
    """A coordinator of groups or transactions: epochs are checked."""
    CLIENT = "client"
    """A producer: epochs and sequence numbers are checked."""


class CompletedTxn(NamedTuple):
    """A transaction that a marker has ended: from its first offset to the marker's."""

    producer_id: int
    first_offset: int
    last_offset: int
    is_aborted: bool


@dataclass(slots=True)
class Transaction:
    """An open transaction, or a completed one whose marker is not replicated yet (``TxnMetadata``).

    Attributes:
        producer_id: whose it is.
        first_offset: where it began.
        located: whether the place of that offset in a file is known, as for those that the open log has seen begin.
        last_offset: of its marker; None while it is open.
    """

    producer_id: int
    first_offset: int
    located: bool = False
    last_offset: int | None = None


class ProducerAppendInfo:
    """The batches of one producer in one append.

    Args:
        topic_partition: for messages, e.g. ``"orders-0"``.
        producer_id: whose batches.
        current: what is remembered of it; stays as it is.
        origin: of the append: a client, a coordinator or replication.
        dialect: the rules of a release.

    Attributes:
        updated: what is to be remembered.
        started: the transactions that begin.
        verification: of the transaction that may begin; None if nothing is verified.
        transaction_version: of the transactions that markers end (4.2).
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
        self.verification: Verification | None = None
        self.transaction_version = UNKNOWN_VERSION

    def append(self, batch: RecordBatch, *, located: bool = False) -> CompletedTxn | None:
        """Takes a batch into account.

        Args:
            batch: of this producer.
            located: where it lies in the log is known.

        Returns:
            The transaction that it completes.

        Raises:
            ProducerFencedError, CoordinatorFencedError, OutOfOrderSequenceError: as the origin says.
            InvalidTxnStateError: a plain batch while the transaction is open.
            InvalidArgumentError: a coordinator's marker of no version, from 4.2 on.
            KidxError: a marker that cannot be read; see :func:`kidx.producers.markers.read_marker`.
        """
        if not batch.is_control:
            self._data(batch, located=located)
            return None
        record = next(records_of(batch, self.dialect), None)
        if record is None:  # compaction has removed the marker, and the transaction before it
            return None
        marker = read_marker(record, self.dialect)
        return self._marker(batch, marker, record.timestamp)

    def _data(self, batch: RecordBatch, *, located: bool) -> None:
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
            self.started.append(Transaction(self.producer_id, first, located))

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
        """Whether a marker of the second version is right in its epoch, which has to be a newer one (4.2).

        The same epoch is that of a marker that comes once more; the largest one cannot be followed by another (4.3).
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
            if self.dialect.unknown_sequences_are_refused:
                raise UnknownProducerError(f"Found no record of {where}")
            return
        last = self._last_sequence(epoch)
        if last == NO_SEQUENCE and sequence != 0 and self.dialect.unknown_sequences_are_refused:
            raise UnknownProducerError(f"{where}: the next expected sequence number is not known")
        follows = sequence == last + 1 or (sequence == 0 and last == INT_MAX)
        known = self.current.producer_epoch != NO_PRODUCER_EPOCH
        if not follows and (known or self.dialect.unknown_sequences_are_refused):
            raise OutOfOrderSequenceError(
                f"{where}: {sequence} (incoming seq. number), {last} (current end sequence number)"
            )

    def _check_verified(self, sequence: int, where: str) -> None:
        """A transaction begins with the smallest sequence number that it was verified for."""
        verification = self.verification
        if verification is None:
            return
        anew = verification.raises_epochs and not self.current.batches and self.dialect.verification_fences
        if (anew and sequence != 0) or sequence > verification.lowest_sequence:
            raise OutOfOrderSequenceError(
                f"{where}: {sequence} (incoming seq. number), {verification.lowest_sequence} (earliest seen sequence)"
            )

    def _last_sequence(self, epoch: int) -> int:
        if self.updated.batches:
            return self.updated.last_sequence
        return self.current.last_sequence if epoch == self.current.producer_epoch else NO_SEQUENCE
