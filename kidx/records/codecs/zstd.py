"""zstd frames (RFC 8878), one after another, as zstd-jni's ``ZstdInputStream`` reads them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import cramjam

from kidx.records.errors import RecordStreamError

if TYPE_CHECKING:
    from collections.abc import Iterator

_LEVEL: Final = 3  # Kafka's default
_FRAME: Final = b"\x28\xb5\x2f\xfd"
_MAX_BLOCK: Final = 128 * 1024
_RAW, _RLE = 0, 1
_MAX_SIZE: Final = (1 << 31) - 9
"""The most that one frame may hold, in bytes. No record is larger (Kafka 4.4's own limit for one); cramjam decompresses
a frame as a whole, so this is also what bounds memory against one that unpacks into terabytes."""


def compress(data: bytes) -> bytes:
    """One frame at level 3."""
    return bytes(cramjam.zstd.compress(data, _LEVEL))


def chunks(data: bytes) -> Iterator[bytes]:
    """The plain bytes, frame by frame. Nothing is looked at before the first read.

    Raises:
        RecordStreamError: damage, or a frame of more than 2 GiB.
    """
    position = 0
    while position < len(data):
        end, bound = _frame(data, position)
        if bound > _MAX_SIZE:
            raise RecordStreamError(f"zstd: a frame may hold {bound} bytes, more than {_MAX_SIZE}", None)
        try:
            plain = bytes(cramjam.zstd.decompress(data[position:end]))
        except cramjam.DecompressionError as error:
            raise RecordStreamError(f"zstd: {error}", None) from error
        position = end
        if plain:
            yield plain


def _frame(data: bytes, start: int) -> tuple[int, int]:
    """Where the frame at ``start`` ends, and the most bytes that it can decompress to.

    Damaged frames end where ``data`` do: the decompressor finds the words for what is wrong.
    """
    if data[start : start + 4] != _FRAME:
        skippable = data[start + 1 : start + 4] == b"\x2a\x4d\x18" and data[start] & 0xF0 == 0x50
        size = int.from_bytes(data[start + 4 : start + 8], "little")
        return (min(start + 8 + size, len(data)) if skippable else len(data)), 0
    descriptor = data[start + 4] if start + 4 < len(data) else 0
    single_segment = bool(descriptor & 0x20)
    position = start + 5 + (0 if single_segment else 1) + (0, 1, 2, 4)[descriptor & 3]
    position += (1 if single_segment else 0, 2, 4, 8)[descriptor >> 6]
    bound = 0
    while position + 3 <= len(data):
        block = int.from_bytes(data[position : position + 3], "little")
        kind, size = block >> 1 & 3, block >> 3
        position += 3 + (1 if kind == _RLE else size)
        bound += size if kind in (_RAW, _RLE) else _MAX_BLOCK
        if block & 1:
            return min(position + (4 if descriptor & 4 else 0), len(data)), bound
    return len(data), bound
