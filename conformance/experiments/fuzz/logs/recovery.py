"""Recovery of a log, computed from its batches: the size after the truncation, and the contents of the index files."""

from __future__ import annotations

from bisect import bisect_right
from typing import TYPE_CHECKING, Final

from conformance.experiments.fuzz.logs.known_batches import KnownBatch, NeedsReferenceError
from conformance.experiments.fuzz.probes import INDEX_INTERVAL, LOG_INDEX_SIZE
from conformance.experiments.fuzz.seed_files import BASE_OFFSET
from kidx.errors import KidxError
from kidx.index.entries import TimestampOffset
from kidx.java_numbers import INT_MAX, to_long
from kidx.layout import ABORTED_TXN, OFFSET_INDEX, TIME_INDEX
from kidx.producers import ProducerState
from kidx.records import NO_TIMESTAMP, CorruptRecordError, InvalidRecordError
from kidx.segment.max_timestamp import MaxTimestamp

if TYPE_CHECKING:
    from collections.abc import Sequence

    from kidx.dialect import Dialect
    from kidx.producers import CompletedTxn

_VERSION: Final = 0
"""Version of a transaction in a ``.txnindex`` file."""
_NEWEST_LEGACY: Final = 1


class Offsets:
    """Entries of an offset index."""

    kind: Final = OFFSET_INDEX

    def __init__(self) -> None:
        self.offsets: list[int] = []
        self.positions: list[int] = []

    def __len__(self) -> int:
        return len(self.offsets)

    def __bytes__(self) -> bytes:
        pairs = zip(self.offsets, self.positions, strict=True)
        return b"".join(OFFSET_INDEX.struct.pack(offset - BASE_OFFSET, position) for offset, position in pairs)

    @property
    def last(self) -> tuple[int]:
        """Last offset, in the format of a state."""
        return (self.offsets[-1] if self.offsets else BASE_OFFSET,)

    def append(self, offset: int, position: int) -> None:
        """Add an entry.

        Raises:
            NeedsReferenceError: The index rejects the entry.
        """
        is_full = len(self) >= LOG_INDEX_SIZE // OFFSET_INDEX.size
        if is_full or (self.offsets and offset <= self.offsets[-1]):
            raise NeedsReferenceError
        self.offsets.append(offset)
        self.positions.append(position)

    def position(self, target: int) -> int:
        """Return the position of the last entry at or below an offset, or 0."""
        place = bisect_right(self.offsets, target)
        return self.positions[place - 1] if place else 0


class Times:
    """Entries of a time index."""

    kind: Final = TIME_INDEX

    def __init__(self) -> None:
        self.timestamps: list[int] = []
        self.offsets: list[int] = []

    def __len__(self) -> int:
        return len(self.timestamps)

    def __bytes__(self) -> bytes:
        pairs = zip(self.timestamps, self.offsets, strict=True)
        return b"".join(TIME_INDEX.struct.pack(timestamp, offset - BASE_OFFSET) for timestamp, offset in pairs)

    @property
    def last_entry(self) -> TimestampOffset:
        """Last entry."""
        if not self.offsets:
            return TimestampOffset(NO_TIMESTAMP, BASE_OFFSET)
        return TimestampOffset(self.timestamps[-1], self.offsets[-1])

    @property
    def last(self) -> tuple[int, int]:
        """Last entry, in the format of a state."""
        return self.last_entry

    def append(self, maximum: MaxTimestamp, kept_free: int) -> None:
        """Add an entry for the largest timestamp so far, if it exceeds the last timestamp.

        Raises:
            NeedsReferenceError: The index rejects the entry.
        """
        timestamp, offset = maximum.timestamp, maximum.offset
        is_full = len(self) >= LOG_INDEX_SIZE // TIME_INDEX.size - kept_free
        if is_full or (self.offsets and (offset < self.offsets[-1] or timestamp < self.timestamps[-1])):
            raise NeedsReferenceError
        if timestamp > self.last_entry.timestamp:
            self.timestamps.append(timestamp)
            self.offsets.append(offset)

    def offset(self, target: int) -> int:
        """Return the offset of the last entry at or before a time, or the base offset."""
        place = bisect_right(self.timestamps, target)
        return self.offsets[place - 1] if place else BASE_OFFSET


class Recovered:
    """Segment after its recovery.

    Args:
        batches: The batches of the log.
        dialect: The dialect of a release.

    Attributes:
        size: The size of the log in bytes.
        batches: The remaining batches.
        offset_index: The entries of the offset index.
        time_index: The entries of the time index.
        maximum: The largest timestamp, in the format of a state.
        transactions: The content of the ``.txnindex`` file.
        last_transaction: The last offset of the last aborted transaction, or None.

    Raises:
        NeedsReferenceError: The recovery fails.
    """

    def __init__(self, batches: Sequence[KnownBatch], dialect: Dialect) -> None:
        self.size = 0
        self.offset_index, self.time_index = Offsets(), Times()
        self.transactions = b""
        self.last_transaction: int | None = None
        self._maximum = MaxTimestamp(lambda: self.time_index, dialect)
        self._maximum.forget()
        self._producers = ProducerState(dialect=dialect)
        self.batches = batches[: self._index(batches)]
        self.time_index.append(self._maximum, kept_free=0)
        self.maximum = self._maximum.cached()
        self.largest_timestamp = self._maximum.timestamp

    def _index(self, batches: Sequence[KnownBatch]) -> int:
        """Index the batches up to the first invalid batch; return the number of indexed batches."""
        last_index_entry = 0
        for number, known in enumerate(batches):
            if not known.is_valid:
                return number
            last = known.last_offset
            if not 0 <= to_long(last - BASE_OFFSET) <= INT_MAX:
                raise NeedsReferenceError
            if known.max_timestamp > self._maximum.timestamp:
                self._maximum.set(TimestampOffset(known.max_timestamp, last))
            if self.size - last_index_entry > INDEX_INTERVAL:
                self.offset_index.append(last, self.size)
                self.time_index.append(self._maximum, kept_free=1)
                last_index_entry = self.size
            self.size += known.size
            if known.magic > _NEWEST_LEGACY and not self._update_producer(known):
                return number + 1
        return len(batches)

    def _update_producer(self, known: KnownBatch) -> bool:
        """Update the producer's state with a batch; return False if the recovery ends after this batch."""
        if known.batch.producer_id < 0:
            return True
        state = self._producers
        try:
            completed = state.update(known.batch)
            if completed is None:
                return True
            if completed.is_aborted:
                self._abort(completed, state.last_stable_offset(completed))
            state.complete(completed)
        except (CorruptRecordError, InvalidRecordError):
            return False
        except KidxError:
            raise NeedsReferenceError from None
        return True

    def _abort(self, completed: CompletedTxn, stable: int) -> None:
        last = completed.last_offset
        if self.last_transaction is not None and self.last_transaction >= last:
            raise NeedsReferenceError
        self.transactions += ABORTED_TXN.struct.pack(
            _VERSION, completed.producer_id, completed.first_offset, last, stable
        )
        self.last_transaction = last
