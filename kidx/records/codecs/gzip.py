"""gzip, read by the rules of ``java.util.zip.GZIPInputStream`` (RFC 1952).

The module uses the standard library's zlib, not cramjam. zlib inflates in steps, so memory remains bounded. It leaves
header and trailer to this module, because Java's rules for them are laxer than zlib's rules.
"""

from __future__ import annotations

import struct
import zlib
from typing import TYPE_CHECKING, Final

from kidx.records.errors import RecordStreamError, TruncatedStreamError

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator

_MAGIC: Final = b"\x1f\x8b\x08"  # followed by flags, 4 bytes of time, extra flags, operating system
_HEADER_SIZE: Final = 10
_TRAILER: Final = struct.Struct("<II")  # CRC-32 and length, modulo 2**32, of the plain bytes
_HEADER_CRC, _EXTRA, _NAME, _COMMENT = 0x02, 0x04, 0x08, 0x10
_CHUNK: Final = 64 * 1024

_INPUT_BUFFER: Final = 8 * 1024
"""Number of bytes that Kafka's GZIPInputStream reads at a time."""

_MIN_NEXT_MEMBER: Final = 18
"""Java looks for another member only if more bytes than this follow a trailer in its input buffer."""


def compress(data: bytes) -> bytes:
    """Return one member, level 6, without name and time; its header is as written by Java 16 and later."""
    deflate = zlib.compressobj(6, zlib.DEFLATED, -zlib.MAX_WBITS)
    return b"".join((
        _MAGIC + b"\x00\x00\x00\x00\x00\x00\xff",
        deflate.compress(data),
        deflate.flush(),
        _TRAILER.pack(zlib.crc32(data), len(data) & 0xFFFF_FFFF),
    ))  # fmt: skip


def chunks(data: bytes) -> Iterator[bytes]:
    """Yield the plain bytes of all members, in chunks of at most 64 KiB.

    Raises:
        RecordStreamError: immediately for a bad header of the first member, later for corruption further on.
    """
    return _members(data, _skip_header(data, 0))


def _members(data: bytes, start: int) -> Iterator[bytes]:
    position = window = start
    while True:
        end = yield from _member(data, position)
        # Java checks if its input buffer holds more bytes or if more follow it, and treats a bad header as the end. (Up
        # to 3.5 ByteBufferInputStream never reports that more bytes follow.)
        while window < end:
            window += _INPUT_BUFFER
        if window >= len(data) and len(data) - end <= _TRAILER.size + _MIN_NEXT_MEMBER:
            return
        try:
            position = _skip_header(data, end + _TRAILER.size)
        except RecordStreamError:
            return
        window = max(window, position)


def _member(data: bytes, start: int) -> Generator[bytes, None, int]:
    """Yield the plain bytes of the member whose deflate data start at ``start``; return the position after them."""
    inflate = zlib.decompressobj(-zlib.MAX_WBITS)
    checksum = size = 0
    pending = b""
    fed = start
    while not inflate.eof:
        if not pending:  # in small pieces, because the input that zlib has not consumed is copied on every call
            pending = data[fed : fed + _CHUNK]
            fed += len(pending)
        try:
            piece = inflate.decompress(pending, _CHUNK)
        except zlib.error as error:
            raise RecordStreamError(f"gzip: {error}", None) from error
        pending = inflate.unconsumed_tail
        checksum = zlib.crc32(piece, checksum)
        size += len(piece)
        if piece:
            yield piece
        elif not pending and not inflate.eof and fed == len(data):
            raise TruncatedStreamError("gzip: Unexpected end of ZLIB input stream", None)
    end = fed - len(inflate.unused_data)
    trailer = data[end : end + _TRAILER.size]
    expected = _TRAILER.pack(checksum, size & 0xFFFF_FFFF)
    for field in (slice(0, 4), slice(4, 8)):  # a wrong checksum is reported before a truncated length
        if len(trailer) < field.stop:
            raise TruncatedStreamError("gzip: the stream ends inside its trailer", None)
        if trailer[field] != expected[field]:
            raise RecordStreamError("gzip: Corrupt GZIP trailer", None)
    return end


def _skip_header(data: bytes, start: int) -> int:
    """Return the position of the deflate data after the header at ``start``."""
    end = start + _HEADER_SIZE
    if data[start : start + 2] != _MAGIC[:2]:
        raise RecordStreamError("gzip: Not in GZIP format", None)
    if data[start + 2 : start + 3] != _MAGIC[2:]:
        raise RecordStreamError("gzip: Unsupported compression method", None)
    if end > len(data):
        raise RecordStreamError("gzip: the stream ends inside its header", None)
    flags = data[start + 3]
    if flags & _EXTRA:
        end += 2 + int.from_bytes(data[end : end + 2], "little")
    for flag in (_NAME, _COMMENT):
        if flags & flag:
            end = data.find(b"\x00", end) + 1 or len(data) + 1
    if flags & _HEADER_CRC:
        stored = int.from_bytes(data[end : end + 2], "little")
        if end + 2 <= len(data) and stored != zlib.crc32(data[start:end]) & 0xFFFF:
            raise RecordStreamError("gzip: Corrupt GZIP header", None)
        end += 2
    if end > len(data):
        raise RecordStreamError("gzip: the stream ends inside its header", None)
    return end
