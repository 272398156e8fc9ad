"""The LZ4 frame format, read by the rules of ``Lz4BlockInputStream.java`` (``KafkaLZ4BlockInputStream`` up to 3.7).

Kafka reads one frame, with independent blocks only. It checks block checksums, and ignores the content checksum and
everything after the end mark. Producers of v0 messages computed the header checksum over the magic number too, so in v0
it is written that way and not checked (KAFKA-3160).
"""

from __future__ import annotations

import struct
from itertools import takewhile
from typing import TYPE_CHECKING, Final

import cramjam

from kidx.records.errors import RecordStreamError, StreamUnderflowError

if TYPE_CHECKING:
    from collections.abc import Iterator

_MAGIC: Final = 0x184D2204
_HEADER: Final = struct.Struct("<IBB")  # magic, FLG, BD
_SIZE: Final = struct.Struct("<I")
_UNCOMPRESSED: Final = 0x8000_0000  # flag in a block's size: the block is stored uncompressed
ONE_BYTE: Final = _SIZE.pack(1)
"""Size field of an empty block: a compressed block of one byte."""
_FLAGS: Final = 0x60  # flags that Kafka writes: version 1, independent blocks, no checksums, no content size
_BLOCK_64K: Final = 4
_CONTENT_CHECKSUM, _CONTENT_SIZE, _BLOCK_CHECKSUM, _INDEPENDENT = 0x04, 0x08, 0x10, 0x20


def xxh32(data: bytes) -> int:
    """Return the XXH32 of ``data`` with seed 0; plain Python suffices: the input is nearly always two bytes.

    Kafka writes no block checksums.
    """
    p1, p2, p3, p4, p5 = 0x9E3779B1, 0x85EBCA77, 0xC2B2AE3D, 0x27D4EB2F, 0x165667B1
    mask = 0xFFFF_FFFF

    def rotate(value: int, bits: int) -> int:
        value &= mask
        return (value << bits | value >> (32 - bits)) & mask

    position = 0
    if len(data) >= 16:
        lanes = [p1 + p2, p2, 0, -p1]
        while position + 16 <= len(data):
            words = struct.unpack_from("<4I", data, position)
            lanes = [rotate(lane + word * p2, 13) * p1 for lane, word in zip(lanes, words, strict=True)]
            position += 16
        value = sum(rotate(lane, bits) for lane, bits in zip(lanes, (1, 7, 12, 18), strict=True))
    else:
        value = p5
    value += len(data)
    while position + 4 <= len(data):
        value = rotate(value + _SIZE.unpack_from(data, position)[0] * p3, 17) * p4
        position += 4
    for byte in data[position:]:
        value = rotate(value + byte * p5, 11) * p1
    value &= mask
    value = (value ^ value >> 15) * p2 & mask
    value = (value ^ value >> 13) * p3 & mask
    return value ^ value >> 16


def _header(block_size_id: int, *, broken: bool = False) -> bytes:
    header = _HEADER.pack(_MAGIC, _FLAGS, block_size_id << 4)
    return header + bytes((xxh32(header if broken else header[4:]) >> 8 & 0xFF,))


_HEADERS: Final = {block_size_id: _header(block_size_id) for block_size_id in range(4, 8)}


def compress(data: bytes, *, broken_header: bool = False) -> bytes:
    """Return a frame of independent 64 KiB blocks without checksums; ``broken_header`` as producers of v0 write it."""
    out = [_header(_BLOCK_64K, broken=broken_header)]
    for start in range(0, len(data), 1 << 16):
        plain = data[start : start + (1 << 16)]
        block = bytes(cramjam.lz4.compress_block(plain, store_size=False))
        if len(block) >= len(plain):
            out += (_SIZE.pack(len(plain) | _UNCOMPRESSED), plain)
        else:
            out += (_SIZE.pack(len(block)), block)
    out.append(_SIZE.pack(0))
    return b"".join(out)


def chunks(data: bytes, *, check_header: bool = True, read_on: bool = True) -> Iterator[bytes]:
    """Yield the plain bytes, block by block.

    Args:
        read_on: True to continue after an empty block, False to stop there (LG-74).

    Raises:
        RecordStreamError: immediately for a bad frame header, later for corruption further on.
    """
    if len(data) < _HEADER.size:
        raise RecordStreamError("lz4: Stream ended prematurely", None)
    magic, flags, block_descriptor = _HEADER.unpack_from(data)
    if magic != _MAGIC:
        raise RecordStreamError("lz4: Stream unsupported (invalid magic bytes)", None)
    if flags & 0x03:
        raise RecordStreamError("lz4: Reserved bits must be 0", None)
    if not flags & _INDEPENDENT:
        raise RecordStreamError("lz4: Dependent block stream is unsupported", None)
    if flags >> 6 != 1:
        raise RecordStreamError(f"lz4: Version {flags >> 6} is unsupported", None)
    block_size_id = block_descriptor >> 4 & 7
    if block_descriptor & 0x8F or block_size_id < _BLOCK_64K:
        raise RecordStreamError(f"lz4: invalid block descriptor {block_descriptor:#04x}", None)
    position = _HEADER.size + (8 if flags & _CONTENT_SIZE else 0)
    if position >= len(data):
        raise RecordStreamError("lz4: Stream ended prematurely", None)
    if check_header and data[position] != xxh32(data[4:position]) >> 8 & 0xFF:
        raise RecordStreamError("lz4: Stream frame descriptor corrupted", None)
    blocks = _blocks(data, position + 1, flags, block_size_id)
    return blocks if read_on else takewhile(bool, blocks)


def _blocks(data: bytes, position: int, flags: int, block_size_id: int) -> Iterator[bytes]:
    max_block_size = 1 << (2 * block_size_id + 8)
    while True:
        if position + _SIZE.size > len(data):
            raise RecordStreamError("lz4: Stream ended prematurely", None)
        (size,) = _SIZE.unpack_from(data, position)
        position += _SIZE.size
        stored = bool(size & _UNCOMPRESSED)
        size &= ~_UNCOMPRESSED
        if size == 0:
            if flags & _CONTENT_CHECKSUM and position + _SIZE.size > len(data):
                raise StreamUnderflowError("lz4: no bytes left for the content checksum")
            return
        if size > max_block_size:
            raise RecordStreamError(f"lz4: Block size {size} exceeded max: {max_block_size}", None)
        block = data[position : position + size]
        if len(block) < size:
            raise RecordStreamError("lz4: Stream ended prematurely", None)
        plain = block if stored else _decompress(block, block_size_id)
        position += size
        if flags & _BLOCK_CHECKSUM:
            _check(block, data[position : position + _SIZE.size])
            position += _SIZE.size
        yield plain


def _check(block: bytes, checksum: bytes) -> None:
    if len(checksum) < _SIZE.size:
        raise StreamUnderflowError("lz4: no bytes left for a block's checksum")
    if checksum != _SIZE.pack(xxh32(block)):
        raise RecordStreamError("lz4: Block checksum mismatch", None)


def _decompress(block: bytes, block_size_id: int) -> bytes:
    # cramjam's functions for bare blocks need the plain size, which Kafka does not store. A frame of one block needs no
    # size, and cramjam rejects a block that exceeds the maximum.
    frame = b"".join((_HEADERS[block_size_id], _SIZE.pack(len(block)), block, b"\x00\x00\x00\x00"))
    try:
        return bytes(cramjam.lz4.decompress(frame))
    except cramjam.DecompressionError as error:
        raise RecordStreamError(f"lz4: {error}", None) from error
