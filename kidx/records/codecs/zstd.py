"""zstd frames (RFC 8878), one after another, as zstd-jni's ``ZstdInputStream`` reads them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

import cramjam
import zstandard

from kidx.records.codecs.source import PartOfBlock
from kidx.records.errors import RecordStreamError

if TYPE_CHECKING:
    from collections.abc import Iterator

_LEVEL: Final = 3  # Kafka's default
_FRAME: Final = b"\x28\xb5\x2f\xfd"
_MAX_BLOCK: Final = 128 * 1024
_RAW, _RLE, _RESERVED = 0, 1, 3
_BLOCK_HEADER: Final = 3
_LAST_BLOCK: Final = b"\x01\x00\x00"  # raw and empty
_LEAST_WINDOW: Final = 10  # bits
_RESERVED_OR_DICTIONARY: Final = 0x0B  # bits of the descriptor that are refused here
_MAX_SIZE: Final = (1 << 31) - 9
"""The most that one frame may hold, in bytes. No record is larger (Kafka 4.4's own limit for one)."""
_WHOLE: Final = 16 << 20
"""Bytes up to which a frame is decompressed at once, which is quicker."""
_INPUT: Final = 512
"""Bytes of a larger frame that are decompressed at a time: no more than 128 blocks of 128 KiB begin in them."""


def compress(data: bytes) -> bytes:
    """One frame at level 3, as a stream of unknown length that is flushed before it ends: its last block is empty."""
    stream = zstandard.ZstdCompressor(level=_LEVEL).compressobj()
    return stream.compress(data) + stream.flush(zstandard.COMPRESSOBJ_FLUSH_BLOCK) + stream.flush()


def chunks(data: bytes) -> Iterator[bytes]:
    """The plain bytes, frame by frame; of one that is cut, those of its blocks. Nothing is read before the first.

    Raises:
        RecordStreamError: damage, or a frame of more than 2 GiB.
    """
    position = 0
    while position < len(data):
        frame = _frame(data, position)
        if frame.bound > _MAX_SIZE:
            raise RecordStreamError(f"zstd: a frame may hold {frame.bound} bytes, more than {_MAX_SIZE}", None)
        if frame.bound > _WHOLE:
            yield from _in_pieces(data, position, frame.end)
            position = frame.end
            continue
        try:
            plain = bytes(cramjam.zstd.decompress(data[position : frame.end]))
        except cramjam.DecompressionError as error:
            yield from _plain_of_cut(data, frame)
            raise RecordStreamError(f"zstd: {error}", None) from error
        position = frame.end
        if plain:
            yield plain


def _in_pieces(data: bytes, start: int, end: int) -> Iterator[bytes]:
    """The plain bytes of a frame, as many at a time as a little of it makes."""
    stream = zstandard.ZstdDecompressor().decompressobj()
    try:
        for position in range(start, end, _INPUT):
            if plain := stream.decompress(data[position : min(position + _INPUT, end)]):
                yield plain
    except zstandard.ZstdError as error:
        raise RecordStreamError(f"zstd: {error}", None) from error
    if not stream.eof:
        raise RecordStreamError("zstd: incomplete frame", None)


class _Frame(NamedTuple):
    """Where a frame lies.

    Attributes:
        blocks: position of its first block.
        complete: position behind its last complete block.
        end: behind all of it; a damaged one ends with the data: the decompressor finds the words for what is wrong.
        bound: the most bytes that it can decompress to.
        is_cut: nothing is wrong with it, except that the data end before a last block has been seen.
    """

    blocks: int
    complete: int
    end: int
    bound: int
    is_cut: bool


def _frame(data: bytes, start: int) -> _Frame:
    if data[start : start + 4] != _FRAME:
        skippable = data[start + 1 : start + 4] == b"\x2a\x4d\x18" and data[start] & 0xF0 == 0x50
        size = int.from_bytes(data[start + 4 : start + 8], "little")
        end = min(start + 8 + size, len(data)) if skippable else len(data)
        return _Frame(end, end, end, 0, is_cut=False)
    descriptor = data[start + 4] if start + 4 < len(data) else 0
    single_segment = bool(descriptor & 0x20)
    position = start + 5 + (0 if single_segment else 1) + (0, 1, 2, 4)[descriptor & 3]
    position += (1 if single_segment else 0, 2, 4, 8)[descriptor >> 6]
    blocks = position
    bound = 0
    while position + _BLOCK_HEADER <= len(data):
        block = int.from_bytes(data[position : position + _BLOCK_HEADER], "little")
        kind, size = block >> 1 & 3, block >> 3
        end = position + _BLOCK_HEADER + (1 if kind == _RLE else size)
        bound += size if kind in (_RAW, _RLE) else _MAX_BLOCK
        if end > len(data):
            largest = _MAX_BLOCK
            if single_segment:
                width = (1, 2, 4, 8)[descriptor >> 6]
                content = int.from_bytes(data[blocks - width : blocks], "little") + (256 if width == 2 else 0)
                largest = min(largest, content)
            could_be = kind != _RESERVED and size <= largest and not descriptor & _RESERVED_OR_DICTIONARY
            return _Frame(blocks, position, len(data), bound, is_cut=could_be)
        position = end
        if block & 1:
            end = min(position + (4 if descriptor & 4 else 0), len(data))
            return _Frame(blocks, position, end, bound, is_cut=False)
    return _Frame(blocks, min(position, len(data)), len(data), bound, is_cut=True)


def _plain_of_cut(data: bytes, frame: _Frame) -> Iterator[bytes]:
    """What a decompressor has given before it asks for more of a frame that is cut."""
    if not frame.is_cut:
        return
    window = (max(frame.bound.bit_length(), _LEAST_WINDOW) - _LEAST_WINDOW) << 3
    whole = _FRAME + bytes((0, window)) + data[frame.blocks : frame.complete] + _LAST_BLOCK
    try:
        yield bytes(cramjam.zstd.decompress(whole))
    except cramjam.DecompressionError:
        return
    rest = data[frame.complete : frame.end]
    if len(rest) > _BLOCK_HEADER and rest[0] >> 1 & 3 == _RAW:  # bytes as they are come out as far as they go
        yield PartOfBlock(rest[_BLOCK_HEADER:])
