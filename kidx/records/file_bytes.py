"""The bytes of a file that others may be writing to or cutting: read as they are asked for, and never mapped.

A mapped file that is cut while it is read ends the process with SIGBUS. A follower truncates its log at any time.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, Final

from kidx.files import open_regular
from kidx.records.errors import FileCutError

if TYPE_CHECKING:
    import struct
from mmap import mmap

_WINDOW: Final = 1 << 18
"""Bytes that are read at once, if no more are asked for."""


class FileBytes:
    """A buffer of the first bytes of a file, as many as it had when this was made.

    Args:
        file: a path; or an open descriptor, which may be closed once this returns.
        name: what errors call the file.

    Raises:
        OSError: the file cannot be opened, or, given by its path, is no regular one.
    """

    __slots__ = ("_descriptor", "_name", "_size", "_start", "_window")

    def __init__(self, file: str | os.PathLike[str] | int, name: str) -> None:
        self._descriptor = -1
        self._descriptor = os.dup(file) if isinstance(file, int) else open_regular(file)
        self._size = os.fstat(self._descriptor).st_size
        self._name = name
        self._start, self._window = 0, b""

    def __del__(self) -> None:
        if self._descriptor >= 0:
            os.close(self._descriptor)

    def __len__(self) -> int:
        return self._size

    def __getitem__(self, where: slice) -> bytes:
        """The bytes of a slice without a step.

        Raises:
            FileCutError: the file has become shorter.
            OSError: it cannot be read.
        """
        start, end, _ = where.indices(self._size)
        if end <= start:
            return b""
        at = start - self._start
        if at < 0 or end - self._start > len(self._window):
            data = self._read(start, max(end, min(start + _WINDOW, self._size)), end)
            if end - start >= _WINDOW:
                return data
            self._start, self._window, at = start, data, 0
        return self._window[at : at + end - start]

    def _read(self, start: int, end: int, least: int) -> bytes:
        """Bytes from ``start`` to ``end``, up to ``least`` at any rate."""
        data = os.pread(self._descriptor, end - start, start)
        while start + len(data) < least:
            more = os.pread(self._descriptor, end - start - len(data), start + len(data))
            if not more:
                raise FileCutError(
                    f"{self._name} became shorter while it was read: it ends at byte {start + len(data)} and had"
                    f" {self._size} bytes"
                )
            data += more
        return data


Buffer = bytes | bytearray | memoryview | mmap | FileBytes
"""What batches are read from. Nothing is copied before it is asked for, so the buffer must outlive its batches."""


def unpack(codec: struct.Struct, buffer: Buffer, position: int) -> tuple[Any, ...]:
    """The fields at a position of a buffer, which must have them.

    Raises:
        FileCutError: the file has become shorter.
        struct.error: the buffer ends first.
    """
    if isinstance(buffer, FileBytes):
        return codec.unpack(buffer[position : position + codec.size])
    return codec.unpack_from(buffer, position)
