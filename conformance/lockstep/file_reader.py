"""Reader of the bytes of a file after every step, with as few system calls as possible.

The harness compares the bytes on disk, after every operation of every participant. Reading them with two system calls
(``fstat`` and ``pread``) takes about a microsecond.

An implementation may do anything in its directory. Whatever is at the path of a file, no read and no corruption fails:
what cannot be read is an :class:`UnreadableFile`, which differs from every file.
"""

from __future__ import annotations

import os
import shutil
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, Self

READING: Final = os.O_RDONLY | os.O_NONBLOCK
"""Flags for opening a file; without the second, a pipe would wait for a writer."""
_WRITING: Final = os.O_WRONLY | os.O_TRUNC | os.O_CREAT | os.O_NONBLOCK


class UnreadableFile(bytes):
    """Content of something that exists but cannot be read, such as a directory: the reason, as text."""

    __slots__ = ()

    @classmethod
    def of(cls, error: OSError) -> Self:
        """Return the content for an error."""
        return cls(f"cannot be read: {error.strerror or error}".encode())


class StepFileReader:
    """Reader of one file in a participant's directory. The file at the path may be replaced between two reads."""

    __slots__ = ("_descriptor", "_inode", "_moved", "_path", "_size")

    def __init__(self) -> None:
        self._path = ""
        self._descriptor = -1
        self._inode = 0
        self._moved = False
        self._size = 0

    def watch(self, path: str) -> None:
        """Read the file at ``path`` from now on, which is often the same file as before."""
        self._path = path
        self._moved = True

    def read(self) -> bytes | None:
        """Return the current content of the file, or None if it does not exist."""
        try:
            return self._read()
        except (FileNotFoundError, NotADirectoryError):
            self.release()
            return None
        except OSError as error:
            self.release()
            return UnreadableFile.of(error)

    def _read(self) -> bytes | None:
        if self._descriptor >= 0:
            if self._moved:
                status = os.stat(self._path)  # noqa: PTH116 -- executed for every step of each participant
                same = status.st_ino == self._inode
            else:
                status = os.fstat(self._descriptor)
                same = status.st_nlink > 0
            if same:
                self._moved, self._size = False, status.st_size
                return os.pread(self._descriptor, status.st_size, 0)
            # The file was deleted, or replaced by another file of that name.
            self.release()
        elif not os.access(self._path, os.F_OK):  # cheaper than an exception
            return None
        self._descriptor = os.open(self._path, READING)
        status = os.fstat(self._descriptor)
        self._inode, self._moved, self._size = status.st_ino, False, status.st_size
        return os.pread(self._descriptor, status.st_size, 0)

    def read_again(self) -> bytes | None:
        """Return the content faster than :meth:`read`, after operations that cannot have replaced the file."""
        if self._moved or self._descriptor < 0:
            return self.read()
        try:
            content = os.pread(self._descriptor, self._size + 1, 0)
        except OSError:
            return self.read()
        if len(content) > self._size:
            return self.read()
        self._size = len(content)
        return content

    def release(self) -> None:
        """Close the file."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1


def corrupt(path: Path, name: str, arguments: tuple[Any, ...]) -> None:
    """Apply a file operation to a closed file. If the file is missing, only ``write_file`` has an effect."""
    if path.exists() or name == "write_file":
        content = path.read_bytes() if path.is_file() else b""
        overwrite(str(path), corrupted(content, name, arguments))


def corrupted(content: bytes, name: str, arguments: tuple[Any, ...]) -> bytes | None:
    """Return the content of a file after a corruption by the harness, or None if the corruption removes the file.

    Positions are modulo the length of the file, so that every corruption can be applied to every file.
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
    """Replace the content of a file, or create it; if the content is None, remove the file."""
    try:
        _overwrite(path, content)
    except OSError:  # the implementation has no such file, or has something else there
        remove(path)
        with suppress(OSError):  # the next comparison finds the difference
            Path(path).parent.mkdir(parents=True, exist_ok=True)
            if content is not None:
                _overwrite(path, content)


def remove(path: str) -> None:
    """Remove whatever is at a path, if it can be removed."""
    try:
        Path(path).unlink(missing_ok=True)
    except OSError:
        shutil.rmtree(path, ignore_errors=True)


def _overwrite(path: str, content: bytes | None) -> None:
    if content is None:
        os.unlink(path)  # noqa: PTH108 -- executed for every corruption of each participant
        return
    descriptor = os.open(path, _WRITING, 0o666)
    try:
        view = memoryview(content)
        while view:
            view = view[os.write(descriptor, view) :]
    finally:
        os.close(descriptor)


def _swap(data: bytearray, first: int, second: int, width: int) -> None:
    """Exchange the entries in two slots of ``width`` bytes."""
    slots = len(data) // width
    if slots < 2:
        return
    a, b = (first % slots) * width, (second % slots) * width
    data[a : a + width], data[b : b + width] = data[b : b + width], data[a : a + width]
