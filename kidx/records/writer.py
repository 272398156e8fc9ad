"""Encoder of one batch, or of one message of the old formats, from given field values."""

from __future__ import annotations

import struct
import zlib
from typing import Final

import google_crc32c

from kidx.java_numbers import to_int
from kidx.records.codecs import Codec
from kidx.records.errors import InvalidArgumentError
from kidx.records.layout import (
    ATTRIBUTE_CONTROL,
    ATTRIBUTE_DELETE_HORIZON,
    ATTRIBUTE_LOG_APPEND_TIME,
    ATTRIBUTE_TRANSACTIONAL,
    CHECKSUMMED_FROM,
    LOG_OVERHEAD,
    RECORD_BATCH,
    RECORD_BATCH_OVERHEAD,
)
from kidx.records.record import (
    NO_PARTITION_LEADER_EPOCH,
    NO_PRODUCER_EPOCH,
    NO_PRODUCER_ID,
    NO_SEQUENCE,
    NO_TIMESTAMP,
    TimestampType,
)

_CRC: Final = struct.Struct(">I")
_CRC_AT: Final = RECORD_BATCH.field("crc").offset
_MESSAGE_HEAD: Final = struct.Struct(">bb")  # magic, attributes
_OFFSET_AND_SIZE: Final = struct.Struct(">qi")
_LONG: Final = struct.Struct(">q")
_SIZE: Final = struct.Struct(">i")


def write_batch(
    body: bytes,
    *,
    base_offset: int,
    last_offset: int,
    count: int,
    codec: Codec = Codec.NONE,
    timestamp_type: TimestampType = TimestampType.CREATE_TIME,
    base_timestamp: int = NO_TIMESTAMP,
    max_timestamp: int = NO_TIMESTAMP,
    producer_id: int = NO_PRODUCER_ID,
    producer_epoch: int = NO_PRODUCER_EPOCH,
    base_sequence: int = NO_SEQUENCE,
    is_transactional: bool = False,
    is_control: bool = False,
    has_delete_horizon: bool = False,
    partition_leader_epoch: int = NO_PARTITION_LEADER_EPOCH,
    magic: int = 2,
) -> bytes:
    """Return a v2 header with a valid checksum, followed by ``body`` unchecked (``DefaultRecordBatch.writeHeader``).

    Args:
        body: the stored records, compressed with ``codec``; neither is checked.
        base_offset: base offset of the batch.
        last_offset: last offset, stored as a 32-bit delta and truncated as a Java cast does.
        count: number of records.
        codec: codec in the attributes.
        timestamp_type: timestamp type in the attributes.
        base_timestamp: milliseconds, or -1.
        max_timestamp: milliseconds, or -1.
        producer_id: producer id, or -1.
        producer_epoch: producer epoch, or -1.
        base_sequence: sequence number of the first record, or -1.
        is_transactional: transactional flag in the attributes.
        is_control: control flag in the attributes.
        has_delete_horizon: delete horizon flag in the attributes; ``base_timestamp`` is then a delete horizon.
        partition_leader_epoch: epoch of the leader, or -1.
        magic: any value from 2 on.

    Raises:
        InvalidArgumentError: a base timestamp below -1, no timestamp type, a magic below 2, or a field that does not
            fit its width.
    """
    if magic < 2:
        raise InvalidArgumentError(f"Invalid magic value {magic}")
    if base_timestamp < NO_TIMESTAMP:
        raise InvalidArgumentError(f"Invalid message timestamp {base_timestamp}")
    if timestamp_type is TimestampType.NO_TIMESTAMP_TYPE:
        raise InvalidArgumentError(
            "Timestamp type must be provided to compute attributes for message format v2 and above"
        )
    attributes = (
        codec
        | (ATTRIBUTE_LOG_APPEND_TIME if timestamp_type is TimestampType.LOG_APPEND_TIME else 0)
        | (ATTRIBUTE_TRANSACTIONAL if is_transactional else 0)
        | (ATTRIBUTE_CONTROL if is_control else 0)
        | (ATTRIBUTE_DELETE_HORIZON if has_delete_horizon else 0)
    )
    values = {
        "base_offset": base_offset,
        "length": RECORD_BATCH_OVERHEAD + len(body) - LOG_OVERHEAD,
        "partition_leader_epoch": partition_leader_epoch,
        "magic": magic,
        "crc": 0,
        "attributes": attributes,
        "last_offset_delta": to_int(last_offset - base_offset),
        "base_timestamp": base_timestamp,
        "max_timestamp": max_timestamp,
        "producer_id": producer_id,
        "producer_epoch": producer_epoch,
        "base_sequence": base_sequence,
        "record_count": count,
    }
    try:
        header = RECORD_BATCH.struct.pack(*(values[field.name] for field in RECORD_BATCH.fields))
    except struct.error as error:
        raise InvalidArgumentError(f"a field of the batch header does not fit: {error}") from error
    batch = bytearray(header + body)
    _CRC.pack_into(batch, _CRC_AT, google_crc32c.value(bytes(batch[CHECKSUMMED_FROM:])))
    return bytes(batch)


def write_message(
    offset: int,
    magic: int,
    timestamp: int,
    key: bytes | None,
    value: bytes | None,
    *,
    codec: Codec = Codec.NONE,
    timestamp_type: TimestampType = TimestampType.CREATE_TIME,
) -> bytes:
    """Return one v0 or v1 message with its offset and length (``LegacyRecord.write``).

    Args:
        offset: offset to store.
        magic: 0 or 1.
        timestamp: milliseconds; v0 does not store it.
        key: bytes or None.
        value: bytes or None; with a ``codec``, messages that are already compressed.
        codec: codec in the attributes.
        timestamp_type: timestamp type in the attributes of v1.

    Raises:
        InvalidArgumentError: the magic is not 0 or 1, the timestamp is below -1, or the offset exceeds 64 bits.
    """
    if magic not in (0, 1):
        raise InvalidArgumentError(f"Invalid magic value {magic}")
    if timestamp < NO_TIMESTAMP:
        raise InvalidArgumentError(f"Invalid message timestamp {timestamp}")
    by_broker = magic == 1 and timestamp_type is TimestampType.LOG_APPEND_TIME
    try:
        head = _MESSAGE_HEAD.pack(magic, codec | (ATTRIBUTE_LOG_APPEND_TIME if by_broker else 0))
        fields = [_SIZE.pack(-1) if data is None else _SIZE.pack(len(data)) + data for data in (key, value)]
        body = b"".join((head, _LONG.pack(timestamp) if magic else b"", *fields))
        return _OFFSET_AND_SIZE.pack(offset, _CRC.size + len(body)) + _CRC.pack(zlib.crc32(body)) + body
    except struct.error as error:
        raise InvalidArgumentError(f"a field of the message does not fit: {error}") from error
