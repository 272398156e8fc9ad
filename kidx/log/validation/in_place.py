"""Final header of a v2 batch whose records remain unchanged (``assignOffsetsNonCompressed`` and similar methods)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, cast

import google_crc32c

from kidx.java_numbers import to_long
from kidx.log.validation.batches import check_batch, ensure_single
from kidx.log.validation.records import RecordErrors, accepts
from kidx.producers.truncated_records import records_of
from kidx.records import Codec, DefaultRecordBatch, TimestampType
from kidx.records.layout import (
    ATTRIBUTE_CODEC,
    ATTRIBUTE_CONTROL,
    ATTRIBUTE_DELETE_HORIZON,
    ATTRIBUTE_LOG_APPEND_TIME,
    ATTRIBUTE_TRANSACTIONAL,
    CHECKSUMMED_FROM,
    RECORD_BATCH,
)
from kidx.records.record import NO_TIMESTAMP

if TYPE_CHECKING:
    from collections.abc import Sequence

    from kidx.log.validation.context import ValidationContext
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
        batch: the incoming batch.
        context: context of the leader.
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
