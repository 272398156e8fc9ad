"""A memory-mapped file with Java's cursor: ``java.nio.MappedByteBuffer`` as Kafka's indexes use it.

Kafka appends with relative puts, so the cursor is part of what an index *is*: where it points decides where the next
entry lands, even after an operation failed half way. The rules here are those of ``java.nio.Buffer``.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import mmap
import os
import struct
from typing import Final

from kidx.errors import BufferOverflowError, InvalidArgumentError, OutOfBoundsError, ReadOnlyError
from kidx.files import FileChangedError, pieces_with_data
from kidx.java_numbers import INT_MAX

_INT: Final = ctypes.c_int32.__ctype_be__
_INTS: Final = ctypes.POINTER(_INT)


def _copy(descriptor: int, length: int, name: str) -> mmap.mmap:
    """Copies the file: if another process cut it, reading a mapping of it would kill this one. Zeros take no memory.

    Raises:
        FileChangedError: it became shorter.
    """
    data = mmap.mmap(-1, length)
    for position, piece in pieces_with_data(descriptor, length):
        data[position : position + len(piece)] = piece
    if os.fstat(descriptor).st_size < length:
        raise FileChangedError(errno.EIO, "Became shorter while it was read", name)
    return data


class MappedBuffer:
    """The first ``length`` bytes of an open file, mapped; or, to be read only, as they are now.

    Args:
        descriptor: an open file; it may be closed once this returns.
        length: bytes to map; 0 is fine.
        writable: map read-write and shared, else read a copy.
        name: what errors call the file; may be changed when the file moves.

    Raises:
        InvalidArgumentError: more than 2**31 - 1 bytes, which Java cannot map at once.
        OSError: the file cannot be mapped.

    Attributes:
        data: the mapping.
        ints: the same as big-endian ``int32`` after ``int32``, for the one loop in which reading each with ``struct``
            takes too long. A C pointer without a bounds check: compare with ``limit`` first.
    """

    __slots__ = ("data", "ints", "limit", "name", "position", "writable")

    def __init__(self, descriptor: int, length: int, *, writable: bool, name: str) -> None:
        if length > INT_MAX:
            raise InvalidArgumentError(
                f"{name}: {length} bytes are more than the {INT_MAX} that can be mapped",
                "Size exceeds Integer.MAX_VALUE",
            )
        # An empty mapping does not exist on POSIX; Java has one, and nothing can be read from it.
        self.data: mmap.mmap | bytearray = bytearray()
        if length:
            self.data = mmap.mmap(descriptor, length) if writable else _copy(descriptor, length, name)
        self.ints = ctypes.pointer(_INT.from_buffer(self.data)) if length >= ctypes.sizeof(_INT) else _INTS()
        self.limit = length
        self.position = 0
        self.writable = writable
        self.name = name

    def seek(self, position: int) -> None:
        """Moves the cursor (``Buffer.position(int)``).

        Raises:
            InvalidArgumentError: ``position`` is not within ``0 .. limit``.
        """
        if position > self.limit:
            raise self._no_position(position, f"newPosition > limit: ({position} > {self.limit})")
        if position < 0:
            raise self._no_position(position, f"newPosition < 0: ({position} < 0)")
        self.position = position

    def _no_position(self, position: int, kafka_message: str) -> InvalidArgumentError:
        return InvalidArgumentError(f"{self.name}: position {position} is not within 0..{self.limit}", kafka_message)

    def put(self, codec: struct.Struct, value: int) -> None:
        """Writes one field at the cursor and moves the cursor behind it (``putInt``, ``putLong``).

        Raises:
            ReadOnlyError: the file is mapped read-only.
            BufferOverflowError: fewer bytes are left than the field needs; nothing is written.
            InvalidArgumentError: the field cannot hold the value (Java's types rule that out); the cursor stays.
        """
        if not self.writable:
            raise ReadOnlyError(f"{self.name} is mapped read-only; {value} cannot be written", None)
        position = self.position
        end = position + codec.size
        if end > self.limit:
            raise BufferOverflowError(
                f"{self.name}: {value} takes {codec.size} bytes at {position} and does not fit in {self.limit}", None
            )
        try:
            codec.pack_into(self.data, position, value)
        except struct.error:
            raise InvalidArgumentError(f"{self.name}: {value} is not a signed number of {codec.size} bytes") from None
        self.position = end

    def put_entry(self, codecs: tuple[struct.Struct, ...], whole: struct.Struct, *values: int) -> None:
        """Writes the fields of an entry one after the other, as :meth:`put` does; in one go if nothing can go wrong.

        Args:
            codecs: of the fields.
            whole: of all of them together.
            values: of the fields; each is known to fit.
        """
        position = self.position
        end = position + whole.size
        if self.writable and end <= self.limit:
            whole.pack_into(self.data, position, *values)
            self.position = end
            return
        for codec, value in zip(codecs, values, strict=True):
            self.put(codec, value)

    def get(self, codec: struct.Struct, position: int) -> int:
        """Reads one field at an absolute byte position (``getInt(int)``, ``getLong(int)``).

        Raises:
            OutOfBoundsError: the field does not lie within ``0 .. limit``.
        """
        value: int = self.get_entry(codec, position)[0]
        return value

    def get_entry(self, whole: struct.Struct, position: int) -> tuple[int, ...]:
        """Reads all fields of an entry at an absolute byte position.

        Raises:
            OutOfBoundsError: the entry does not lie within ``0 .. limit``.
        """
        if position < 0 or position + whole.size > self.limit:
            raise OutOfBoundsError(
                f"{self.name}: {whole.size} bytes at {position} are not within 0..{self.limit}", None
            )
        return whole.unpack_from(self.data, position)

    def flush(self) -> None:
        """Writes changed pages to the file (``force()``); nothing to do for a read-only mapping."""
        if self.writable and self.limit:
            self.data.flush()  # type: ignore[union-attr]

    def close(self) -> None:
        """Unmaps the file; where another thread still looks something up in it, once that has an answer."""
        self.ints = _INTS()
        if self.limit:
            with contextlib.suppress(BufferError):
                self.data.close()  # type: ignore[union-attr]
