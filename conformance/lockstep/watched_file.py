"""The bytes of a file after every step, read with as few system calls as possible.

The harness compares what is on disk, not what an implementation says is there, and it does so after every operation of
every party: at two system calls (``fstat`` and ``pread``) that costs about a microsecond.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any


class WatchedFile:
    """One file of one party's directory; which one may change with ``open`` and ``rename``."""

    __slots__ = ("_descriptor", "_inode", "_moved", "_path", "_size")

    def __init__(self) -> None:
        self._path = ""
        self._descriptor = -1
        self._inode = 0
        self._moved = False
        self._size = 0

    def watch(self, path: str) -> None:
        """Looks at ``path`` from now on, which is often the same file still or again."""
        self._path = path
        self._moved = True

    def read(self) -> bytes | None:
        """Everything in the file right now; None if there is no file."""
        if self._descriptor >= 0:
            if self._moved:
                try:
                    status = os.stat(self._path)  # noqa: PTH116 -- every step of every party comes by here
                except OSError:
                    self.release()
                    return None
                same = status.st_ino == self._inode
            else:
                status = os.fstat(self._descriptor)
                same = status.st_nlink > 0
            if same:
                self._moved, self._size = False, status.st_size
                return os.pread(self._descriptor, status.st_size, 0)
            # Deleted, or replaced by another file of that name.
            self.release()
        elif not os.access(self._path, os.F_OK):  # cheaper than a refusal
            return None
        try:
            self._descriptor = os.open(self._path, os.O_RDONLY)
        except OSError:
            return None
        status = os.fstat(self._descriptor)
        self._inode, self._moved, self._size = status.st_ino, False, status.st_size
        return os.pread(self._descriptor, status.st_size, 0)

    def read_again(self) -> bytes | None:
        """As :meth:`read`, after what can have changed the file but not put another in its place: half as long."""
        if self._moved or self._descriptor < 0:
            return self.read()
        content = os.pread(self._descriptor, self._size + 1, 0)
        if len(content) > self._size:
            return self.read()
        self._size = len(content)
        return content

    def release(self) -> None:
        """Closes the file."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1


def damage(path: Path, name: str, arguments: tuple[Any, ...]) -> None:
    """Changes a closed file as :func:`damaged` says. A missing file stays missing, unless it is written as a whole."""
    if path.exists() or name == "write_file":
        content = path.read_bytes() if path.exists() else b""
        overwrite(str(path), damaged(content, name, arguments))


def damaged(content: bytes, name: str, arguments: tuple[Any, ...]) -> bytes | None:
    """What a file is after one of the operations that no implementation offers (``FILE_OPERATIONS``); None if removed.

    Positions are taken modulo its length, so that every damage applies everywhere.
    """
    if name == "write_file":
        return bytes.fromhex(arguments[0])
    if name == "remove_file":
        return None
    data = bytearray(content)
    size = len(data)
    if name == "pad_file":
        count, byte = arguments
        data += bytes([byte]) * count
    elif name == "cut_file":
        del data[min(arguments[0], size) :]
    elif size and name == "flip_bit":
        position, bit = arguments
        data[position % size] ^= 1 << bit
    elif size and name == "zero_range":
        start, end = sorted((arguments[0] % (size + 1), arguments[1] % (size + 1)))
        data[start:end] = bytes(end - start)
    elif size and name == "swap_ranges":
        first, second, width = arguments
        _swap(data, first, second, width)
    return bytes(data)


def overwrite(path: str, content: bytes | None) -> None:
    """Gives a file another content, which makes it if it is missing, or removes it."""
    if content is None:
        os.unlink(path)  # noqa: PTH108 -- every damage of every party comes by here
        return
    descriptor = os.open(path, os.O_WRONLY | os.O_TRUNC | os.O_CREAT, 0o666)
    try:
        view = memoryview(content)
        while view:
            view = view[os.write(descriptor, view) :]
    finally:
        os.close(descriptor)


def _swap(data: bytearray, first: int, second: int, width: int) -> None:
    """Exchanges the entries in two slots of ``width`` bytes."""
    slots = len(data) // width
    if slots < 2:
        return
    a, b = (first % slots) * width, (second % slots) * width
    data[a : a + width], data[b : b + width] = data[b : b + width], data[a : a + width]
