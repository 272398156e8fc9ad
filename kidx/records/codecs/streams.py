"""Readers of decompressed bytes, which are produced on demand."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Final

from kidx.records.varint import read_varint

if TYPE_CHECKING:
    from collections.abc import Iterator

_NO_BYTE: Final = b"\xff"
_BUFFER: Final = 2048


class ChunkReader:
    """Forward-only reader over chunks of bytes. Exceptions that the chunks raise propagate."""

    __slots__ = ("_buffer", "_chunks", "_position")

    is_chunked: ClassVar = False
    """True if the stream has empty blocks. Each read must then request as many bytes as Kafka requests."""

    def __init__(self, chunks: Iterator[bytes]) -> None:
        self._chunks = chunks
        self._buffer = b""
        self._position = 0

    def _has(self, size: int) -> bool:
        """Return True if ``size`` more bytes are available; decompress as far as necessary."""
        have = len(self._buffer) - self._position
        if have >= size:
            return True
        pieces = [self._buffer[self._position :]]
        try:
            while have < size:
                chunk = next(self._chunks, None)
                if chunk is None:
                    break
                pieces.append(chunk)
                have += len(chunk)
        finally:
            self._buffer = b"".join(pieces)
            self._position = 0
        return have >= size

    def read(self, size: int) -> bytes:
        """Return the next ``size`` bytes, fewer only at the end."""
        self._has(size)
        piece = self._buffer[self._position : self._position + size]
        self._position += len(piece)
        return piece

    def skip(self, size: int) -> int:
        """Skip the next ``size`` bytes without storing them. Return how many were skipped, fewer only at the end."""
        remaining = size
        while remaining:
            have = min(remaining, len(self._buffer) - self._position)
            self._position += have
            remaining -= have
            if remaining and not self._has(1):
                break
        return size - remaining

    def at_end(self) -> bool:
        """Return True if no byte remains."""
        return not self._has(1)

    def head(self, longest: int) -> bytes:
        """Return the bytes up to the end of a number, at most ``longest``; a missing byte reads as -1."""
        head = b""
        while len(head) < longest:
            head += self.read(1) or _NO_BYTE
            if head[-1] < 0x80:
                break
        return head

    def read_varint(self) -> int:
        """Return the next ``int``.

        Raises:
            InvalidArgumentError: the number does not end within five bytes.
            EOFError: the stream ends inside the number.
        """
        if len(self._buffer) - self._position >= 5:
            value, self._position = read_varint(self._buffer, self._position)
            return value
        # Near the end of a chunk it reads byte by byte, so that no chunk is decompressed before it is needed.
        head = bytearray()
        while len(head) < 5:
            byte = self.read(1)
            if not byte:
                raise EOFError
            head += byte
            if head[-1] < 0x80:
                break
        return read_varint(head, 0)[0]


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
