"""Decoder of batches and records as a consumer reads them. It shares no code with kidx, because it tests kidx."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator
from functools import lru_cache
from typing import Final, NamedTuple

import cramjam

_HEADER: Final = struct.Struct(">qiibIhiqqqhii")
"""Header of a batch of magic 2: offset, length, epoch, magic, checksum, attributes, last delta, two timestamps, …"""
_MAGIC: Final = 2
_LENGTH_COUNTS_FROM: Final = 12
"""Position in a batch from which its length field counts."""
# Bits of the attributes of a batch.
_LOG_APPEND_TIME: Final = 1 << 3
_TRANSACTIONAL: Final = 1 << 4
_CONTROL: Final = 1 << 5
_SMALL: Final = 1 << 12
"""Maximum size in bytes of a batch whose records are cached."""
_XERIAL: Final = b"\x82SNAPPY\x00"
"""First bytes of the framing that Kafka's Java client adds to snappy."""


class ConsumerRecord(NamedTuple):
    """Record as a consumer reads it; ``segment`` numbers the log's files, ``epoch`` is the batch's leader epoch."""

    offset: int
    timestamp: int
    epoch: int
    segment: int


class ConsumerBatch(NamedTuple):
    """Offsets of a batch, both inclusive, its producer id, and whether it is a transaction marker."""

    first_offset: int
    last_offset: int
    producer: int
    is_transactional: bool
    is_marker: bool


def records_of(data: bytes, segment: int = 0) -> Iterator[ConsumerRecord]:
    """Yield the records of batches of magic 2, in order, up to the first incomplete or corrupt batch.

    Batches of the old formats are skipped.
    """
    for batch in _complete_batches(data):
        try:
            read = _cached_records_of_batch if len(batch) <= _SMALL else _records_of_batch
            yield from read(batch, segment)
        except (cramjam.DecompressionError, zlib.error, struct.error, IndexError):
            return


def batches_of(data: bytes) -> Iterator[ConsumerBatch]:
    """Yield the batches of magic 2, in order, up to the first incomplete one."""
    for batch in _complete_batches(data):
        base, _, _, _, _, attributes, last_delta, _, _, producer, *_ = _HEADER.unpack_from(batch)
        is_transactional, is_marker = bool(attributes & _TRANSACTIONAL), bool(attributes & _CONTROL)
        yield ConsumerBatch(base, base + last_delta, producer, is_transactional, is_marker)


def _complete_batches(data: bytes) -> Iterator[bytes]:
    position = 0
    while position + _HEADER.size <= len(data):
        _, length, _, magic, *_ = _HEADER.unpack_from(data, position)
        end = position + _LENGTH_COUNTS_FROM + length
        if not position + _HEADER.size <= end <= len(data):
            return
        if magic == _MAGIC:
            yield data[position:end]
        position = end


def _records_of_batch(batch: bytes, segment: int) -> list[ConsumerRecord]:
    """Return all records of a batch; raise an error if one is corrupt, as a consumer accepts only whole batches."""
    base, _, epoch, _, _, attributes, _, first, largest, _, _, _, count = _HEADER.unpack_from(batch)
    body = _decompressed(attributes & 7, batch[_HEADER.size :])
    found, at = [], 0
    for _ in range(count):
        size, at = _varint(body, at)
        if size < 0:
            raise IndexError("a record has a negative size")
        timestamp_delta, inner = _varint(body, at + 1)
        offset_delta, _ = _varint(body, inner)
        timestamp = largest if attributes & _LOG_APPEND_TIME else first + timestamp_delta
        found.append(ConsumerRecord(base + offset_delta, timestamp, epoch, segment))
        at += size
    return found


_cached_records_of_batch = lru_cache(maxsize=1024)(_records_of_batch)
"""Decoder with a cache: a log is checked after every step, and most of its batches have not changed since."""


def _varint(data: bytes, at: int) -> tuple[int, int]:
    """Return the zigzag varint at a position, and the position after it."""
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return (value >> 1) ^ -(value & 1), at
        shift += 7


def _decompressed(codec: int, data: bytes) -> bytes:
    if codec == 0:
        return data
    if codec == 1:
        return zlib.decompress(data, wbits=31)
    if codec == 2:
        return _snappy(data)
    return bytes((cramjam.lz4 if codec == 3 else cramjam.zstd).decompress(data))


def _snappy(data: bytes) -> bytes:
    """Decompress snappy; Kafka's framing is a header of 16 bytes, then blocks that each follow their length."""
    if not data.startswith(_XERIAL):
        return bytes(cramjam.snappy.decompress_raw(data))
    at, blocks = 16, []
    while at < len(data):
        (size,) = struct.unpack_from(">i", data, at)
        blocks.append(bytes(cramjam.snappy.decompress_raw(data[at + 4 : at + 4 + size])))
        at += 4 + size
    return b"".join(blocks)
