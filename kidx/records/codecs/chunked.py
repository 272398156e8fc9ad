"""Lz4 with empty blocks as 3.6 and later read it: through a buffer of 2 KiB (``ChunkedBytesStream``).

An empty block leaves the buffer empty, which looks like the end of the stream. The next read continues with the block
after it. Skipping bypasses the buffer and reads the blocks, even if the buffer has just been filled (LG-76).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Final

from kidx.records.codecs.chunk_reader import ChunkReader
from kidx.records.varint import read_varint

if TYPE_CHECKING:
    from collections.abc import Iterator

_BUFFER: Final = 2048


class ChunkedStreamReader(ChunkReader):
    """Reader over blocks, some of which are empty; ``is_chunked`` tells this reader from its base class."""

    __slots__ = ("_at", "_block")

    is_chunked: ClassVar = True

    def __init__(self, blocks: Iterator[bytes]) -> None:
        super().__init__(blocks)
        self._block = b""
        self._at = 0

    def _take(self, size: int) -> bytes | None:
        """Return up to ``size`` bytes of the rest of this block, or of the next one; None after the last block."""
        if self._at >= len(self._block):
            block = next(self._chunks, None)
            if block is None:
                return None
            self._block, self._at = block, 0
        piece = self._block[self._at : self._at + size]
        self._at += len(piece)
        return piece

    def _has(self, size: int) -> bool:
        """Return True if the buffer holds ``size`` bytes; an empty buffer is filled first."""
        if self._position >= len(self._buffer):
            self._buffer, self._position = self._take(_BUFFER) or b"", 0
        return len(self._buffer) - self._position >= size

    def read(self, size: int) -> bytes:
        """Return the next ``size`` bytes, fewer at an end (``Utils.readFully``)."""
        read = b""
        while (remaining := size - len(read)) > 0:
            if remaining >= _BUFFER and self._position >= len(self._buffer):
                piece = self._take(remaining)  # bypasses the buffer: here an empty block is not an end
                if piece is None:
                    break
            elif not (piece := super().read(min(remaining, _BUFFER))):
                break
            read += piece
        return read

    def read_varint(self) -> int:
        """Return the next ``int``.

        Raises:
            InvalidArgumentError: the number does not end within five bytes.
        """
        return read_varint(self.head(5), 0)[0]

    def skip(self, size: int) -> int:
        """Skip up to ``size`` bytes. Return how many were skipped; two empty blocks in a row end the skipping too."""
        buffered = min(size, len(self._buffer) - self._position)
        self._position += buffered
        remaining = size - buffered
        while remaining:
            skipped = len(self._take(remaining) or b"")
            if not skipped:
                if not self.read(1):
                    break
                skipped = 1
            remaining -= skipped
        return size - remaining
