"""Memory-mapped file with Java's cursor: ``java.nio.MappedByteBuffer`` as Kafka's indexes use it.

Kafka appends with relative puts, so the cursor is part of the state of an index: its position decides where the next
entry is written, even after an operation that failed half way. The rules here are the rules of ``java.nio.Buffer``.
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
from kidx.java_values import INT_MAX

_INT: Final = ctypes.c_int32.__ctype_be__
_INTS: Final = ctypes.POINTER(_INT)


def _copy(descriptor: int, length: int, name: str) -> mmap.mmap:
    """Return a copy of the file in anonymous memory; ranges of zeros take no memory.

    A mapping would be unsafe: if another process truncates the file, reading the mapping kills this process.

    Raises:
        FileChangedError: the file became shorter.
    """
    data = mmap.mmap(-1, length)
    for position, piece in pieces_with_data(descriptor, length):
        data[position : position + len(piece)] = piece
    if os.fstat(descriptor).st_size < length:
        raise FileChangedError(errno.EIO, "Became shorter while it was read", name)
    return data


class MappedBuffer:
    """The first ``length`` bytes of an open file: mapped read-write, or copied to be read.

    Args:
        descriptor: an open file; it may be closed once the constructor returns.
        length: bytes to map; 0 is allowed.
        writable: True to map the file read-write and shared, False to read a copy.
        name: file name in error messages; may be changed when the file moves.

    Raises:
        InvalidArgumentError: more than 2**31 - 1 bytes, which Java cannot map in one piece.
        OSError: the file cannot be mapped.

    Attributes:
        data: the mapping, or the copy.
        ints: the same bytes as an array of big-endian ``int32``, for the search in an ``.index``, where ``struct`` is
            too slow. It is a C pointer without a bounds check: compare with ``limit`` first.
        limit: the number of bytes.
        position: the cursor: the byte position at which ``put`` writes.
    """

    __slots__ = ("data", "ints", "limit", "name", "position", "writable")

    def __init__(self, descriptor: int, length: int, *, writable: bool, name: str) -> None:
        if length > INT_MAX:
            raise InvalidArgumentError(
                f"{name}: {length} bytes are more than the {INT_MAX} that can be mapped",
                "Size exceeds Integer.MAX_VALUE",
            )
        # POSIX cannot map 0 bytes; Java has an empty mapping, from which nothing can be read.
        self.data: mmap.mmap | bytearray = bytearray()
        if length:
            self.data = mmap.mmap(descriptor, length) if writable else _copy(descriptor, length, name)
        self.ints = ctypes.pointer(_INT.from_buffer(self.data)) if length >= ctypes.sizeof(_INT) else _INTS()
        self.limit = length
        self.position = 0
        self.writable = writable
        self.name = name

    def seek(self, position: int) -> None:
        """Move the cursor (``Buffer.position(int)``).

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
        """Write one field at the cursor and move the cursor past it (``putInt``, ``putLong``).

        Raises:
            ReadOnlyError: the file is mapped read-only.
            BufferOverflowError: fewer bytes remain than the field needs; nothing is written.
            InvalidArgumentError: the field cannot hold the value (Java's types rule that out); the cursor does not
                move.
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
        """Write the fields of an entry one after the other, as :meth:`put` does; in one call if nothing can fail.

        Args:
            codecs: one codec per field.
            whole: the codec of all fields together.
            values: one value per field; each is known to fit.
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
        """Return the field at an absolute byte position (``getInt(int)``, ``getLong(int)``).

        Raises:
            OutOfBoundsError: the field does not lie within ``0 .. limit``.
        """
        value: int = self.get_entry(codec, position)[0]
        return value

    def get_entry(self, whole: struct.Struct, position: int) -> tuple[int, ...]:
        """Return all fields of the entry at an absolute byte position.

        Raises:
            OutOfBoundsError: the entry does not lie within ``0 .. limit``.
        """
        if position < 0 or position + whole.size > self.limit:
            raise OutOfBoundsError(
                f"{self.name}: {whole.size} bytes at {position} are not within 0..{self.limit}", None
            )
        return whole.unpack_from(self.data, position)

    def flush(self) -> None:
        """Write changed pages to the file (``force()``); without effect on a read-only mapping."""
        if self.writable and self.limit:
            self.data.flush()  # type: ignore[union-attr]

    def close(self) -> None:
        """Unmap the file; while another thread still searches in it, the unmapping waits until that search returns."""
        self.ints = _INTS()
        if self.limit:
            with contextlib.suppress(BufferError):
                self.data.close()  # type: ignore[union-attr]
