"""Changes that an append makes to one producer, first checked and then applied (``ProducerAppendInfo``)."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Final, NamedTuple, TypeVar

from kidx.errors import InvalidArgumentError, KidxError, OutOfBoundsError
from kidx.java_values import INT_MAX, to_int
from kidx.producers.entry import BatchMetadata, ProducerEntry
from kidx.producers.errors import (
    CoordinatorFencedError,
    InvalidTxnStateError,
    MissingBytesError,
    OutOfOrderSequenceError,
    ProducerFencedError,
    ShortMarkerError,
    UnknownProducerError,
)
from kidx.records import (
    ControlRecordType,
    EndTransactionMarker,
    InvalidRecordError,
    RecordError,
    RecordSizeError,
    TruncatedHeaderError,
    TruncatedRecordError,
    TruncatedStreamError,
)
from kidx.records.record import MAX_RECORD_BODY_SIZE, NO_PRODUCER_EPOCH, NO_SEQUENCE

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from kidx.dialect import Dialect
    from kidx.producers.entry import VerificationStateEntry
    from kidx.records import Record, RecordBatch

Item = TypeVar("Item")
_MARKER_SIZE: Final = 6
"""Size in bytes of a marker's value: version and coordinator epoch."""
UNKNOWN_VERSION: Final = -1
"""Version of a transaction in an append that does not state it, such as a follower's append."""
_RAISES_EPOCHS: Final = 2
"""Version of transactions in which each transaction has its own epoch."""
_LAST_EPOCH: Final = (1 << 15) - 1  # the largest producer epoch: the coordinator assigns a new producer id after it


def largest_record(configured: int, dialect: Dialect) -> int:
    """Return the maximum size of a decompressed record: ``max.decompressed.message.bytes``, which only 4.4 applies."""
    # A behaviour is only queried if it matters: a lockstep then runs one reference for releases that do not differ.
    if configured < MAX_RECORD_BODY_SIZE and dialect.limits_decompressed_size:
        return configured
    return MAX_RECORD_BODY_SIZE


def records_of(records: Iterable[Item], dialect: Dialect) -> Iterator[Item]:
    """Yield the records of a batch, or values read from them.

    Raises:
        InvalidArgumentError: the size of a compressed record is negative or does not end, before 3.6 (SEG-48).
        InvalidRecordError: a compressed stream ends inside a record, before 3.6 (SEG-49).
        OutOfBoundsError: the key of a header ends past the batch, before 2.7 (SEG-47).
        MissingBytesError: a record claims more bytes than are present, and was null up to 3.0.0 (SEG-46).
        KidxError: any other error of reading records.
    """
    try:
        yield from records
    except RecordError as error:
        raised = _as_raised(error, dialect)
        if raised is error:
            raise
        raise raised from error


def _as_raised(error: RecordError, dialect: Dialect) -> KidxError:
    if isinstance(error, TruncatedHeaderError) and dialect.truncated_headers_are_out_of_bounds:
        return OutOfBoundsError("a header whose key is longer than the rest of its batch", None)
    if isinstance(error, TruncatedRecordError) and error.was_null and dialect.truncated_records_are_null:
        return MissingBytesError("a record that is longer than the rest of its batch", None)
    if isinstance(error, RecordSizeError) and dialect.leaks_illegal_argument_for_size:
        return InvalidArgumentError(error.escaped)
    if isinstance(error, TruncatedStreamError) and error.in_record and dialect.truncated_streams_are_invalid:
        return InvalidRecordError("Incorrect declared batch size, premature EOF reached")
    return error


def read_marker(record: Record, dialect: Dialect) -> EndTransactionMarker:
    """Return the marker that a control record holds.

    Raises:
        InvalidRecordError: the key is too short, a version is negative, or (before 4.1) the value is too short.
        InvalidArgumentError: the control record has another type.
        MissingBytesError: key or value is null.
        ShortMarkerError: the value is too short, from 4.1 on.
    """
    if record.key is None:
        raise MissingBytesError("a control record without a key", None)
    kind = ControlRecordType.parse(record.key)
    if kind not in (ControlRecordType.ABORT, ControlRecordType.COMMIT):
        gap = " " if dialect.markers_parsed_by_generated_code else ""
        raise InvalidArgumentError(
            f"Invalid control record type for end transaction marker{gap}{kind.name_in(dialect)}"
        )
    if record.value is None:
        raise MissingBytesError("a transaction marker without a value", None)
    if len(record.value) < _MARKER_SIZE and dialect.markers_parsed_by_generated_code and not _is_negative(record.value):
        raise ShortMarkerError(f"a transaction marker of {len(record.value)} bytes, which needs {_MARKER_SIZE}", None)
    return EndTransactionMarker.parse(record)


def _is_negative(value: bytes) -> bool:
    """Return True if the version, which is read first, is present and negative."""
    return len(value) >= 2 and value[0] > 127


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
        place: base offset of the segment and position of the batch at that offset, if they are known, as they are for
            transactions that began while the log was open (``LogOffsetMetadata``).
        last_offset: offset of its marker; None while it is open.
    """

    producer_id: int
    first_offset: int
    place: tuple[int, int] | None = None
    last_offset: int | None = None


class ProducerAppendInfo:
    """Batches of one producer in one append.

    Args:
        topic_partition: topic and partition in messages, e.g. ``"orders-0"``.
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

    def append(self, batch: RecordBatch, place: tuple[int, int] | None = None) -> CompletedTxn | None:
        """Check a batch and add its changes.

        Args:
            place: base offset of the segment and position of the batch in it, if they are known.

        Returns:
            The transaction that it completes.

        Raises:
            ProducerFencedError, CoordinatorFencedError, OutOfOrderSequenceError: a check for the origin of the append
                failed.
            InvalidTxnStateError: a batch outside a transaction, while the producer's transaction is open.
            InvalidArgumentError: a coordinator's marker without a transaction version, from 4.2 on.
            KidxError: an unreadable marker; see :func:`kidx.producers.append_info.read_marker`.
        """
        if not batch.is_control:
            self._data(batch, place)
            return None
        record = next(records_of(batch, self.dialect), None)
        if record is None:  # compaction has removed the marker, and the transaction before it
            return None
        marker = read_marker(record, self.dialect)
        return self._marker(batch, marker, record.timestamp)

    def _data(self, batch: RecordBatch, place: tuple[int, int] | None) -> None:
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
            self.started.append(Transaction(self.producer_id, first, place))

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
