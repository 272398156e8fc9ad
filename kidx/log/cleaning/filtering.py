"""Filter that determines the retained part of the batches of one buffer (``MemoryRecords.filterTo``; CL-4 to CL-15)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from kidx.errors import IllegalStateError
from kidx.producers.truncated_records import largest_record, records_of
from kidx.records import RecordBatch, SimpleRecord, TimestampType, build_batch, empty_batch
from kidx.records.record import NO_PRODUCER_ID, NO_TIMESTAMP

if TYPE_CHECKING:
    from kidx.dialect import Dialect
    from kidx.log.cleaning.offset_map import OffsetMap
    from kidx.log.cleaning.stats import CleanerStats
    from kidx.log.cleaning.transactions import CleanedTransactions
    from kidx.producers import ProducerEntry
    from kidx.records import Record

_NEWEST_MAGIC: Final = 2


@dataclass(slots=True)
class Filtered:
    """Output for the batches of one buffer.

    Attributes:
        pieces: the batches.
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
            data: the batch.
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
            batch: the original batch.
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
