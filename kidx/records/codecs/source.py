"""Decompressed bytes, produced as they are asked for.

Kafka decompresses while it reads records, so a batch whose first record is wrong fails for that reason and not for a
damaged checksum behind it; and a record that claims two gigabytes costs only what is really there.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Final

from kidx.records.varint import read_varint

if TYPE_CHECKING:
    from collections.abc import Iterator

_NO_BYTE: Final = b"\xff"


class Source:
    """A forward-only reader over chunks of bytes. Whatever the chunks raise goes through."""

    __slots__ = ("_buffer", "_chunks", "_position")

    is_chunked: ClassVar = False
    """It has empty blocks, so that records have to be read as Kafka reads them; it is short then."""

    def __init__(self, chunks: Iterator[bytes]) -> None:
        self._chunks = chunks
        self._buffer = b""
        self._position = 0

    def _has(self, size: int) -> bool:
        """Whether ``size`` more bytes are there, after decompressing as much as that takes."""
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
        """The next ``size`` bytes, fewer only at the end."""
        self._has(size)
        piece = self._buffer[self._position : self._position + size]
        self._position += len(piece)
        return piece

    def skip(self, size: int) -> int:
        """Passes the next ``size`` bytes without holding them; how many there were, fewer only at the end."""
        left = size
        while left:
            have = min(left, len(self._buffer) - self._position)
            self._position += have
            left -= have
            if left and not self._has(1):
                break
        return size - left

    def at_end(self) -> bool:
        """Whether no byte is left."""
        return not self._has(1)

    def head(self, longest: int) -> bytes:
        """The next bytes up to the end of a number, ``longest`` at most; a byte of -1 for each that is missing."""
        head = b""
        while len(head) < longest:
            head += self.read(1) or _NO_BYTE
            if head[-1] < 0x80:
                break
        return head

    def read_varint(self) -> int:
        """The next ``int``.

        Raises:
            InvalidArgumentError: it does not end within five bytes.
            EOFError: the stream ends inside it.
        """
        if len(self._buffer) - self._position >= 5:
            value, self._position = read_varint(self._buffer, self._position)
            return value
        # Near the end of a chunk, byte by byte, so that no chunk is decompressed before it is needed.
        head = bytearray()
        while len(head) < 5:
            byte = self.read(1)
            if not byte:
                raise EOFError
            head += byte
            if head[-1] < 0x80:
                break
        return read_varint(head, 0)[0]
