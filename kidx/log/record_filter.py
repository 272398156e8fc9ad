"""Filter that determines the retained part of the batches of one buffer (``MemoryRecords.filterTo``; CL-4 to CL-15)."""

from __future__ import annotations

import heapq
from dataclasses import dataclass, field
from itertools import count
from typing import TYPE_CHECKING, Final, NamedTuple

from kidx.errors import IllegalStateError
from kidx.layout import LOG_OVERHEAD, PREFIX
from kidx.producers.append_info import largest_record, records_of
from kidx.records import (
    ControlRecordType,
    CorruptRecordError,
    RecordBatch,
    SimpleRecord,
    TimestampType,
    build_batch,
    empty_batch,
    iter_memory_batches,
)
from kidx.records.record import NO_PRODUCER_ID, NO_TIMESTAMP

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from kidx.dialect import Decompressor, Dialect
    from kidx.index.transaction import AbortedTxn, TransactionIndex
    from kidx.producers import ProducerEntry
    from kidx.records import Record
    from kidx.segment import LogSegment

LOAD_FACTOR: Final = 0.9
"""``log.cleaner.io.buffer.load.factor``: fraction of the map that is filled."""
_NEWEST_MAGIC: Final = 2


class Chunk(NamedTuple):
    """Part of a segment.

    Attributes:
        bytes_left: number of bytes from the start of ``data`` to the end of the segment.
        decompressor: codec libraries that read the records; kidx's libraries if None.
    """

    data: bytes
    bytes_left: int
    decompressor: Decompressor | None

    @property
    def batches(self) -> Iterator[RecordBatch]:
        """Batches that are complete."""
        return iter_memory_batches(self.data, decompressor=self.decompressor)


class CleanerBuffer:
    """Buffers for reading and writing, which have the same size.

    Args:
        size: initial size in bytes, used as long as each batch fits.
        largest: maximum size of a batch in bytes, set by the topic.
        of_broker: the same, set by the broker. The buffer may grow to the larger of both.

    Attributes:
        capacity: current size in bytes.
    """

    def __init__(self, size: int, largest: int, of_broker: int) -> None:
        self._size = size
        self._largest = largest
        self._of_broker = of_broker
        self.capacity = size

    def read(self, segment: LogSegment, position: int) -> Chunk:
        """Return the bytes from a position on, as many as fit in the buffer.

        Raises:
            OSError: the log cannot be read.
        """
        data = segment.log.read_bytes(position, min(self.capacity, segment.size - position))
        return Chunk(data, segment.size - position, segment.log.dialect.decompressor)

    def grow(self, chunk: Chunk) -> None:
        """Grow the buffer to the batch that the chunk begins with, or at least to a larger size.

        Raises:
            IllegalStateError: the chunk begins with no batch, or the batch exceeds the maximum size.
            CorruptRecordError: the batch is longer than the rest of the segment.
        """
        limit = self._largest
        if self.capacity >= limit:
            limit = self._size_of_first(chunk)
        limit = max(limit, self._of_broker)
        if self.capacity >= limit:
            raise IllegalStateError(f"This log contains a message larger than maximum allowable size of {limit}.")
        self.capacity = min(self.capacity * 2, limit)

    def _size_of_first(self, chunk: Chunk) -> int:
        if len(chunk.data) < PREFIX.size:
            raise IllegalStateError("Could not determine next batch size")
        size = LOG_OVERHEAD + int.from_bytes(chunk.data[8:LOG_OVERHEAD], signed=True)
        if size <= 0:
            raise IllegalStateError(f"Invalid batch size {size}")
        if size <= self.capacity:
            raise IllegalStateError(f"Batch size {size} < buffer size {self.capacity}, but not processed")
        if size > chunk.bytes_left:
            raise CorruptRecordError(
                f"Log segment may be corrupt, batch size {size} > {chunk.bytes_left} bytes left in segment"
            )
        return size

    def restore(self) -> None:
        """Reset the buffer to its initial size."""
        self.capacity = min(self.capacity, self._size)


