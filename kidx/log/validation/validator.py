"""Validation of batches by a leader, and the batches that it appends (``validateMessagesAndAssignOffsets``)."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final, NamedTuple, cast

import google_crc32c

from kidx.errors import IllegalStateError, InvalidArgumentError
from kidx.java_values import to_long
from kidx.layout import (
    ATTRIBUTE_CODEC,
    ATTRIBUTE_CONTROL,
    ATTRIBUTE_DELETE_HORIZON,
    ATTRIBUTE_LOG_APPEND_TIME,
    ATTRIBUTE_TRANSACTIONAL,
    CHECKSUMMED_FROM,
    RECORD_BATCH,
)
from kidx.log.errors import SkippedRecordError
from kidx.log.validation.checks import ReadRecord, RecordErrors, accepts, check_batch, describe_record, ensure_single
from kidx.log.validation.partial_record import PartialRecord, read_before_3_6, read_since_3_6
from kidx.producers.append_info import records_of
from kidx.producers.errors import MissingBytesError
from kidx.records import Codec, DefaultRecordBatch, SimpleRecord, TimestampType, build_batch
from kidx.records.codecs import ReadMode
from kidx.records.record import NO_TIMESTAMP

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from kidx.log.validation.checks import ValidationContext
    from kidx.records import RecordBatch

_CODECS: Final = {field.name: (field.offset, RECORD_BATCH.codec(field.name)) for field in RECORD_BATCH.fields}
_UNSIGNED: Final = 0xFFFF_FFFF


def with_offsets(batches: Sequence[RecordBatch], context: ValidationContext) -> tuple[bytes, int]:
    """Return one uncompressed v2 batch with its final header, if nothing is to be compressed.

    Returns:
        The bytes of the batch, and the offset of the first record with the largest timestamp, or -1 without timestamps.
            All records of an incoming batch with LogAppendTime have the timestamp of the batch (LG-51).

    Raises:
        InvalidRecordError, InvalidTimestampError: the batch, or its records, are rejected.
        KidxError: the records cannot be read.
    """
    ensure_single(batches, Codec.NONE)
    batch = batches[0]
    check_batch(batch, batch, context)
    errors = RecordErrors(context.dialect)
    largest, offset, count = NO_TIMESTAMP, -1, 0
    for number, record in enumerate(records_of(batch, context.dialect)):
        accepts(batch, record, number, context, errors)
        if record.timestamp > largest:
            largest, offset = record.timestamp, to_long(context.first_offset + number)
        count += 1
    errors.ensure_none()
    return final_batch(batch, context, count, largest), offset


def final_batch(batch: RecordBatch, context: ValidationContext, count: int, largest: int) -> bytes:
    """Return a v2 batch with the last offset of its records, the leader's epoch and the largest timestamp.

    Args:
        count: number of records in the batch.
        largest: largest timestamp of the records in milliseconds; the topic may require the clock's time instead.
    """
    data = bytearray(batch.to_bytes())
    header = cast("DefaultRecordBatch", batch)
    last_offset = to_long(context.first_offset + count - 1)
    _write(data, "base_offset", to_long(last_offset - (header.last_offset - header.base_offset)))
    _write(data, "partition_leader_epoch", context.leader_epoch)
    append_time = context.log_append_time
    kind = TimestampType.CREATE_TIME if append_time is None else TimestampType.LOG_APPEND_TIME
    timestamp = largest if append_time is None else append_time
    if (kind, timestamp) != (header.timestamp_type, header.max_timestamp):
        _set_max_timestamp(data, header, context, kind, timestamp)
    return bytes(data)


def _set_max_timestamp(
    data: bytearray, header: DefaultRecordBatch, context: ValidationContext, kind: TimestampType, timestamp: int
) -> None:
    """Write timestamp, attributes and checksum; attribute bits without a meaning are lost (``setMaxTimestamp``)."""
    retained = ATTRIBUTE_CODEC | ATTRIBUTE_TRANSACTIONAL | ATTRIBUTE_CONTROL
    if header.attributes & ATTRIBUTE_DELETE_HORIZON and context.dialect.rewriting_keeps_delete_horizon:
        retained |= ATTRIBUTE_DELETE_HORIZON
    flag = ATTRIBUTE_LOG_APPEND_TIME if kind is TimestampType.LOG_APPEND_TIME else 0
    _write(data, "attributes", header.attributes & retained | flag)
    _write(data, "max_timestamp", timestamp)
    crc = int(google_crc32c.value(bytes(data[CHECKSUMMED_FROM:])))
    signed = not _CODECS["crc"][1].format.endswith("I")
    _write(data, "crc", crc - (crc >> 31 << 32) if signed else crc & _UNSIGNED)


def _write(data: bytearray, field: str, value: int) -> None:
    at, codec = _CODECS[field]
    codec.pack_into(data, at, value)


def converted(batches: Sequence[RecordBatch], context: ValidationContext) -> bytes:
    """Return uncompressed messages of the old formats as one v2 batch (``convertAndAssignOffsetsNonCompressed``).

    Raises:
        InvalidRecordError, InvalidTimestampError: a batch, or its record, is rejected.
        KidxError: a record cannot be read.
    """
    _estimate_size(batches, context)
    ensure_single(batches, Codec.NONE)
    accepted: list[ReadRecord] = []
    for batch in batches:
        check_batch(batch, batches[0], context)
        errors = RecordErrors(context.dialect)
        for number, record in enumerate(records_of(batch, context.dialect)):
            if accepts(batch, record, number, context, errors) and not errors:
                _ensure_writable(record.timestamp)
                accepted.append(record)
        errors.ensure_none()
    return rewritten(batches[0], accepted, Codec.NONE, context)


def _estimate_size(batches: Sequence[RecordBatch], context: ValidationContext) -> None:
    """Read every key and value, as Kafka does to estimate the size of the new batch before any check.

    Raises:
        IllegalStateError: a record is longer than its batch, up to 3.0.0: an iterator treats null as a missing element.
        KidxError: a record cannot be read.
    """
    try:
        for batch in batches:
            for record in records_of(batch, context.dialect):
                _ = record.key, record.value
    except MissingBytesError as error:
        raise IllegalStateError("Expected item but none found.") from error


def _ensure_writable(timestamp: int) -> None:
    """Raise the error that the builder would raise.

    Raises:
        InvalidArgumentError: the timestamp is negative and not -1.
    """
    if timestamp < NO_TIMESTAMP:
        raise InvalidArgumentError(f"Invalid negative timestamp {timestamp}")


def rewritten(first: RecordBatch, records: Iterable[ReadRecord], codec: Codec, context: ValidationContext) -> bytes:
    """Return a v2 batch of these records, with consecutive offsets and the producer of the first batch.

    Raises:
        SkippedRecordError: the records came without keys and values.
        InvalidArgumentError: the builder rejects the records.
        KidxError: a key or value cannot be read.
    """
    plain = [_whole(record) for record in records]
    append_time = context.log_append_time
    return build_batch(
        plain,
        base_offset=context.first_offset,
        codec=codec,
        timestamp_type=TimestampType.CREATE_TIME if append_time is None else TimestampType.LOG_APPEND_TIME,
        log_append_time=NO_TIMESTAMP if append_time is None else append_time,
        producer_id=first.producer_id,
        producer_epoch=first.producer_epoch,
        base_sequence=first.base_sequence,
        is_transactional=first.is_transactional,
        partition_leader_epoch=context.leader_epoch,
        compressor=context.dialect.compressor,
    )


def _whole(record: ReadRecord) -> SimpleRecord:
    if isinstance(record, PartialRecord):
        raise SkippedRecordError(f"the key of the record at offset {record.offset} was skipped", None)
    return SimpleRecord(record.timestamp, record.key, record.value, record.headers)


class CompressedBatches:
    """Batches of one append call, at least one of which is or becomes compressed.

    Args:
        batches: batches that have passed all checks except :meth:`validate`.
        source: codec of the last compressed batch.
        context: context of the leader.

    Attributes:
        in_place: True if the records may remain unchanged; final after :meth:`validate`, which may set it to False.
    """

    def __init__(self, batches: Sequence[RecordBatch], source: Codec, context: ValidationContext) -> None:
        self._batches = batches
        self._source = source
        self._context = context
        first = batches[0]
        same = source is context.target_of(source) and first.magic >= 2
        self.in_place = same or (source is Codec.NONE and first.is_control)
        self._accepted: list[ReadRecord] = []
        self._largest = NO_TIMESTAMP

    def validate(self) -> bytes:
        """Return the batch to append.

        Raises:
            InvalidRecordError, InvalidTimestampError: a batch, or its records, are rejected.
            SkippedRecordError: records whose keys and values were skipped must be rebuilt (LG-55).
            KidxError: the records cannot be read or written.
        """
        ensure_single(self._batches, self._source)
        for batch in self._batches:
            check_batch(batch, self._batches[0], self._context)
            self._check_records(batch)
        if self.in_place:
            return final_batch(self._batches[0], self._context, len(self._accepted), self._largest)
        return rewritten(self._batches[0], self._accepted, self._context.target_of(self._source), self._context)

    def _check_records(self, batch: RecordBatch) -> None:
        errors = RecordErrors(self._context.dialect)
        expected = len(self._accepted)
        for number, record in enumerate(self._records(batch)):
            if accepts(batch, record, number, self._context, errors) and self._fits(
                batch, record, expected + number, number, errors
            ):
                self._accepted.append(record)
        errors.ensure_none()

    def _fits(self, batch: RecordBatch, record: ReadRecord, expected: int, number: int, errors: RecordErrors) -> bool:
        """Return True if the offset equals the record's index; otherwise add an error, or have the batch rebuilt."""
        if batch.magic == 0:
            return True
        if record.offset != expected and self._context.dialect.rejects_wrong_inner_offsets:
            errors.add(number, f"{describe_record(record)} does not have offset {expected}")
            return False
        self._largest = max(self._largest, record.timestamp)
        self.in_place = self.in_place and record.offset == expected
        return True

    def _records(self, batch: RecordBatch) -> Iterator[ReadRecord]:
        rules = self._context.dialect
        if not batch.is_compressed or not rules.validation_skips_keys:
            return records_of(batch, rules)
        largest = self._context.max_record_body_size
        if not self.in_place or not isinstance(batch, DefaultRecordBatch):
            return records_of(batch.streaming_iterator(largest), rules)
        if not rules.validation_ignores_record_sizes:
            return records_of(batch.read_decompressed(read_before_3_6, ReadMode.PIECES), rules)
        limit = largest if rules.limits_decompressed_size else None
        return records_of(batch.read_decompressed(partial(read_since_3_6, largest=limit), ReadMode.FIELDS), rules)


