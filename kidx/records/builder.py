"""Batch builder: writes the same bytes as ``MemoryRecordsBuilder.java`` for the same input."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Final

import google_crc32c

from kidx.java_values import INT_MAX, to_int
from kidx.layout import (
    ATTRIBUTE_CONTROL,
    ATTRIBUTE_DELETE_HORIZON,
    ATTRIBUTE_LOG_APPEND_TIME,
    ATTRIBUTE_TRANSACTIONAL,
    LOG_OVERHEAD,
    RECORD_BATCH,
    RECORD_BATCH_OVERHEAD,
)
from kidx.records.codecs import Codec, compress
from kidx.records.errors import InvalidArgumentError
from kidx.records.record import (
    NO_PARTITION_LEADER_EPOCH,
    NO_PRODUCER_EPOCH,
    NO_PRODUCER_ID,
    NO_SEQUENCE,
    NO_TIMESTAMP,
    Header,
    SimpleRecord,
    TimestampType,
    write_record,
)

if TYPE_CHECKING:
    from kidx.dialect import Compressor
    from kidx.layout import Layout
    from kidx.records.record import EndTransactionMarker

_CRC: Final = struct.Struct(">I")
_MESSAGE_HEAD: Final = struct.Struct(">bb")  # magic, attributes
_OFFSET_AND_SIZE: Final = struct.Struct(">qi")
_LONG: Final = struct.Struct(">q")
_SIZE: Final = struct.Struct(">i")
RecordLike = (
    SimpleRecord | tuple[int, bytes | None, bytes | None] | tuple[int, bytes | None, bytes | None, Sequence[Header]]
)
"""Record, or its timestamp in milliseconds, key, value and perhaps headers."""


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
    write_checksum(batch)
    return bytes(batch)


def write_checksum(data: bytearray, start: int = 0, end: int | None = None, layout: Layout = RECORD_BATCH) -> None:
    """Write the checksum of the batch, or of the message of an older layout, between two positions."""
    at = start + layout.field("crc").offset
    checksum = google_crc32c.value if layout is RECORD_BATCH else zlib.crc32
    data[at : at + _CRC.size] = _CRC.pack(checksum(bytes(data[at + _CRC.size : end])))


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


def build_batch(
    records: Iterable[RecordLike],
    *,
    base_offset: int = 0,
    magic: int = 2,
    codec: Codec = Codec.NONE,
    timestamp_type: TimestampType = TimestampType.CREATE_TIME,
    log_append_time: int = NO_TIMESTAMP,
    producer_id: int = NO_PRODUCER_ID,
    producer_epoch: int = NO_PRODUCER_EPOCH,
    base_sequence: int = NO_SEQUENCE,
    is_transactional: bool = False,
    is_control: bool = False,
    partition_leader_epoch: int = NO_PARTITION_LEADER_EPOCH,
    delete_horizon_ms: int | None = None,
    offsets: Sequence[int] | None = None,
    last_offset: int | None = None,
    max_timestamp: int | None = None,
    compressor: Compressor | None = None,
) -> bytes:
    """Return the bytes of a batch; for uncompressed v0 and v1, one batch per record, one after the other.

    Args:
        records: tuples (timestamp in milliseconds, key, value[, headers]). Without records the result is empty, as in
            Kafka; :func:`empty_batch` returns a batch without records.
        base_offset: base offset of the batch; offset of the first record unless ``offsets`` is given.
        magic: format: 0, 1 or 2.
        codec: compression codec.
        timestamp_type: origin of the timestamps; with LOG_APPEND_TIME, ``log_append_time`` overrides the timestamps in
            ``records``.
        log_append_time: timestamp of a batch with LOG_APPEND_TIME, in milliseconds.
        producer_id: id of an idempotent producer (v2).
        producer_epoch: epoch of that producer (v2).
        base_sequence: sequence number of the first record (v2).
        is_transactional: True if the batch belongs to a transaction (v2).
        is_control: True if the records are control records (v2).
        partition_leader_epoch: epoch of the leader (v2).
        delete_horizon_ms: delete horizon; sets the flag of 3.1.0, and is stored as the base timestamp (v2).
        offsets: absolute offsets of the records, increasing; needed if they have gaps.
        last_offset: last offset that the header states, as after compaction (v2, and wrappers of v0 and v1).
        max_timestamp: largest timestamp that the header states instead of the true one (v2 and v1 wrappers).
        compressor: codec libraries; kidx's libraries by default.

    Raises:
        InvalidArgumentError: the errors of Kafka's builder, with its messages: a timestamp below -1, offsets that do
            not increase, headers before v2, a transaction without a producer, and similar ones.
    """
    _check_options(
        magic,
        codec,
        timestamp_type,
        is_transactional=is_transactional,
        is_control=is_control,
        has_horizon=delete_horizon_ms not in (None, NO_TIMESTAMP),
    )
    _check_producer(
        magic, producer_id, producer_epoch, base_sequence, is_transactional=is_transactional, is_control=is_control
    )
    simple = [SimpleRecord(*record) for record in records]
    if not simple:
        return b""
    if offsets is None:
        offsets = range(base_offset, base_offset + len(simple))
    _check_records(simple, offsets, base_offset, magic)
    last = offsets[-1] if last_offset is None else last_offset
    if magic < 2:
        if timestamp_type is TimestampType.LOG_APPEND_TIME:
            simple = [record._replace(timestamp=log_append_time) for record in simple]
        return _legacy(
            simple,
            offsets,
            base_offset=base_offset,
            magic=magic,
            codec=codec,
            timestamp_type=timestamp_type,
            last_offset=last,
            max_timestamp=max_timestamp,
            compressor=compressor,
        )
    horizon = None if delete_horizon_ms is None or delete_horizon_ms < 0 else delete_horizon_ms
    base_timestamp = simple[0].timestamp if horizon is None else horizon
    body = b"".join(
        write_record(offset - base_offset, record.timestamp - base_timestamp, record)
        for offset, record in zip(offsets, simple, strict=True)
    )
    if max_timestamp is None:
        by_broker = timestamp_type is TimestampType.LOG_APPEND_TIME
        max_timestamp = log_append_time if by_broker else max(record.timestamp for record in simple)
    return write_batch(
        (compressor or compress)(codec, body, magic),
        base_offset=base_offset,
        last_offset=last,
        count=len(simple),
        codec=codec,
        timestamp_type=timestamp_type,
        base_timestamp=base_timestamp,
        max_timestamp=max_timestamp,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        base_sequence=base_sequence,
        is_transactional=is_transactional,
        is_control=is_control,
        has_delete_horizon=horizon is not None,
        partition_leader_epoch=partition_leader_epoch,
    )


def empty_batch(
    base_offset: int,
    last_offset: int,
    *,
    timestamp: int = NO_TIMESTAMP,
    timestamp_type: TimestampType = TimestampType.CREATE_TIME,
    producer_id: int = NO_PRODUCER_ID,
    producer_epoch: int = NO_PRODUCER_EPOCH,
    base_sequence: int = NO_SEQUENCE,
    is_transactional: bool = False,
    is_control: bool = False,
    partition_leader_epoch: int = NO_PARTITION_LEADER_EPOCH,
) -> bytes:
    """Return a v2 batch without records after compaction, 61 bytes (``DefaultRecordBatch.writeEmptyHeader``; RB-2).

    Args:
        base_offset: original base offset of the batch.
        last_offset: original last offset of the batch.
        timestamp: largest timestamp in milliseconds; the base timestamp becomes -1.
        timestamp_type: origin of that timestamp.
        producer_id: producer id, or -1.
        producer_epoch: producer epoch, or -1.
        base_sequence: sequence number of the first record, or -1.
        is_transactional: True if the batch belonged to a transaction.
        is_control: True if the batch held control records.
        partition_leader_epoch: epoch of the leader, or -1.
    """
    return write_batch(
        b"",
        base_offset=base_offset,
        last_offset=last_offset,
        count=0,
        timestamp_type=timestamp_type,
        max_timestamp=timestamp,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        base_sequence=base_sequence,
        is_transactional=is_transactional,
        is_control=is_control,
        partition_leader_epoch=partition_leader_epoch,
    )


def end_transaction_marker(
    marker: EndTransactionMarker,
    *,
    producer_id: int,
    producer_epoch: int,
    offset: int = 0,
    timestamp: int = 0,
    partition_leader_epoch: int = NO_PARTITION_LEADER_EPOCH,
) -> bytes:
    """Return the control batch that ends a transaction (``MemoryRecords.withEndTransactionMarker``).

    Args:
        marker: commit or abort, and the coordinator's epoch.
        producer_id: producer of the transaction that ends.
        producer_epoch: epoch of that producer.
        offset: offset of the only record.
        timestamp: milliseconds.

    Raises:
        InvalidArgumentError: the producer id or epoch is -1.
    """
    return build_batch(
        [SimpleRecord(timestamp, marker.control_type.record_key, marker.value)],
        base_offset=offset,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        is_transactional=True,
        is_control=True,
        partition_leader_epoch=partition_leader_epoch,
    )


def _check_options(
    magic: int,
    codec: Codec,
    timestamp_type: TimestampType,
    *,
    is_transactional: bool,
    is_control: bool,
    has_horizon: bool,
) -> None:
    """Raise the errors that the constructor of ``MemoryRecordsBuilder`` raises."""
    if not 0 <= magic <= 2:
        raise InvalidArgumentError(f"Invalid magic value {magic}")
    if magic > 0 and timestamp_type is TimestampType.NO_TIMESTAMP_TYPE:
        raise InvalidArgumentError("TimestampType must be set for magic >= 0")
    if magic < 2:
        for is_set, feature in (
            (is_transactional, "Transactional records are"),
            (is_control, "Control records are"),
            (codec is Codec.ZSTD, "ZStandard compression is"),
            (has_horizon, "Delete horizon timestamp is"),
        ):
            if is_set:
                raise InvalidArgumentError(f"{feature} not supported for magic {magic}")


def _check_producer(
    magic: int, producer_id: int, producer_epoch: int, base_sequence: int, *, is_transactional: bool, is_control: bool
) -> None:
    """Raise the errors that ``validateProducerState`` raises."""
    if producer_id == NO_PRODUCER_ID:
        if is_transactional:
            raise InvalidArgumentError("Cannot write transactional messages without a valid producer ID")
        return
    if producer_epoch == NO_PRODUCER_EPOCH:
        raise InvalidArgumentError("Invalid negative producer epoch")
    if base_sequence < 0 and not is_control:
        raise InvalidArgumentError("Invalid negative sequence number used")
    if magic < 2:
        raise InvalidArgumentError(f"Idempotent messages are not supported for magic {magic}")


def _check_records(records: Sequence[SimpleRecord], offsets: Sequence[int], base_offset: int, magic: int) -> None:
    """Raise the errors that ``appendWithOffset`` and ``recordWritten`` raise."""
    if len(offsets) != len(records):
        raise InvalidArgumentError(f"{len(offsets)} offsets for {len(records)} records")
    previous: int | None = None
    for offset, record in zip(offsets, records, strict=True):
        if previous is not None and offset <= previous:
            raise InvalidArgumentError(
                f"Illegal offset {offset} following previous offset {previous} (Offsets must increase monotonically)."
            )
        if record.timestamp < NO_TIMESTAMP:
            raise InvalidArgumentError(f"Invalid negative timestamp {record.timestamp}")
        if magic < 2 and record.headers:
            raise InvalidArgumentError(f"Magic v{magic} does not support record headers")
        if offset - base_offset > INT_MAX:
            raise InvalidArgumentError(
                f"Maximum offset delta exceeded, base offset: {base_offset}, last offset: {offset}"
            )
        previous = offset


def _legacy(
    records: Sequence[SimpleRecord],
    offsets: Sequence[int],
    *,
    base_offset: int,
    magic: int,
    codec: Codec,
    timestamp_type: TimestampType,
    last_offset: int,
    max_timestamp: int | None,
    compressor: Compressor | None,
) -> bytes:
    """Return the messages one after the other, or the wrapper that holds all of them."""
    relative_to = base_offset if magic == 1 and codec is not Codec.NONE else 0
    messages = b"".join(
        write_message(
            offset - relative_to, magic, record.timestamp, record.key, record.value, timestamp_type=timestamp_type
        )
        for offset, record in zip(offsets, records, strict=True)
    )
    if codec is Codec.NONE:
        return messages
    if max_timestamp is None:
        max_timestamp = max(record.timestamp for record in records)
    value = (compressor or compress)(codec, messages, magic)
    return write_message(last_offset, magic, max_timestamp, None, value, codec=codec, timestamp_type=timestamp_type)
