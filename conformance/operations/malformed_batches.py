"""Malformed batches: headers, record bytes or checksums that no builder produces.

These keys of a batch (:mod:`conformance.operations.batches`) make it malformed::

    {"records": [[0, 1000], [0, 900]], "header": {"record_count": 3, "attributes": 7}, "crc": false,
     "plain": [["set", 0, 200], ["cut", 2]], "payload": [["add", 3]]}

``header`` sets fields of :mod:`kidx.layout`; in an old format, fields of the first message. ``plain`` changes
the bytes of the records before they are compressed. ``payload`` changes the bytes after the header, which may be
compressed. A change is ``set``, which sets the byte at a position (modulo the length), ``cut``, which removes bytes
from the end, or ``add``, which appends zeros. Lengths and checksums are then recomputed, unless ``header`` sets them.
``crc`` false makes the checksum wrong.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from kidx.layout import LOG_OVERHEAD, MESSAGE_V0, MESSAGE_V1, RECORD_BATCH
from kidx.records import Codec, SimpleRecord, write_batch, write_message
from kidx.records.builder import write_checksum
from kidx.records.codecs import compress
from kidx.records.record import write_record

if TYPE_CHECKING:
    from kidx.layout import Layout

KEYS: Final = frozenset({"header", "plain", "payload", "crc"})
"""The keys that make a batch malformed."""

_FROM_LIBRARIES: Final = frozenset({"zstd", "snappy", "lz4"})
"""The codecs whose corrupt streams releases handle differently (LG-64)."""

_MOST: Final = 1 << 16
"""The maximum number of bytes that one change may add."""


def is_corrupt_stream(batch: Mapping[str, Any]) -> bool:
    """Return True if the compressed bytes are corrupt and their codec's library decides the result."""
    return "payload" in batch and batch.get("codec") in _FROM_LIBRARIES


def changed(data: bytes, changes: Sequence[Sequence[Any]]) -> bytes:
    """Return the bytes after a list of changes (``set``, ``cut`` or ``add``)."""
    out = bytearray(data)
    for how, *numbers in changes:
        if how == "cut":
            del out[max(0, len(out) - numbers[0]) :]
        elif how == "add":
            out += bytes(min(numbers[0], _MOST))
        elif out:
            out[numbers[0] % len(out)] = numbers[1] % 256
    return bytes(out)


def encode_malformed(batch: Mapping[str, Any], records: Sequence[SimpleRecord], codec: Codec) -> bytes:
    """Return the bytes of a malformed batch.

    Args:
        batch: The batch, as the module describes it.
    """
    magic = batch.get("magic", 2)
    data = _batch(batch, records, codec) if magic >= 2 else _messages(batch, records, codec, magic)
    layout = RECORD_BATCH if magic >= 2 else MESSAGE_V1 if magic else MESSAGE_V0
    return _with_header(data, batch, layout)


def _batch(batch: Mapping[str, Any], records: Sequence[SimpleRecord], codec: Codec) -> bytes:
    base = batch.get("base", 0)
    first = max(-1, records[0].timestamp)
    plain = b"".join(
        write_record(offset, record.timestamp - first, record)
        for (offset, *_), record in zip(batch["records"], records, strict=True)
    )
    producer_id, producer_epoch, sequence = batch.get("producer", (-1, -1, -1))
    return write_batch(
        changed(compress(codec, changed(plain, batch.get("plain", ()))), batch.get("payload", ())),
        base_offset=base,
        last_offset=base + batch["records"][-1][0],
        count=len(records),
        codec=codec,
        base_timestamp=first,
        max_timestamp=max(record.timestamp for record in records),
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        base_sequence=sequence,
        is_transactional=batch.get("transactional", False),
        partition_leader_epoch=batch.get("epoch", -1),
    )


def _messages(batch: Mapping[str, Any], records: Sequence[SimpleRecord], codec: Codec, magic: int) -> bytes:
    base = batch.get("base", 0)
    relative_to = 0 if magic and codec is not Codec.NONE else base
    plain = b"".join(
        write_message(relative_to + offset, magic, record.timestamp, record.key, record.value)
        for (offset, *_), record in zip(batch["records"], records, strict=True)
    )
    if codec is Codec.NONE:
        return plain
    value = changed(compress(codec, changed(plain, batch.get("plain", ())), magic), batch.get("payload", ()))
    latest = max(record.timestamp for record in records)
    return write_message(base + batch["records"][-1][0], magic, latest, None, value, codec=codec)


def _with_header(data: bytes, batch: Mapping[str, Any], layout: Layout) -> bytes:
    """Return the bytes after the fields of ``header`` are set in the first header, with a new checksum."""
    out = bytearray(data)
    end = LOG_OVERHEAD + int.from_bytes(out[8:LOG_OVERHEAD])
    fields = batch.get("header", {})
    for name, value in fields.items():
        layout.set(out, name, value)
    if "crc" not in fields:
        write_checksum(out, end=end, layout=layout)
        if not batch.get("crc", True):
            at = layout.field("crc").offset
            layout.set(out, "crc", ~int.from_bytes(out[at : at + 4]))
    return bytes(out)