class Validated(NamedTuple):
    """Data to append.

    Attributes:
        rebuilt: True if they are a new batch, which may have more or fewer bytes than the incoming batches.
        first_largest: offset of the first record that had the largest timestamp on arrival, or -1 without timestamps;
            None if it was not determined.
    """

    records: bytes
    rebuilt: bool
    first_largest: int | None = None


def validate(batches: Sequence[RecordBatch], context: ValidationContext) -> Validated:
    """Return the batch that a leader appends for the incoming batches, with its own offsets, epoch and timestamps.

    Args:
        batches: one or more batches, from :func:`~kidx.log.validation.checks.checked_batches`.

    Raises:
        InvalidRecordError, InvalidTimestampError: batches, or their records, are rejected.
        KidxError: the records cannot be read or written.
    """
    source = next((batch.codec for batch in reversed(batches) if batch.is_compressed), Codec.NONE)
    if source is not Codec.NONE or context.target_of(source) is not Codec.NONE:
        compressed = CompressedBatches(batches, source, context)
        records = compressed.validate()
        return Validated(records, not compressed.in_place)
    if all(batch.magic >= 2 for batch in batches):
        records, first_largest = with_offsets(batches, context)
        return Validated(records, rebuilt=False, first_largest=first_largest)
    return Validated(converted(batches, context), rebuilt=True)
