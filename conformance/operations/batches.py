"""Record batches as plain data, so that a trace describes the appended batches without their bytes.

A batch is a JSON object; only ``records`` is required::

    {"base": 10, "records": [[0, 1000], [2, 900, 50]], "epoch": 3, "codec": "gzip", "magic": 2,
     "producer": [7, 0, 0], "transactional": true, "max_timestamp": 2000, "log_append_time": 5000}
    {"base": 13, "marker": "abort", "records": [[0, 1000]], "epoch": 3, "producer": [7, 0, -1]}

A record is ``[offset - base, timestamp, bytes of value, bytes of key]``; the two sizes may be omitted. Without a number
of key bytes, the key is null. With -1 bytes of value, the value is null. Keys of -1 and -2 bytes are the keys of abort
and commit markers. A producer is id, epoch and first sequence number. ``max_timestamp`` sets that field of the header,
although it contradicts the records. ``log_append_time`` makes the timestamp type LogAppendTime. A marker ends a
transaction; it is a control record with the epoch of a coordinator (``"coordinator_epoch": 1``; 0 by default). A batch
with ``"empty": true`` has a header and no records, as compaction leaves it; ``"control": true`` marks it as a former
marker. :mod:`conformance.operations.malformed_batches` describes other errors of a batch.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any, Final

import google_crc32c

from conformance.operations.malformed_batches import KEYS, encode_malformed
from kidx.layout import ATTRIBUTE_LOG_APPEND_TIME, LOG_OVERHEAD, RECORD_BATCH
from kidx.records import (
    Codec,
    ControlRecordType,
    EndTransactionMarker,
    SimpleRecord,
    TimestampType,
    build_batch,
    empty_batch,
    end_transaction_marker,
)
from kidx.records.builder import write_checksum

Batch = Mapping[str, Any]
"""A batch as described above."""

_CODECS: Final = {codec.name.lower(): codec for codec in Codec}
_MARKERS: Final = {"abort": ControlRecordType.ABORT, "commit": ControlRecordType.COMMIT}
_BASE_OFFSET: Final = RECORD_BATCH.field("base_offset").size
_ATTRIBUTES: Final = RECORD_BATCH.field("attributes").offset + 1  # the low byte
_MAGIC: Final = 2
_PATTERN: Final = bytes(range(256))
_LARGEST_CONTENT: Final = 1 << 24
"""Maximum size of a key or value: a trace from elsewhere must not exhaust memory."""


def encode(batches: Iterable[Batch]) -> bytes:
    """Return the bytes of the batches, one after another, as a producer or a leader sends them."""
    return b"".join(_encode(json.dumps(batch, sort_keys=True)) for batch in batches)


def as_sent(batch: bytes) -> bytes:
    """Return a v2 batch of a log as its producer sent it: with base offset 0 and the timestamp type CreateTime."""
    sent = bytearray(bytes(_BASE_OFFSET) + batch[_BASE_OFFSET:])
    sent[_ATTRIBUTES] &= ~ATTRIBUTE_LOG_APPEND_TIME
    write_checksum(sent)
    return bytes(sent)


@lru_cache(maxsize=4096)
def _encode(text: str) -> bytes:
    batch = json.loads(text)
    producer_id, producer_epoch, sequence = batch.get("producer", (-1, -1, -1))
    base = batch.get("base", 0)
    stamped = batch.get("log_append_time")
    if "marker" in batch:
        return end_transaction_marker(
            EndTransactionMarker(_MARKERS[batch["marker"]], batch.get("coordinator_epoch", 0)),
            producer_id=producer_id,
            producer_epoch=producer_epoch,
            offset=base,
            timestamp=batch["records"][0][1],
            partition_leader_epoch=batch.get("epoch", -1),
        )
    if batch.get("empty"):
        return empty_batch(
            base,
            base + batch["records"][-1][0],
            timestamp=max(record[1] for record in batch["records"]),
            producer_id=producer_id,
            producer_epoch=producer_epoch,
            base_sequence=sequence,
            is_transactional=batch.get("transactional", False),
            is_control=batch.get("control", False),
            partition_leader_epoch=batch.get("epoch", -1),
        )
    records = [_record(timestamp, *sizes) for _, timestamp, *sizes in batch["records"]]
    if KEYS & batch.keys():
        return encode_malformed(batch, records, _CODECS[batch.get("codec", "none")])
    data = build_batch(
        records,
        base_offset=base,
        magic=batch.get("magic", 2),
        codec=_CODECS[batch.get("codec", "none")],
        timestamp_type=TimestampType.CREATE_TIME if stamped is None else TimestampType.LOG_APPEND_TIME,
        log_append_time=-1 if stamped is None else stamped,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        base_sequence=max(sequence, 0) if producer_id >= 0 else sequence,
        is_transactional=batch.get("transactional", False),
        partition_leader_epoch=batch.get("epoch", -1),
        offsets=[base + record[0] for record in batch["records"]],
        max_timestamp=batch.get("max_timestamp"),
    )
    return _with_sequence(data, sequence) if producer_id >= 0 > sequence else data


def _record(timestamp: int, value: int = 0, key: int | None = None) -> SimpleRecord:
    if key is None or key >= 0:
        return SimpleRecord(timestamp, None if key is None else _content(key), _content(value))
    return SimpleRecord(timestamp, ControlRecordType(~key).record_key, _content(value))


def _content(size: int) -> bytes | None:
    if size > _LARGEST_CONTENT:
        raise ValueError(f"a key or value of {size} bytes; at most {_LARGEST_CONTENT} are possible")
    return None if size < 0 else (_PATTERN * (size // len(_PATTERN) + 1))[:size]


def _with_sequence(data: bytes, sequence: int) -> bytes:
    """Return a batch with a first sequence number that no client sends and the builders of batches reject."""
    changed = bytearray(data)
    RECORD_BATCH.set(changed, "base_sequence", sequence)
    write_checksum(changed)
    return bytes(changed)


def first_batch(data: bytes) -> tuple[int, ...] | None:
    """Return the fields of the first batch in the response to a fetch, which may be truncated; None if it is empty.

    The fields are base offset, size in bytes and CRC-32C of the bytes, then leader epoch, last offset, number of
    records and largest timestamp from the header. The last four are -1 if the batch has an older format or its header
    is truncated.
    """
    if not data:
        return None
    batch = data[: max(0, LOG_OVERHEAD + int.from_bytes(data[8:LOG_OVERHEAD], signed=True))]
    base = int.from_bytes(data[:8], signed=True)
    fields = base, len(batch), int(google_crc32c.value(batch))
    if len(batch) < RECORD_BATCH.size:
        return *fields, -1, -1, -1, -1
    _, _, epoch, magic, _, _, last, _, largest, *_, count = RECORD_BATCH.struct.unpack_from(batch)
    return (*fields, epoch, base + last, count, largest) if magic == _MAGIC else (*fields, -1, -1, -1, -1)


def producer_of(batches: Sequence[Batch]) -> int:
    """Return the producer id of the first batch, or -1 if it has none."""
    return int(batches[0].get("producer", (-1,))[0]) if batches else -1


def is_marker(batches: Iterable[Batch]) -> bool:
    """Return True if one of the batches is a marker, which a transaction coordinator writes, not a client."""
    return any("marker" in batch for batch in batches)
