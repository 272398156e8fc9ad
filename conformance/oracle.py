"""An independent judge of searches by time: it reads the batches itself and shares no code with kidx.

Over the plain list of records that a consumer may see, the answer to a timestamp is *the first record whose timestamp
is not smaller*, and the answer to "the largest timestamp" is the first record that has it. Nothing of indexes, segments
or what was remembered goes into that. Kafka does not always answer so; then :func:`disagreement` says in which way.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Final, Literal, NamedTuple

import cramjam

_HEADER: Final = struct.Struct(">qiibIhiqqqhii")
"""A batch of magic 2: offset, length, epoch, magic, checksum, attributes, last delta, base and largest timestamp, …"""
_LENGTH_COUNTS_FROM: Final = 12
_STAMPED: Final = 1 << 3
_TRANSACTIONAL: Final = 1 << 4
_CONTROL: Final = 1 << 5
_XERIAL: Final = b"\x82SNAPPY\x00"

Why = Literal[
    "newer-segment", "later-record", "deleted-record", "wrong-offset", "wrong-timestamp", "missing", "surplus"
]


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


def visible_records(directory: Path, start: int, end: int) -> list[SeenRecord]:
    """The records of a log's files with offsets from ``start`` up to ``end``, in order."""
    files = sorted(directory.glob("*.log"))
    found = [record for number, file in enumerate(files) for record in records_of(file.read_bytes(), number)]
    return [record for record in found if start <= record.offset < end]


def records_of(data: bytes, segment: int = 0) -> Iterator[SeenRecord]:
    """The records of batches of magic 2, one after another, up to the first that is incomplete or damaged."""
    for batch in _whole_batches(data):
        try:
            yield from _records_of_batch(batch, segment)
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
        _, length, *_ = _HEADER.unpack_from(data, position)
        end = position + _LENGTH_COUNTS_FROM + length
        if not position + _HEADER.size <= end <= len(data):
            return
        yield data[position:end]
        position = end


def _records_of_batch(batch: bytes, segment: int) -> list[SeenRecord]:
    """All records of a batch, or none of them and what stopped it: a consumer gets them together."""
    base, _, epoch, _, _, attributes, _, first, largest, _, _, _, count = _HEADER.unpack_from(batch)
    body = _decompressed(attributes & 7, batch[_HEADER.size :])
    found, at = [], 0
    for _ in range(count):
        size, at = _varint(body, at)
        timestamp_delta, inner = _varint(body, at + 1)
        offset_delta, _ = _varint(body, inner)
        timestamp = largest if attributes & _STAMPED else first + timestamp_delta
        found.append(SeenRecord(base + offset_delta, timestamp, epoch, segment))
        at += size
    return found


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


def first_not_before(records: Iterable[SeenRecord], timestamp: int) -> SeenRecord | None:
    """The first record whose timestamp is ``timestamp`` or later."""
    return next((record for record in records if record.timestamp >= timestamp), None)


def first_of_the_latest(records: Sequence[SeenRecord]) -> SeenRecord | None:
    """The first record with the largest timestamp; none if no record has one."""
    latest = max(records, key=lambda record: record.timestamp, default=None)
    return latest if latest is not None and latest.timestamp >= 0 else None


def disagreement(
    right: SeenRecord | None, answer: tuple[int, int, int] | None, records: Sequence[SeenRecord]
) -> Why | None:
    """In which way an answer (timestamp, offset, epoch or -1) is not the right one; None if it is, whatever its epoch.

    ``missing``: no answer, though there is a record. ``surplus``: an answer, though there is none. ``deleted-record``:
    the record answered with is not visible. ``later-record``: there is an earlier one that qualifies; ``newer-segment``
    the same, and it is in another segment. ``wrong-offset``: the timestamp is right and the offset not.
    ``wrong-timestamp``: neither.
    """
    if answer is None or answer[1] < 0:
        return None if right is None else "missing"
    timestamp, offset, _ = answer
    if right is not None and (timestamp, offset) == (right.timestamp, right.offset):
        return None
    found = _seen(answer, records)
    if not records or offset < records[0].offset or (right is None and found is None):
        return "deleted-record"
    return "surplus" if right is None else _difference(right, timestamp, found)


def _difference(right: SeenRecord, timestamp: int, found: SeenRecord | None) -> Why:
    """How an answer with another record than the right one is wrong."""
    if timestamp == right.timestamp and (found is None or found.timestamp != timestamp):
        return "wrong-offset"
    if found is not None and found.offset > right.offset:
        return "newer-segment" if found.segment != right.segment else "later-record"
    return "wrong-timestamp"


def _seen(answer: tuple[int, int, int], records: Iterable[SeenRecord]) -> SeenRecord | None:
    return next((record for record in records if record.offset == answer[1]), None)
