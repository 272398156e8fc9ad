"""snappy in the framing of snappy-java's ``SnappyOutputStream``, and unframed; ``SnappyInputStream`` reads both.

A 16-byte header (8 bytes of magic, version, compatible version), then blocks of up to 32 KiB, each after its compressed
size as a big-endian ``int``. A stream that does not start with the magic is one plain snappy block.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Final

import cramjam

from kidx.records.errors import RecordStreamError

if TYPE_CHECKING:
    from collections.abc import Iterator

_MAGIC: Final = b"\x82SNAPPY\x00"
_VERSIONS: Final = struct.Struct(">ii")  # version, oldest compatible version
_HEADER_SIZE: Final = len(_MAGIC) + _VERSIONS.size
_SIZE: Final = struct.Struct(">i")
_NEXT_HEADER: Final = _SIZE.unpack(_MAGIC[:4])[0]  # at the position of a block size: another stream follows
_BLOCK: Final = 32 * 1024
_MAX_BLOCK: Final = 512 * 1024 * 1024
_READ_AHEAD: Final = 2 * 1024
"""Number of plain bytes that Kafka requests at a time. ``SnappyInputStream`` returns only once it has them all, so

corruption shows up to this many bytes early.
"""
_MAX_RATIO: Final = 64
"""No element of snappy's format expands one byte to more than 64, so a block that claims more is corrupt."""


def compress(data: bytes) -> bytes:
    """Return a header, then ``data`` in blocks of 32 KiB."""
    out = [_MAGIC, _VERSIONS.pack(1, 1)]
    for start in range(0, len(data), _BLOCK):
        block = bytes(cramjam.snappy.compress_raw(data[start : start + _BLOCK]))
        out += (_SIZE.pack(len(block)), block)
    return b"".join(out)


def chunks(data: bytes) -> Iterator[bytes]:
    """Yield the plain bytes, block by block.

    Raises:
        RecordStreamError: immediately if ``data`` is empty or a corrupt plain block, later for corruption further on.
    """
    if not data:
        raise RecordStreamError("snappy: Cannot decompress empty stream", None)
    if len(data) < _HEADER_SIZE or not data.startswith(_MAGIC):
        return iter((_block(data),))
    return _read_ahead(_blocks(data))


def _read_ahead(blocks: Iterator[bytes]) -> Iterator[bytes]:
    pending = b""
    for block in blocks:
        pending += block
        ready = len(pending) - len(pending) % _READ_AHEAD
        if ready:
            yield pending[:ready]
            pending = pending[ready:]
    if pending:
        yield pending


def _blocks(data: bytes) -> Iterator[bytes]:
    position = _HEADER_SIZE  # the versions in the first header are ignored
    while position + _SIZE.size <= len(data):  # up to three stray bytes are ignored
        (size,) = _SIZE.unpack_from(data, position)
        if size == _NEXT_HEADER:
            header = data[position : position + _HEADER_SIZE]
            if len(header) < _HEADER_SIZE:
                raise RecordStreamError("snappy: Insufficient header size in a concatenated block", None)
            if not header.startswith(_MAGIC):
                return
            if _VERSIONS.unpack_from(header, len(_MAGIC))[0] < 1:
                raise RecordStreamError("snappy: compressed with an incompatible codec version", None)
            position += _HEADER_SIZE
            continue
        position += _SIZE.size
        if not 0 <= size <= _MAX_BLOCK:
            # A java.lang.Error, which Kafka does not catch.
            raise RecordStreamError(f"snappy: chunkSize is too big or negative : {size}")
        if position + size > len(data):
            raise RecordStreamError("snappy: failed to read chunk", None)
        yield _block(data[position : position + size])
        position += size


def _block(block: bytes) -> bytes:
    try:
        if cramjam.snappy.decompress_raw_len(block) > _MAX_RATIO * len(block):
            raise RecordStreamError("snappy: the block claims more bytes than it can hold", None)
        return bytes(cramjam.snappy.decompress_raw(block))
    except cramjam.DecompressionError as error:
        raise RecordStreamError(f"snappy: {error}", None) from error
