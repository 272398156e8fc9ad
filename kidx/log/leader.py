"""What a leader makes of a producer's batch before it is appended (``LogValidator``): offsets, epoch, timestamps.

Batches of the current format only, which are changed in place; up-conversion of older ones and recompression, which
Kafka does besides, are not offered. Nor is the check of timestamps too far away.
"""

from __future__ import annotations

from typing import Final

import google_crc32c

from kidx.errors import InvalidArgumentError
from kidx.records import InvalidRecordError, RecordBatch, TimestampType, iter_memory_batches
from kidx.records.layout import ATTRIBUTE_LOG_APPEND_TIME, CHECKSUMMED_FROM, RECORD_BATCH
from kidx.records.record import NO_TIMESTAMP

_MAGIC: Final = 2
_CODECS: Final = {
    field: (RECORD_BATCH.field(field).offset, RECORD_BATCH.codec(field))
    for field in ("base_offset", "partition_leader_epoch", "crc", "attributes", "max_timestamp", "last_offset_delta")
}


def assign_offsets(
    records: bytes,
    first_offset: int,
    leader_epoch: int,
    *,
    log_append_time: int | None = None,
    from_client: bool = True,
) -> bytes:
    """The batch with its final offsets, the leader's epoch and the largest timestamp that its records have.

    Args:
        records: one batch whose first offset is 0.
        first_offset: of its first record.
        leader_epoch: of the leader.
        log_append_time: milliseconds, where the topic wants the broker's time.
        from_client: a producer sent it, not a transaction coordinator.

    Raises:
        InvalidRecordError: more than one batch, a control batch or a base offset other than 0 from a client.
        InvalidArgumentError: a batch of an older format.
        KidxError: the records cannot be read.
    """
    batches = list(iter_memory_batches(records))
    if len(batches) > 1:
        raise InvalidRecordError("Compressed outer record has more than one batch")
    (batch,) = batches
    if batch.magic != _MAGIC:
        raise InvalidArgumentError(f"a leader here takes batches of magic {_MAGIC} only, not {batch.magic}")
    count = _validate(batch, from_client=from_client)
    stamped = log_append_time is not None
    timestamps = [record.timestamp for record in batch]
    if not stamped and batch.timestamp_type is TimestampType.LOG_APPEND_TIME:
        raise InvalidRecordError("Invalid timestamp type LogAppendTime in a batch of a producer")
    largest = max(timestamps, default=NO_TIMESTAMP) if log_append_time is None else log_append_time
    return _rewritten(batch, first_offset + count - 1, leader_epoch, largest, stamped=stamped)


def _validate(batch: RecordBatch, *, from_client: bool) -> int:
    """Checks what the header says of offsets and returns the number of records."""
    if from_client and batch.is_control:
        raise InvalidRecordError("Clients are not allowed to write control records")
    if from_client and batch.producer_id >= 0 and batch.base_sequence < 0:
        raise InvalidRecordError(
            f"Invalid sequence number {batch.base_sequence} in record batch with producerId {batch.producer_id}"
        )
    count = batch.count or 0
    from_offsets = batch.last_offset - batch.base_offset + 1
    if from_offsets != count or count <= 0:
        raise InvalidRecordError(f"Inconsistent batch: {from_offsets} offsets and {count} records")
    return count


def _rewritten(batch: RecordBatch, last_offset: int, leader_epoch: int, timestamp: int, *, stamped: bool) -> bytes:
    data = bytearray(batch.to_bytes())

    def read(field: str) -> int:
        at, codec = _CODECS[field]
        return int(codec.unpack_from(data, at)[0])

    def write(field: str, value: int) -> None:
        at, codec = _CODECS[field]
        codec.pack_into(data, at, value)

    write("base_offset", last_offset - read("last_offset_delta"))
    write("partition_leader_epoch", leader_epoch)
    flags = read("attributes") & ~ATTRIBUTE_LOG_APPEND_TIME
    write("attributes", flags | ATTRIBUTE_LOG_APPEND_TIME if stamped else flags)
    write("max_timestamp", timestamp)
    at, codec = _CODECS["crc"]
    crc = int(google_crc32c.value(bytes(data[CHECKSUMMED_FROM:])))
    codec.pack_into(data, at, crc if codec.format.endswith("I") else crc - (crc >> 31 << 32))
    return bytes(data)
