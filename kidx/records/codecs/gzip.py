"""gzip, read by the rules of ``java.util.zip.GZIPInputStream`` (RFC 1952).

The standard library's zlib and not cramjam: it inflates in steps, so memory stays bounded, and it leaves the header and
the trailer to us, whose rules in Java are laxer than zlib's.
"""

from __future__ import annotations

import struct
import zlib
from typing import TYPE_CHECKING, Final

from kidx.records.errors import RecordStreamError, StreamCutError

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator

_MAGIC: Final = b"\x1f\x8b\x08"  # then flags, 4 bytes of time, extra flags, operating system
_HEADER_SIZE: Final = 10
_TRAILER: Final = struct.Struct("<II")  # CRC-32 and length, modulo 2**32, of the plain bytes
_HEADER_CRC, _EXTRA, _NAME, _COMMENT = 0x02, 0x04, 0x08, 0x10
_CHUNK: Final = 64 * 1024

_INPUT_BUFFER: Final = 8 * 1024
"""Bytes that Kafka's GZIPInputStream reads at a time."""

_LEAST_NEXT_MEMBER: Final = 18
"""More than this must be left behind a trailer for Java to look for another member, if all is in its input buffer."""


def compress(data: bytes) -> bytes:
    """One member, level 6, without name and time; the header is that of Java 16 and later."""
    deflate = zlib.compressobj(6, zlib.DEFLATED, -zlib.MAX_WBITS)
    return b"".join((
        _MAGIC + b"\x00\x00\x00\x00\x00\x00\xff",
        deflate.compress(data),
        deflate.flush(),
        _TRAILER.pack(zlib.crc32(data), len(data) & 0xFFFF_FFFF),
    ))  # fmt: skip


def chunks(data: bytes) -> Iterator[bytes]:
    """The plain bytes of all members, in pieces of at most 64 KiB.

    Raises:
        RecordStreamError: at once for a bad header of the first member, later for damage further on.
    """
    return _members(data, _skip_header(data, 0))


def _members(data: bytes, start: int) -> Iterator[bytes]:
    position = window = start
    while True:
        end = yield from _member(data, position)
        # Java asks what its input buffer still holds, or whether there is more behind it, and takes a bad header for
        # the end. (Up to 3.5 ByteBufferInputStream never says that there is more.)
        while window < end:
            window += _INPUT_BUFFER
        if window >= len(data) and len(data) - end <= _TRAILER.size + _LEAST_NEXT_MEMBER:
            return
        try:
            position = _skip_header(data, end + _TRAILER.size)
        except RecordStreamError:
            return
        window = max(window, position)


def _member(data: bytes, start: int) -> Generator[bytes, None, int]:
    """Give the plain bytes of the member whose deflate data begin at ``start``; return where they end."""
    inflate = zlib.decompressobj(-zlib.MAX_WBITS)
    checksum = size = 0
    pending = b""
    fed = start
    while not inflate.eof:
        if not pending:  # a little at a time: what zlib does not take yet is copied for every piece
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
            raise StreamCutError("gzip: Unexpected end of ZLIB input stream", None)
    end = fed - len(inflate.unused_data)
    trailer = data[end : end + _TRAILER.size]
    expected = _TRAILER.pack(checksum, size & 0xFFFF_FFFF)
    for field in (slice(0, 4), slice(4, 8)):  # a wrong checksum is told before a length that is cut off
        if len(trailer) < field.stop:
            raise StreamCutError("gzip: the stream ends inside its trailer", None)
        if trailer[field] != expected[field]:
            raise RecordStreamError("gzip: Corrupt GZIP trailer", None)
    return end


def _skip_header(data: bytes, start: int) -> int:
    """Where the deflate data behind the header at ``start`` begin."""
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
