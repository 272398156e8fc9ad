"""Batches and records as a consumer sees them, read from their bytes: it shares no code with kidx, which it judges."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator
from functools import lru_cache
from typing import Final, NamedTuple

import cramjam

_HEADER: Final = struct.Struct(">qiibIhiqqqhii")
"""A batch of magic 2: offset, length, epoch, magic, checksum, attributes, last delta, base and largest timestamp, …"""
_MAGIC: Final = 2
_LENGTH_COUNTS_FROM: Final = 12
_STAMPED: Final = 1 << 3
_TRANSACTIONAL: Final = 1 << 4
_CONTROL: Final = 1 << 5
_SMALL: Final = 1 << 12
_XERIAL: Final = b"\x82SNAPPY\x00"


class SeenRecord(NamedTuple):
    """A record as a consumer sees it; ``segment`` is the number of its file, ``epoch`` that of its batch."""

    offset: int
    timestamp: int
    epoch: int
    segment: int


class SeenBatch(NamedTuple):
    """What a batch says of its producer; both offsets are inclusive."""

    first_offset: int
    last_offset: int
    producer: int
    is_transactional: bool
    is_marker: bool


def records_of(data: bytes, segment: int = 0) -> Iterator[SeenRecord]:
    """The records of batches of magic 2, one after another, up to the first that is incomplete or damaged.

    Batches of the old formats are left out.
    """
    for batch in _whole_batches(data):
        try:
            read = _kept_records_of_batch if len(batch) <= _SMALL else _records_of_batch
            yield from read(batch, segment)
        except (cramjam.DecompressionError, zlib.error, struct.error, IndexError):
            return


def batches_of(data: bytes) -> Iterator[SeenBatch]:
    """The batches of magic 2, one after another, up to the first that is incomplete."""
    for batch in _whole_batches(data):
        base, _, _, _, _, attributes, last_delta, _, _, producer, *_ = _HEADER.unpack_from(batch)
        is_transactional, is_marker = bool(attributes & _TRANSACTIONAL), bool(attributes & _CONTROL)
        yield SeenBatch(base, base + last_delta, producer, is_transactional, is_marker)


def _whole_batches(data: bytes) -> Iterator[bytes]:
    position = 0
    while position + _HEADER.size <= len(data):
        _, length, _, magic, *_ = _HEADER.unpack_from(data, position)
        end = position + _LENGTH_COUNTS_FROM + length
        if not position + _HEADER.size <= end <= len(data):
            return
        if magic == _MAGIC:
            yield data[position:end]
        position = end


def _records_of_batch(batch: bytes, segment: int) -> list[SeenRecord]:
    """All records of a batch, or none of them and what stopped it: a consumer gets them together."""
    base, _, epoch, _, _, attributes, _, first, largest, _, _, _, count = _HEADER.unpack_from(batch)
    body = _decompressed(attributes & 7, batch[_HEADER.size :])
    found, at = [], 0
    for _ in range(count):
        size, at = _varint(body, at)
        if size < 0:
            raise IndexError("a record of negative size")
        timestamp_delta, inner = _varint(body, at + 1)
        offset_delta, _ = _varint(body, inner)
        timestamp = largest if attributes & _STAMPED else first + timestamp_delta
        found.append(SeenRecord(base + offset_delta, timestamp, epoch, segment))
        at += size
    return found


_kept_records_of_batch = lru_cache(maxsize=1024)(_records_of_batch)
"""A log is judged after every step, and most of its batches are those of the step before."""


def _varint(data: bytes, at: int) -> tuple[int, int]:
    """A zigzag number of seven bits a byte, and where the next one begins."""
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
    """Blocks with their lengths before them, after a header of 16 bytes."""
    if not data.startswith(_XERIAL):
        return bytes(cramjam.snappy.decompress_raw(data))
    at, blocks = 16, []
    while at < len(data):
        (size,) = struct.unpack_from(">i", data, at)
        blocks.append(bytes(cramjam.snappy.decompress_raw(data[at + 4 : at + 4 + size])))
        at += 4 + size
    return b"".join(blocks)
