"""Lz4 as it is read from 3.6 on: through a buffer of 2 KiB (``ChunkedBytesStream``), which empty blocks confuse.

An empty block fills the buffer with nothing, which passes for the end; what is asked for next comes from the block
behind it. To skip goes past the buffer to the blocks, even where the buffer has just been filled (LG-76).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Final

from kidx.records.codecs.source import Source
from kidx.records.varint import read_varint

if TYPE_CHECKING:
    from collections.abc import Iterator

_BUFFER: Final = 2048


class ChunkedSource(Source):
    """A reader over blocks, of which some are empty."""

    __slots__ = ("_at", "_block")

    is_chunked: ClassVar = True

    def __init__(self, blocks: Iterator[bytes]) -> None:
        super().__init__(blocks)
        self._block = b""
        self._at = 0

    def _take(self, size: int) -> bytes | None:
        """What is left of the block, or the next one, ``size`` bytes at most; None behind the last."""
        if self._at >= len(self._block):
            block = next(self._chunks, None)
            if block is None:
                return None
            self._block, self._at = block, 0
        piece = self._block[self._at : self._at + size]
        self._at += len(piece)
        return piece

    def _has(self, size: int) -> bool:
        """Whether the buffer has so many, after it is filled if it has none."""
        if self._position >= len(self._buffer):
            self._buffer, self._position = self._take(_BUFFER) or b"", 0
        return len(self._buffer) - self._position >= size

    def read(self, size: int) -> bytes:
        """The next ``size`` bytes, fewer at an end (``Utils.readFully``)."""
        read = b""
        while (left := size - len(read)) > 0:
            if left >= _BUFFER and self._position >= len(self._buffer):
                piece = self._take(left)  # past the buffer, where an empty block is no end
                if piece is None:
                    break
            elif not (piece := super().read(min(left, _BUFFER))):
                break
            read += piece
        return read

    def read_varint(self) -> int:
        """The next ``int``.

        Raises:
            InvalidArgumentError: it does not end within five bytes.
        """
        return read_varint(self.head(5), 0)[0]

    def skip(self, size: int) -> int:
        """Passes up to ``size`` bytes; how many there were, fewer at two empty blocks in a row too."""
        buffered = min(size, len(self._buffer) - self._position)
        self._position += buffered
        left = size - buffered
        while left:
            passed = len(self._take(left) or b"")
            if not passed:
                if not self.read(1):
                    break
                passed = 1
            left -= passed
        return size - left
