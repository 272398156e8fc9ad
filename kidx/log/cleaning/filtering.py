"""What is left of the batches of one buffer (``MemoryRecords.filterTo``; CL-4 to CL-15)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from kidx.errors import IllegalStateError
from kidx.producers.cut_records import largest_record, records_of
from kidx.records import RecordBatch, SimpleRecord, TimestampType, build_batch, empty_batch
from kidx.records.record import NO_PRODUCER_ID, NO_TIMESTAMP

if TYPE_CHECKING:
    from kidx.dialect import Dialect
    from kidx.log.cleaning.cleaning import Cleaning
    from kidx.log.cleaning.keys import KeyOffsets
    from kidx.log.cleaning.transactions import CleanedTransactions
    from kidx.producers import ProducerEntry
    from kidx.records import Record

_NEWEST_MAGIC: Final = 2


@dataclass(slots=True)
class Filtered:
    """What is written of the batches of one buffer.

    Attributes:
        pieces: the batches.
        size: bytes of them.
        bytes_read: of the batches that have been looked at.
        largest_offset, largest_timestamp, shallow_offset: what the append that writes them says, see
            :class:`~kidx.segment.AppendInfo`.
    """

    pieces: list[bytes] = field(default_factory=list)
    size: int = 0
    bytes_read: int = 0
    largest_offset: int = -1
    largest_timestamp: int = NO_TIMESTAMP
    shallow_offset: int = -1

    def add(self, data: bytes, timestamp: int, last_retained: int, shallow: int) -> None:
        """Notes a batch that is written."""
        self.pieces.append(data)
        self.size += len(data)
        if timestamp > self.largest_timestamp:
            self.largest_timestamp, self.shallow_offset = timestamp, shallow
        self.largest_offset = max(self.largest_offset, last_retained)


@dataclass(slots=True)
class RecordFilter:
    """What decides about batches and records in one round of cleaning.

    Attributes:
        dialect: the rules of a release.
        now: when the round began, milliseconds.
        delete_retention_ms: ``delete.retention.ms`` of the topic.
        keys: the newest offset of each key.
        transactions: those that the batches belong to.
        producers: of the log; the last batch of each stays.
        kept_end: says of a batch whether it stays because of where it ends, if only its header (CL-14).
        keeps_deletes: whether what has no horizon of its own is new enough to stay (CL-10).
        max_record_body_size: bytes that a record may have, in 4.4.
        cleaning: counts what is read and written.
    """

    dialect: Dialect
    now: int
    delete_retention_ms: int
    keys: KeyOffsets
    transactions: CleanedTransactions
    producers: dict[int, ProducerEntry]
    kept_end: Callable[[RecordBatch], bool]
    keeps_deletes: bool
    max_record_body_size: int
    cleaning: Cleaning

    def filter(self, batches: Iterable[RecordBatch], capacity: int) -> Filtered:
        """What is left of some batches.

        Args:
            batches: of one buffer, in order.
            capacity: of the buffer that is written to; a batch that does not fit is the last one (CL-6).

        Raises:
            IllegalStateError: a batch of an old format should stay without a record (CL-15).
            KidxError: a record cannot be read or written.
        """
        found = Filtered()
        for batch in batches:
            self._filter_one(batch, found)
            if found.size > capacity:
                break
        return found

    def _filter_one(self, batch: RecordBatch, found: Filtered) -> None:
        may_go = self.transactions.may_go(batch)
        goes = may_go and (not batch.is_control or self._marker_is_old(batch))
        found.bytes_read += batch.size_in_bytes
        stays = self.is_last_of_producer(batch)
        if goes and not (stays or self.kept_end(batch)):
            return
        kept, whole = self._records(batch, goes=goes)
        if kept:
            self._write(batch, kept, found, whole=whole, marks_nothing=may_go and batch.is_control)
        elif stays or self.kept_end(batch):
            self._write_header(batch, found)

    def _marker_is_old(self, batch: RecordBatch) -> bool:
        if not self.dialect.deletes_have_horizons:
            return not self.keeps_deletes
        horizon = batch.delete_horizon_ms
        return horizon is not None and horizon <= self.now

    def is_last_of_producer(self, batch: RecordBatch) -> bool:
        """Whether the batch has the last sequence number of a producer, or is a marker with its epoch (CL-13)."""
        entry = self.producers.get(batch.producer_id)
        if entry is None or batch.producer_id <= NO_PRODUCER_ID:
            return False
        if entry.last_offset >= 0:
            return batch.last_offset == entry.last_offset
        return batch.is_control and batch.producer_epoch == entry.producer_epoch

    # -- records -----------------------------------------------------------------------------------------------

    def _records(self, batch: RecordBatch, *, goes: bool) -> tuple[list[Record], bool]:
        """The records that stay, and whether these are all."""
        kept, whole = [], batch.magic >= _NEWEST_MAGIC or not self.dialect.cleaning_converts_old_formats
        for record in read_records(batch, self.dialect, self.max_record_body_size):
            self.cleaning.records_read += 1
            if not goes and self.stays(batch, record):
                kept.append(record)
            else:
                whole = False
        return kept, whole

    def stays(self, batch: RecordBatch, record: Record) -> bool:
        """Whether a record stays: it is the newest of its key, or behind what was looked at (CL-3, CL-12)."""
        if batch.is_control and not self.dialect.markers_count_as_keys:
            return True
        if record.offset > self.keys.latest:
            return True
        if record.key is None:
            self.cleaning.keyless += 1
            return False
        return record.offset >= self.keys.get(record.key) and (record.value is not None or self.tombstones_stay(batch))

    def tombstones_stay(self, batch: RecordBatch) -> bool:
        """Whether the tombstones of a batch are new enough (CL-10, CL-11)."""
        if batch.magic < _NEWEST_MAGIC or not self.dialect.deletes_have_horizons:
            return self.keeps_deletes
        horizon = batch.delete_horizon_ms
        return horizon is None or self.now < horizon

    # -- writing -----------------------------------------------------------------------------------------------

    def _write(
        self, batch: RecordBatch, kept: list[Record], found: Filtered, *, whole: bool, marks_nothing: bool
    ) -> None:
        horizon = self.new_horizon(batch, kept, marks_nothing=marks_nothing)
        last = kept[-1].offset if not whole or horizon is not None else batch.last_offset
        if whole and horizon is None:
            data, timestamp, shallow = batch.to_bytes(), batch.max_timestamp, batch.last_offset
        else:
            if horizon is None and self.dialect.deletes_have_horizons:
                horizon = batch.delete_horizon_ms
            magic = batch.magic
            if magic < _NEWEST_MAGIC and self.dialect.cleaning_converts_old_formats:
                magic = _NEWEST_MAGIC
            data = self.rebuild(batch, kept, horizon, magic)
            stamped = batch.timestamp_type is TimestampType.LOG_APPEND_TIME
            timestamp = batch.max_timestamp if stamped else max(record.timestamp for record in kept)
            shallow = batch.last_offset if batch.magic >= _NEWEST_MAGIC else last
        found.add(data, timestamp, last, shallow)
        self.cleaning.records_written += len(kept)
        self.cleaning.bytes_written += len(data)

    def new_horizon(self, batch: RecordBatch, kept: list[Record], *, marks_nothing: bool) -> int | None:
        """When the tombstones of a batch, or its marker, may go, if that is to be noted now (CL-10); else None."""
        if not (marks_nothing or any(record.value is None for record in kept)):
            return None
        if batch.magic < _NEWEST_MAGIC and not self.dialect.cleaning_converts_old_formats:
            return None
        if not self.dialect.deletes_have_horizons or batch.delete_horizon_ms is not None:
            return None
        return self.now + self.delete_retention_ms

    def rebuild(self, batch: RecordBatch, kept: list[Record], horizon: int | None, magic: int) -> bytes:
        """A batch with fewer records, a delete horizon, or of another magic; its ends stay what they were (CL-7).

        Raises:
            KidxError: what the builder refuses.
        """
        is_new = batch.magic >= _NEWEST_MAGIC
        kind = batch.timestamp_type
        if kind is TimestampType.NO_TIMESTAMP_TYPE and magic >= _NEWEST_MAGIC:
            kind = TimestampType.CREATE_TIME
        return build_batch(
            [SimpleRecord(record.timestamp, record.key, record.value, record.headers) for record in kept],
            base_offset=batch.base_offset if is_new else kept[0].offset,
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
            offsets=[record.offset for record in kept],
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
        self.cleaning.bytes_written += len(data)


def read_records(batch: RecordBatch, dialect: Dialect, largest: int) -> Iterator[Record]:
    """The records of a batch as a cleaner reads them; in 4.4 they may have ``largest`` bytes.

    Raises:
        KidxError: one cannot be read.
    """
    return records_of(batch.streaming_iterator(largest_record(largest, dialect)), dialect)
