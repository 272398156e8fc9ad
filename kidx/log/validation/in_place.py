"""The final header of a v2 batch whose records stay as they are (``assignOffsetsNonCompressed`` and the like)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, cast

import google_crc32c

from kidx.java_numbers import to_long
from kidx.log.validation.batches import check_batch, ensure_single
from kidx.log.validation.records import Refusals, accepts
from kidx.producers.cut_records import records_of
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

    from kidx.log.validation.terms import Terms
    from kidx.records import RecordBatch

_CODECS: Final = {field.name: (field.offset, RECORD_BATCH.codec(field.name)) for field in RECORD_BATCH.fields}
_UNSIGNED: Final = 0xFFFF_FFFF


def with_offsets(batches: Sequence[RecordBatch], terms: Terms) -> tuple[bytes, int]:
    """One uncompressed v2 batch with its final header, where nothing is to be compressed.

    Returns:
        Its bytes, and the offset of the first record with the largest timestamp, -1 if none has one. A batch that
        claims a broker's time (LG-51) has that in all records, as long as it claims it.

    Raises:
        InvalidRecordError, InvalidTimestampError: the batch, or its records, are refused.
        KidxError: the records cannot be read.
    """
    ensure_single(batches, Codec.NONE)
    batch = batches[0]
    check_batch(batch, batch, terms)
    refusals = Refusals(terms.dialect)
    largest, offset, count = NO_TIMESTAMP, -1, 0
    for number, record in enumerate(records_of(batch, terms.dialect)):
        accepts(batch, record, number, terms, refusals)
        if record.timestamp > largest:
            largest, offset = record.timestamp, to_long(terms.first_offset + number)
        count += 1
    refusals.ensure_none()
    return final_batch(batch, terms, count, largest), offset


def final_batch(batch: RecordBatch, terms: Terms, count: int, largest: int) -> bytes:
    """A v2 batch with the last offset that its records get, the leader's epoch and the largest timestamp.

    Args:
        batch: as it came.
        terms: of the leader.
        count: of its records.
        largest: of their timestamps, milliseconds; the topic may want the clock's instead.
    """
    data = bytearray(batch.to_bytes())
    header = cast("DefaultRecordBatch", batch)
    last_offset = to_long(terms.first_offset + count - 1)
    _write(data, "base_offset", to_long(last_offset - (header.last_offset - header.base_offset)))
    _write(data, "partition_leader_epoch", terms.leader_epoch)
    stamp = terms.log_append_time
    kind = TimestampType.CREATE_TIME if stamp is None else TimestampType.LOG_APPEND_TIME
    timestamp = largest if stamp is None else stamp
    if (kind, timestamp) != (header.timestamp_type, header.max_timestamp):
        _stamp(data, header, terms, kind, timestamp)
    return bytes(data)


def _stamp(data: bytearray, header: DefaultRecordBatch, terms: Terms, kind: TimestampType, timestamp: int) -> None:
    """Writes timestamp, attributes and checksum; attributes without a meaning are lost (``setMaxTimestamp``)."""
    kept = ATTRIBUTE_CODEC | ATTRIBUTE_TRANSACTIONAL | ATTRIBUTE_CONTROL
    if header.attributes & ATTRIBUTE_DELETE_HORIZON and terms.dialect.rewriting_keeps_delete_horizon:
        kept |= ATTRIBUTE_DELETE_HORIZON
    stamped = ATTRIBUTE_LOG_APPEND_TIME if kind is TimestampType.LOG_APPEND_TIME else 0
    _write(data, "attributes", header.attributes & kept | stamped)
    _write(data, "max_timestamp", timestamp)
    crc = int(google_crc32c.value(bytes(data[CHECKSUMMED_FROM:])))
    signed = not _CODECS["crc"][1].format.endswith("I")
    _write(data, "crc", crc - (crc >> 31 << 32) if signed else crc & _UNSIGNED)


def _write(data: bytearray, field: str, value: int) -> None:
    at, codec = _CODECS[field]
    codec.pack_into(data, at, value)
