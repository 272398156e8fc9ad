"""zstd frames (RFC 8878), one after the other, as zstd-jni's ``ZstdInputStream`` reads them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

import cramjam
import zstandard

from kidx.records.errors import RecordStreamError

if TYPE_CHECKING:
    from collections.abc import Iterator

_LEVEL: Final = 3  # Kafka's default
_MAGIC: Final = b"\x28\xb5\x2f\xfd"
_SKIPPABLE: Final = b"\x2a\x4d\x18"  # preceded by a byte from 0x50 to 0x5F
_MAX_BLOCK: Final = 128 * 1024
_RAW, _RLE = 0, 1
_BLOCK_HEADER: Final = 3
_MAX_SIZE: Final = (1 << 31) - 9
"""Maximum plain size of a frame in bytes. No record is larger (Kafka 4.4's own limit for one)."""
_WHOLE: Final = 16 << 20
"""Maximum plain size in bytes up to which a frame is decompressed in one call, which is faster."""
_INPUT: Final = _MAX_BLOCK + _BLOCK_HEADER
"""Number of compressed bytes that ``ZstdInputStream`` reads at a time (``ZSTD_DStreamInSize``)."""
_OUTPUT: Final = 16 * 1024
"""Number of plain bytes that Kafka requests at a time."""


def compress(data: bytes) -> bytes:
    """Return one frame at level 3, streamed with unknown length and flushed before its end: its last block is empty."""
    stream = zstandard.ZstdCompressor(level=_LEVEL).compressobj()
    return stream.compress(data) + stream.flush(zstandard.COMPRESSOBJ_FLUSH_BLOCK) + stream.flush()


def chunks(data: bytes) -> Iterator[bytes]:
    """Yield the plain bytes, also of corrupt or truncated frames, as Kafka gets them.

    Raises:
        RecordStreamError: corruption, or a frame of more than 2 GiB.
    """
    position = 0
    while position < len(data):
        frame = _frame(data, position)
        if frame.bound > _MAX_SIZE:
            raise RecordStreamError(f"zstd: a frame may hold {frame.bound} bytes, more than {_MAX_SIZE}", None)
        content = data[position : frame.end]
        whole = _whole(content) if frame.ends and frame.bound <= _WHOLE else None
        if whole is not None:
            yield whole
        else:
            yield from _in_pieces(content)
        if not frame.ends and not _is_finished(position, len(data)):
            raise RecordStreamError("zstd: Truncated source", None)
        position = frame.end


def _whole(frame: bytes) -> bytes | None:
    try:
        return bytes(cramjam.zstd.decompress(frame))
    except cramjam.DecompressionError:
        return None


def _in_pieces(frame: bytes) -> Iterator[bytes]:
    """Yield as many bytes at a time as Kafka requests: corruption further on shows only after they have been read."""
    reader = zstandard.ZstdDecompressor().stream_reader(frame)
    try:
        while piece := reader.read(_OUTPUT):
            yield piece
    except zstandard.ZstdError as error:
        raise RecordStreamError(f"zstd: {error}", None) from error


def _is_finished(end: int, size: int) -> bool:
    """Return True if ``ZstdInputStream`` treats the end of the data as the end of the frame that ended at ``end``.

    It checks if a frame has ended since it last read compressed bytes.
    """
    return end > (size - 1) // _INPUT * _INPUT


class _Frame(NamedTuple):
    """Extent of a frame.

    Attributes:
        end: position after the frame; a corrupt frame ends with the data, and the decompressor reports the error.
        bound: maximum number of bytes that it can decompress to.
        ends: True if the data contain its end.
    """

    end: int
    bound: int
    ends: bool


def _frame(data: bytes, start: int) -> _Frame:
    size = len(data)
    if data[start : start + 4] != _MAGIC:
        if data[start + 1 : start + 4] != _SKIPPABLE or data[start] & 0xF0 != 0x50 or start + 8 > size:
            return _Frame(size, 0, ends=False)
        end = start + 8 + int.from_bytes(data[start + 4 : start + 8], "little")
        return _Frame(min(end, size), 0, ends=end <= size)
    descriptor = data[start + 4] if start + 4 < size else 0
    single_segment = descriptor >> 5 & 1
    position = start + 6 - single_segment + (0, 1, 2, 4)[descriptor & 3] + (single_segment, 2, 4, 8)[descriptor >> 6]
    bound = 0
    while position + _BLOCK_HEADER <= size:
        block = int.from_bytes(data[position : position + _BLOCK_HEADER], "little")
        kind, length = block >> 1 & 3, block >> 3
        bound += length if kind in (_RAW, _RLE) else _MAX_BLOCK
        position += _BLOCK_HEADER + (1 if kind == _RLE else length)
        if block & 1:
            end = position + (descriptor & 4)
            return _Frame(min(end, size), bound, ends=end <= size)
    return _Frame(size, bound, ends=False)