class CleanedTransactions:
    """State of the transactions at a reader's position in the log.

    Attributes:
        index: transaction index of the output segment; gets the aborted transactions of which a batch was present.
    """

    def __init__(self) -> None:
        self.index: TransactionIndex | None = None
        self._committed: set[int] = set()
        self._aborted: dict[int, tuple[AbortedTxn, list[int]]] = {}
        self._ahead: list[tuple[int, int, AbortedTxn]] = []
        self._number = count()

    def expect(self, aborted: Iterable[AbortedTxn]) -> None:
        """Add aborted transactions that the next batches may belong to."""
        for transaction in aborted:
            heapq.heappush(self._ahead, (transaction.first_offset, next(self._number), transaction))

    def _begin_until(self, offset: int) -> None:
        while self._ahead and self._ahead[0][0] <= offset:
            transaction = heapq.heappop(self._ahead)[2]
            self._aborted.setdefault(transaction.producer_id, (transaction, []))

    def is_discardable(self, batch: RecordBatch) -> bool:
        """Return True if the next batch of the log belongs to an aborted transaction, or is a marker without a batch.

        Raises:
            KidxError: the record of a marker cannot be read.
        """
        self._begin_until(batch.last_offset)
        if batch.is_control:
            return self._is_marker_discardable(batch)
        if not batch.is_transactional:
            return False
        aborted = self._aborted.get(batch.producer_id)
        if aborted is None:
            self._committed.add(batch.producer_id)
            return False
        aborted[1].append(batch.last_offset)
        return True

    def _is_marker_discardable(self, batch: RecordBatch) -> bool:
        record = next(iter(batch), None)
        if record is None:
            return True
        kind = ControlRecordType.parse(record.key)
        if kind is ControlRecordType.ABORT:
            aborted = self._aborted.pop(batch.producer_id, None)
            if aborted is None or not aborted[1]:
                return True
            if self.index is not None:
                self.index.append(aborted[0])
            return False
        if kind is ControlRecordType.COMMIT:
            known = batch.producer_id in self._committed
            self._committed.discard(batch.producer_id)
            return not known
        return False


class OffsetMap:
    """Map from key to its newest offset.

    Args:
        slots: number of slots of the map.

    Attributes:
        latest: offset up to which the records are mapped; -1 at first.
    """

    def __init__(self, slots: int) -> None:
        self._max_entries = int(slots * LOAD_FACTOR)
        self._offsets: dict[bytes, int] = {}
        self.latest = -1

    @property
    def is_full(self) -> bool:
        """True if the map accepts no further entry, not even for a known key (CL-3)."""
        return len(self._offsets) >= self._max_entries

    def put(self, key: bytes, offset: int) -> None:
        """Map a key to ``offset``, which is its newest so far."""
        self._offsets[key] = offset
        self.latest = offset

    def get(self, key: bytes) -> int:
        """Return the newest offset of a key, or -1 if it is not mapped."""
        return self._offsets.get(key, -1)


@dataclass(slots=True)
class CleanerStats:
    """Statistics of one round of cleaning (``CleanerStats``).

    Attributes:
        next_dirty_offset: offset at which the next round begins.
        map_records_read, map_bytes_read: records and bytes read to build the offset map.
        records_read, bytes_read: records and bytes read to copy segments; a batch that is discarded as a whole counts
            only its bytes.
        records_written, bytes_written: records and bytes retained.
        keyless: records without a key, which cannot be retained.
    """

    next_dirty_offset: int = 0
    map_records_read: int = 0
    map_bytes_read: int = 0
    records_read: int = 0
    bytes_read: int = 0
    records_written: int = 0
    bytes_written: int = 0
    keyless: int = 0


@dataclass(slots=True)
class Filtered:
    """Output for the batches of one buffer.

    Attributes:
        size: size of the batches in bytes.
        bytes_read: size in bytes of the input batches that were processed.
        largest_offset, largest_timestamp, shallow_offset: description of the append that writes them, see
            :class:`~kidx.segment.AppendInfo`.
    """

    pieces: list[bytes] = field(default_factory=list)
    size: int = 0
    bytes_read: int = 0
    largest_offset: int = -1
    largest_timestamp: int = NO_TIMESTAMP
    shallow_offset: int = -1

    def add(self, data: bytes, timestamp: int, last_retained: int, shallow: int) -> None:
        """Add a batch to write.

        Args:
            timestamp: largest timestamp of the batch in milliseconds.
            last_retained: offset of the last retained record, or of the batch.
            shallow: offset to index with the timestamp.
        """
        self.pieces.append(data)
        self.size += len(data)
        if timestamp > self.largest_timestamp:
            self.largest_timestamp, self.shallow_offset = timestamp, shallow
        self.largest_offset = max(self.largest_offset, last_retained)


