"""Bytes of a file that others may write to or truncate: read on demand, and never mapped.

Truncating a mapped file while it is read ends the reader with SIGBUS. A follower truncates its log at any time.
"""

from __future__ import annotations

import errno
import os
from mmap import mmap
from typing import TYPE_CHECKING, Any, Final

from kidx.files import open_regular
from kidx.java_values import INT_MAX
from kidx.records.errors import TruncatedFileError

if TYPE_CHECKING:
    import struct

_WINDOW: Final = 1 << 18
"""Minimum number of bytes per read."""


def check_log_size(path: str | os.PathLike[str], size: int) -> None:
    """Reject a ``.log`` longer than a segment can be, because reading a sparse file of terabytes takes hours.

    Raises:
        OSError: the file is longer than 2**31 - 1 bytes.
    """
    if size > INT_MAX:
        raise OSError(errno.EFBIG, f"Is {size:,} bytes long, and no segment has more than {INT_MAX:,}", str(path))


class FileBytes:
    """Buffer over the first bytes of a file, as many as it had when the buffer was created.

    Args:
        file: path of the file, or an open descriptor, which may be closed once the constructor returns.
        name: file name in errors.

    Raises:
        OSError: the file cannot be opened, or a path does not name a regular file.
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
        """Return the bytes of a slice without a step.

        Raises:
            TruncatedFileError: the file has become shorter.
            OSError: the file cannot be read.
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
        """Return bytes from ``start`` up to ``end``; at least up to ``least``."""
        data = os.pread(self._descriptor, end - start, start)
        while start + len(data) < least:
            more = os.pread(self._descriptor, end - start - len(data), start + len(data))
            if not more:
                raise TruncatedFileError(
                    f"{self._name} became shorter while it was read: it ends at byte {start + len(data)} and had"
                    f" {self._size} bytes"
                )
            data += more
        return data


Buffer = bytes | bytearray | memoryview | mmap | FileBytes
"""Bytes of batches. Batches copy no bytes before they need them, so a buffer must outlive its batches."""


def unpack(codec: struct.Struct, buffer: Buffer, position: int) -> tuple[Any, ...]:
    """Return the fields at a position of a buffer, which must contain them.

    Raises:
        TruncatedFileError: the file has become shorter.
        struct.error: the buffer ends before the last field.
    """
    if isinstance(buffer, FileBytes):
        return codec.unpack(buffer[position : position + codec.size])
    return codec.unpack_from(buffer, position)
