"""What is remembered of one producer (``ProducerStateEntry``, ``BatchMetadata``)."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, NamedTuple

from kidx.java_numbers import INT_MAX
from kidx.records.record import NO_PRODUCER_EPOCH, NO_SEQUENCE, NO_TIMESTAMP

if TYPE_CHECKING:
    from kidx.records import RecordBatch

BATCHES_RETAINED: Final = 5
"""As many batches as a producer may have in flight: a repeated one of them is known again."""


def decrement_sequence(sequence: int, decrement: int) -> int:
    """The sequence number so many places before; before 0 comes 2**31 - 1."""
    return sequence - decrement if sequence >= decrement else INT_MAX - (decrement - sequence) + 1


class BatchMetadata(NamedTuple):
    """One of a producer's last batches: its last sequence number and offset, and the distance to its first ones."""

    last_sequence: int
    last_offset: int
    offset_delta: int
    timestamp: int

    @property
    def first_sequence(self) -> int:
        """The sequence number of its first record."""
        return decrement_sequence(self.last_sequence, self.offset_delta)

    @property
    def first_offset(self) -> int:
        """The offset of its first record."""
        return self.last_offset - self.offset_delta


@dataclass(slots=True)
class ProducerEntry:
    """What is remembered of one producer.

    Attributes:
        producer_epoch: of its last batch or marker; -1 if nothing is known.
        coordinator_epoch: of the coordinator that wrote its last marker; -1 if none did.
        last_timestamp: of its last batch or marker, milliseconds.
        current_txn_first_offset: where its open transaction began; None outside one.
        batches: the last five of its epoch, oldest first.
    """

    producer_epoch: int = NO_PRODUCER_EPOCH
    coordinator_epoch: int = -1
    last_timestamp: int = NO_TIMESTAMP
    current_txn_first_offset: int | None = None
    batches: deque[BatchMetadata] = field(default_factory=lambda: deque(maxlen=BATCHES_RETAINED))

    def without_batches(self) -> ProducerEntry:
        """A copy that remembers no batch."""
        return ProducerEntry(
            self.producer_epoch, self.coordinator_epoch, self.last_timestamp, self.current_txn_first_offset
        )

    @property
    def last_sequence(self) -> int:
        """Of the last batch; -1 without one."""
        return self.batches[-1].last_sequence if self.batches else NO_SEQUENCE

    @property
    def last_offset(self) -> int:
        """Of the last batch; -1 without one."""
        return self.batches[-1].last_offset if self.batches else -1

    @property
    def last_offset_delta(self) -> int:
        """Of the last batch; 0 without one."""
        return self.batches[-1].offset_delta if self.batches else 0

    def add_batch(self, producer_epoch: int, batch: BatchMetadata) -> None:
        """Remembers a batch, and forgets those of another epoch."""
        self.update_epoch(producer_epoch)
        self.batches.append(batch)
        self.last_timestamp = batch.timestamp

    def update_epoch(self, producer_epoch: int) -> None:
        """Another epoch begins without batches."""
        if self.producer_epoch != producer_epoch:
            self.batches.clear()
            self.producer_epoch = producer_epoch

    def update(self, later: ProducerEntry) -> None:
        """Takes over what has been found out since."""
        self.update_epoch(later.producer_epoch)
        self.batches.extend(later.batches)
        self.coordinator_epoch = later.coordinator_epoch
        self.current_txn_first_offset = later.current_txn_first_offset
        self.last_timestamp = later.last_timestamp

    def find_duplicate(self, batch: RecordBatch) -> BatchMetadata | None:
        """The remembered batch of the same epoch and sequence numbers."""
        if batch.producer_epoch != self.producer_epoch:
            return None
        wanted = batch.base_sequence, batch.last_sequence
        return next((known for known in self.batches if (known.first_sequence, known.last_sequence) == wanted), None)