@dataclass(slots=True)
class RecordFilter:
    """Filter of batches and records for one round of cleaning.

    Attributes:
        dialect: rules of a release.
        now: start of the round in milliseconds.
        delete_retention_ms: ``delete.retention.ms`` of the topic.
        keys: map from each key to its newest offset.
        transactions: state of the transactions that the batches belong to.
        producers: producers of the log; the last batch of each is retained.
        is_kept_end: function that returns True if a batch, at least its header, is retained for its end offset (CL-14).
        keeps_deletes: True if tombstones and markers without their own horizon are new enough to be retained (CL-10).
        max_record_body_size: maximum size in bytes of a record, in 4.4.
        stats: counters of the input and output.
    """

    dialect: Dialect
    now: int
    delete_retention_ms: int
    keys: OffsetMap
    transactions: CleanedTransactions
    producers: dict[int, ProducerEntry]
    is_kept_end: Callable[[RecordBatch], bool]
    keeps_deletes: bool
    max_record_body_size: int
    stats: CleanerStats

    def filter(self, batches: Iterable[RecordBatch], capacity: int) -> Filtered:
        """Return the retained part of some batches.

        Args:
            batches: batches of one buffer, in order.
            capacity: capacity of the output buffer; a batch that exceeds it is the last one (CL-6).

        Raises:
            IllegalStateError: a batch of an old format would be retained without a record (CL-15).
            KidxError: a record cannot be read or written.
        """
        found = Filtered()
        for batch in batches:
            self._filter_one(batch, found)
            if found.size > capacity:
                break
        return found

    def _filter_one(self, batch: RecordBatch, found: Filtered) -> None:
        discardable = self.transactions.is_discardable(batch)
        discards = discardable and (not batch.is_control or self._marker_is_old(batch))
        found.bytes_read += batch.size_in_bytes
        is_last = self.is_last_of_producer(batch)
        if discards and not (is_last or self.is_kept_end(batch)):
            return
        retained, whole = self._records(batch, discards=discards)
        if retained:
            self._write(batch, retained, found, whole=whole, marks_nothing=discardable and batch.is_control)
        elif is_last or self.is_kept_end(batch):
            self._write_header(batch, found)

    def _marker_is_old(self, batch: RecordBatch) -> bool:
        if not self.dialect.sets_delete_horizon:
            return not self.keeps_deletes
        horizon = batch.delete_horizon_ms
        return horizon is not None and horizon <= self.now

    def is_last_of_producer(self, batch: RecordBatch) -> bool:
        """Return True if the batch has a producer's last sequence number, or is a marker with its epoch (CL-13)."""
        entry = self.producers.get(batch.producer_id)
        if entry is None or batch.producer_id <= NO_PRODUCER_ID:
            return False
        if entry.last_offset >= 0:
            return batch.last_offset == entry.last_offset
        return batch.is_control and batch.producer_epoch == entry.producer_epoch

    # -- records -----------------------------------------------------------------------------------------------

    def _records(self, batch: RecordBatch, *, discards: bool) -> tuple[list[Record], bool]:
        """Return the retained records, and True if these are all."""
        retained, whole = [], batch.magic >= _NEWEST_MAGIC or not self.dialect.cleaning_converts_old_formats
        for record in read_records(batch, self.dialect, self.max_record_body_size):
            self.stats.records_read += 1
            if not discards and self.retains_record(batch, record):
                retained.append(record)
            else:
                whole = False
        return retained, whole

    def retains_record(self, batch: RecordBatch, record: Record) -> bool:
        """Return True if a record is retained: it is the newest of its key, or above the mapped range (CL-3, CL-12)."""
        if batch.is_control and not self.dialect.maps_markers_by_key:
            return True
        if record.offset > self.keys.latest:
            return True
        if record.key is None:
            self.stats.keyless += 1
            return False
        return record.offset >= self.keys.get(record.key) and (
            record.value is not None or self.retains_tombstones(batch)
        )

    def retains_tombstones(self, batch: RecordBatch) -> bool:
        """Return True if the tombstones of a batch are new enough to be retained (CL-10, CL-11)."""
        if batch.magic < _NEWEST_MAGIC or not self.dialect.sets_delete_horizon:
            return self.keeps_deletes
        horizon = batch.delete_horizon_ms
        return horizon is None or self.now < horizon

    # -- writing -----------------------------------------------------------------------------------------------

    def _write(
        self, batch: RecordBatch, retained: list[Record], found: Filtered, *, whole: bool, marks_nothing: bool
    ) -> None:
        horizon = self.next_delete_horizon(batch, retained, marks_nothing=marks_nothing)
        last = retained[-1].offset if not whole or horizon is not None else batch.last_offset
        if whole and horizon is None:
            data, timestamp, shallow = batch.to_bytes(), batch.max_timestamp, batch.last_offset
        else:
            if horizon is None and self.dialect.sets_delete_horizon:
                horizon = batch.delete_horizon_ms
            magic = batch.magic
            if magic < _NEWEST_MAGIC and self.dialect.cleaning_converts_old_formats:
                magic = _NEWEST_MAGIC
            data = self.rebuild(batch, retained, horizon, magic)
            by_broker = batch.timestamp_type is TimestampType.LOG_APPEND_TIME
            timestamp = batch.max_timestamp if by_broker else max(record.timestamp for record in retained)
            shallow = batch.last_offset if batch.magic >= _NEWEST_MAGIC else last
        found.add(data, timestamp, last, shallow)
        self.stats.records_written += len(retained)
        self.stats.bytes_written += len(data)

    def next_delete_horizon(self, batch: RecordBatch, retained: list[Record], *, marks_nothing: bool) -> int | None:
        """Return the delete horizon to set now for the tombstones of a batch, or its marker; otherwise None (CL-10).

        ``marks_nothing`` is True for the marker of a transaction without remaining batches.
        """
        if not (marks_nothing or any(record.value is None for record in retained)):
            return None
        if batch.magic < _NEWEST_MAGIC and not self.dialect.cleaning_converts_old_formats:
            return None
        if not self.dialect.sets_delete_horizon or batch.delete_horizon_ms is not None:
            return None
        return self.now + self.delete_retention_ms

    def rebuild(self, batch: RecordBatch, retained: list[Record], horizon: int | None, magic: int) -> bytes:
        """Return a batch with fewer records, a delete horizon or another magic, and unchanged end offsets (CL-7).

        Args:
            retained: the records to write, at least one.
            horizon: delete horizon in milliseconds, or None.
            magic: format of the new batch.

        Raises:
            KidxError: the builder rejects the records.
        """
        is_new = batch.magic >= _NEWEST_MAGIC
        kind = batch.timestamp_type
        if kind is TimestampType.NO_TIMESTAMP_TYPE and magic >= _NEWEST_MAGIC:
            kind = TimestampType.CREATE_TIME
        return build_batch(
            [SimpleRecord(record.timestamp, record.key, record.value, record.headers) for record in retained],
            base_offset=batch.base_offset if is_new else retained[0].offset,
            magic=magic,
            codec=batch.codec,
            timestamp_type=kind,
            log_append_time=batch.max_timestamp if kind is TimestampType.LOG_APPEND_TIME else NO_TIMESTAMP,
            producer_id=batch.producer_id,
            producer_epoch=batch.producer_epoch,
            base_sequence=batch.base_sequence,
            is_transactional=batch.is_transactional,
            is_control=batch.is_control,
            partition_leader_epoch=batch.partition_leader_epoch,
            delete_horizon_ms=horizon,
            offsets=[record.offset for record in retained],
            last_offset=batch.last_offset if is_new else None,
            compressor=self.dialect.compressor,
        )

    def _write_header(self, batch: RecordBatch, found: Filtered) -> None:
        if batch.magic < _NEWEST_MAGIC:
            raise IllegalStateError("Empty batches are only supported for magic v2 and above")
        data = empty_batch(
            batch.base_offset,
            batch.last_offset,
            timestamp=batch.max_timestamp,
            timestamp_type=batch.timestamp_type,
            producer_id=batch.producer_id,
            producer_epoch=batch.producer_epoch,
            base_sequence=batch.base_sequence,
            is_transactional=batch.is_transactional,
            is_control=batch.is_control,
            partition_leader_epoch=batch.partition_leader_epoch,
        )
        found.add(data, batch.max_timestamp, batch.last_offset, batch.last_offset)
        self.stats.bytes_written += len(data)


def read_records(batch: RecordBatch, dialect: Dialect, largest: int) -> Iterator[Record]:
    """Yield the records of a batch as a cleaner reads them; in 4.4 their maximum size is ``largest`` bytes.

    Raises:
        KidxError: a record cannot be read.
    """
    return records_of(batch.streaming_iterator(largest_record(largest, dialect)), dialect)
