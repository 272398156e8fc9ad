"""A memory-mapped file with Java's cursor: ``java.nio.MappedByteBuffer`` as Kafka's indexes use it.

Kafka appends with relative puts, so the cursor is part of what an index *is*: where it points decides where the next
entry lands, even after an operation failed half way. The rules here are those of ``java.nio.Buffer``.
"""

from __future__ import annotations

import mmap
import os
import struct

from kidx.errors import BufferOverflowError, InvalidArgumentError, OutOfBoundsError, ReadOnlyError


class MappedBuffer:
    """The first ``length`` bytes of an open file, mapped.

    Args:
        descriptor: an open file; it may be closed once this returns.
        length: bytes to map; 0 is fine.
        writable: map read-write and shared, else read-only.
    """

    __slots__ = ("data", "limit", "position", "writable")

    def __init__(self, descriptor: int, length: int, *, writable: bool) -> None:
        access = mmap.ACCESS_WRITE if writable else mmap.ACCESS_READ
        # An empty mapping does not exist on POSIX; Java has one, and nothing can be read from it.
        self.data: mmap.mmap | bytearray = mmap.mmap(descriptor, length, access=access) if length else bytearray()
        self.limit = length
        self.position = 0
        self.writable = writable

    def seek(self, position: int) -> None:
        """Moves the cursor (``Buffer.position(int)``).

        Raises:
            InvalidArgumentError: ``position`` is not within ``0 .. limit``.
        """
        if position > self.limit:
            raise InvalidArgumentError(f"newPosition > limit: ({position} > {self.limit})")
        if position < 0:
            raise InvalidArgumentError(f"newPosition < 0: ({position} < 0)")
        self.position = position

    def put(self, codec: struct.Struct, value: int) -> None:
        """Writes one field at the cursor and moves the cursor behind it (``putInt``, ``putLong``).

        Raises:
            ReadOnlyError: the file is mapped read-only.
            BufferOverflowError: fewer bytes are left than the field needs; nothing is written.
        """
        if not self.writable:
            raise ReadOnlyError("the index is mapped read-only", None)
        position = self.position
        end = position + codec.size
        if end > self.limit:
            raise BufferOverflowError(f"{codec.size} bytes at {position} do not fit in {self.limit}", None)
        codec.pack_into(self.data, position, value)
        self.position = end

    def get(self, codec: struct.Struct, position: int) -> int:
        """Reads one field at an absolute byte position (``getInt(int)``, ``getLong(int)``).

        Raises:
            OutOfBoundsError: the field does not lie within ``0 .. limit``.
        """
        if position < 0 or position + codec.size > self.limit:
            raise OutOfBoundsError(f"{codec.size} bytes at {position} are not within 0..{self.limit}", None)
        value: int = codec.unpack_from(self.data, position)[0]
        return value

    def flush(self) -> None:
        """Writes changed pages to the file (``force()``); nothing to do for a read-only mapping."""
        if self.writable and self.limit:
            self.data.flush()  # type: ignore[union-attr]

    def close(self) -> None:
        """Unmaps the file."""
        if self.limit:
            self.data.close()  # type: ignore[union-attr]


def open_and_map(path: str | os.PathLike[str], *, writable: bool, set_length: int | None = None) -> MappedBuffer:
    """Opens a file as ``RandomAccessFile`` does, sets its length if asked to, and maps all of it.

    ``writable`` creates a missing file ("rw"); the mapping outlives the descriptor, which is closed again.

    Raises:
        OSError: the file cannot be opened, resized or mapped.
    """
    descriptor = os.open(path, (os.O_RDWR | os.O_CREAT) if writable else os.O_RDONLY, 0o666)
    try:
        if set_length is None:
            set_length = os.fstat(descriptor).st_size
        else:
            os.ftruncate(descriptor, set_length)
        return MappedBuffer(descriptor, set_length, writable=writable)
    finally:
        os.close(descriptor)
