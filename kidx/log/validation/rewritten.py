"""Batches that are rewritten because format, codec or offsets do not suit the topic (``MemoryRecordsBuilder``)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kidx.errors import IllegalStateError, InvalidArgumentError
from kidx.log.errors import SkippedRecordError
from kidx.log.validation.batches import check_batch, ensure_single
from kidx.log.validation.partial_record import PartialRecord
from kidx.log.validation.records import RecordErrors, accepts
from kidx.producers.errors import MissingBytesError
from kidx.producers.truncated_records import records_of
from kidx.records import Codec, SimpleRecord, TimestampType, build_batch
from kidx.records.record import NO_TIMESTAMP

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from kidx.log.validation.context import ValidationContext
    from kidx.log.validation.records import ReadRecord
    from kidx.records import RecordBatch


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
