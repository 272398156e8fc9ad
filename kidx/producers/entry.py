"""State of one producer: its epoch, its open transaction and its last batches (``ProducerStateEntry``)."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, NamedTuple

from kidx.java_values import INT_MAX
from kidx.records.record import NO_PRODUCER_EPOCH, NO_SEQUENCE, NO_TIMESTAMP

if TYPE_CHECKING:
    from kidx.records import RecordBatch

BATCHES_RETAINED: Final = 5
"""Maximum number of batches that a producer has in flight: a repetition of one of them is recognized."""


def decrement_sequence(sequence: int, decrement: int) -> int:
    """Return the sequence number ``decrement`` records earlier; 0 is preceded by 2**31 - 1."""
    return sequence - decrement if sequence >= decrement else INT_MAX - (decrement - sequence) + 1


class BatchMetadata(NamedTuple):
    """Numbers of one batch, by which a repetition of it is recognized (``BatchMetadata``)."""

    last_sequence: int  # sequence number of the last record
    last_offset: int
    offset_delta: int  # last offset minus first offset
    timestamp: int  # milliseconds

    @property
    def first_sequence(self) -> int:
        """Sequence number of the first record."""
        return decrement_sequence(self.last_sequence, self.offset_delta)

    @property
    def first_offset(self) -> int:
        """Offset of the first record."""
        return self.last_offset - self.offset_delta


@dataclass(slots=True)
class ProducerEntry:
    """State of one producer.

    Attributes:
        producer_epoch: epoch of its last batch or marker; -1 if unknown.
        coordinator_epoch: epoch of the coordinator that wrote its last marker; -1 without a marker.
        last_timestamp: timestamp of its last batch or marker, in milliseconds.
        current_txn_first_offset: first offset of its open transaction, or None.
        batches: the last five batches of its epoch, oldest first.
    """

    producer_epoch: int = NO_PRODUCER_EPOCH
    coordinator_epoch: int = -1
    last_timestamp: int = NO_TIMESTAMP
    current_txn_first_offset: int | None = None
    batches: deque[BatchMetadata] = field(default_factory=lambda: deque(maxlen=BATCHES_RETAINED))

    def without_batches(self) -> ProducerEntry:
        """Return a copy without batches."""
        return ProducerEntry(
            self.producer_epoch, self.coordinator_epoch, self.last_timestamp, self.current_txn_first_offset
        )

    @property
    def last_sequence(self) -> int:
        """Last sequence number of the last batch; -1 without batches."""
        return self.batches[-1].last_sequence if self.batches else NO_SEQUENCE

    @property
    def last_offset(self) -> int:
        """Last offset of the last batch; -1 without batches."""
        return self.batches[-1].last_offset if self.batches else -1

    @property
    def last_offset_delta(self) -> int:
        """Offset delta of the last batch; 0 without batches."""
        return self.batches[-1].offset_delta if self.batches else 0

    def add_batch(self, producer_epoch: int, batch: BatchMetadata) -> None:
        """Add a batch, and forget the batches of another epoch."""
        self.update_epoch(producer_epoch)
        self.batches.append(batch)
        self.last_timestamp = batch.timestamp

    def update_epoch(self, producer_epoch: int) -> None:
        """Set the epoch; a different epoch begins without batches."""
        if self.producer_epoch != producer_epoch:
            self.batches.clear()
            self.producer_epoch = producer_epoch

    def update(self, later: ProducerEntry) -> None:
        """Apply the entry of the same producer after an append."""
        self.update_epoch(later.producer_epoch)
        self.batches.extend(later.batches)
        self.coordinator_epoch = later.coordinator_epoch
        self.current_txn_first_offset = later.current_txn_first_offset
        self.last_timestamp = later.last_timestamp

    def find_duplicate(self, batch: RecordBatch) -> BatchMetadata | None:
        """Return the retained batch with the same epoch and sequence numbers, or None."""
        if batch.producer_epoch != self.producer_epoch:
            return None
        wanted = batch.base_sequence, batch.last_sequence
        return next((known for known in self.batches if (known.first_sequence, known.last_sequence) == wanted), None)


@dataclass(slots=True, eq=False)
class VerificationStateEntry:
    """State of a producer whose transaction is being verified. The object itself is the verification guard.

    Attributes:
        began: start of the verification in milliseconds.
        lowest_sequence: smallest sequence number that was verified in this epoch.
        epoch: the newest epoch.
        raises_epochs: True if the producer raises its epoch with each transaction (transaction version 2; from 4.0).
    """

    began: int
    lowest_sequence: int
    epoch: int
    raises_epochs: bool

    def update(self, sequence: int, epoch: int) -> None:
        """Record a sequence number for which verification was requested."""
        if epoch > self.epoch:
            self.epoch, self.lowest_sequence = epoch, sequence
        elif epoch == self.epoch:
            self.lowest_sequence = min(self.lowest_sequence, sequence)
