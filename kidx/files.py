"""Safe opening of files: the name of a file says nothing about its type, size or lifetime.

A FIFO with the name of a checkpoint blocks the process that opens it. A sparse file of terabytes takes no disk space.
A mapped file that is truncated kills the process that reads it. So kidx uses this module to open every file that it has
not written, and maps none of them.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
import uuid
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

Signature = tuple[tuple[int, int, int] | None, ...]
"""Size, time of the last change and inode of some files; None for a missing file."""

CHUNK: Final = 1 << 20
"""Bytes per read when a whole file is read."""

TEXT_LIMIT: Final = 64 << 20
"""Maximum size of a checkpoint in bytes: more than a million lines."""


NO_SPACE: Final = frozenset({errno.ENOSPC, errno.EDQUOT})
"""Error numbers of a full disk and of an exhausted quota."""


def signature_of(paths: Iterable[Path]) -> Signature:
    """Return a value that changes whenever one of the files changes."""
    return tuple(map(_signature, paths))


def _signature(path: Path) -> tuple[int, int, int] | None:
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_size, status.st_mtime_ns, status.st_ino


class FileChangedError(OSError):
    """A file became shorter while it was read."""


def open_regular(path: str | os.PathLike[str]) -> int:
    """Return a read-only descriptor of a regular file, or of a link to one.

    Raises:
        OSError: the file cannot be opened, or is a directory, FIFO, socket or device.
    """
    _check_regular(Path(path).stat().st_mode, path)  # opening a device can have effects
    # O_NONBLOCK: a FIFO that has replaced the file since the check must not block, either.
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    try:
        _check_regular(os.fstat(descriptor).st_mode, path)
    except OSError:
        os.close(descriptor)
        raise
    return descriptor


def _check_regular(mode: int, path: str | os.PathLike[str]) -> None:
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), os.fspath(path))
    if not stat.S_ISREG(mode):
        kinds = ((stat.S_ISFIFO, "FIFO"), (stat.S_ISSOCK, "socket"))
        kind = next((name for test, name in kinds if test(mode)), "device")
        raise OSError(errno.EINVAL, f"Is a {kind}, not a regular file", os.fspath(path))


@contextlib.contextmanager
def regular(path: str | os.PathLike[str]) -> Iterator[int]:
    """Open a file as :func:`open_regular` does, and close it at the end."""
    descriptor = open_regular(path)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def read_range(path: str | os.PathLike[str], position: int, size: int) -> bytes:
    """Return up to ``size`` bytes of a regular file from byte ``position``.

    Raises:
        OSError: the file cannot be read, or is not a regular file.
    """
    with regular(path) as descriptor:
        return os.pread(descriptor, size, position)


def read_small(path: str | os.PathLike[str], *, limit: int) -> bytes:
    """Return all bytes of a small file.

    Args:
        limit: maximum size in bytes.

    Raises:
        OSError: the file cannot be read, is not a regular file, or is larger than ``limit``.
    """
    with regular(path) as descriptor:
        data = _read_all(descriptor, limit + 1)
    if len(data) > limit:
        raise OSError(errno.EFBIG, f"Is larger than {limit} bytes", os.fspath(path))
    return data


def read_text(path: str | os.PathLike[str], *, limit: int = TEXT_LIMIT, errors: str = "strict") -> str:
    """Return the text of a small file in UTF-8.

    Args:
        limit: maximum size in bytes.
        errors: error handler of ``bytes.decode``.

    Raises:
        OSError: the file cannot be read, is not a regular file, is larger than ``limit``, or is not UTF-8.
    """
    data = read_small(path, limit=limit)
    try:
        return data.decode("utf-8", errors)
    except UnicodeDecodeError as error:
        raise OSError(
            errno.EILSEQ, f"Holds byte {data[error.start]:#04x} at {error.start}, which is not UTF-8", os.fspath(path)
        ) from error


def _read_all(descriptor: int, limit: int) -> bytes:
    parts, left = [], limit
    while left and (data := os.read(descriptor, min(CHUNK, left))):
        parts.append(data)
        left -= len(data)
    return b"".join(parts)


def pieces_with_data(descriptor: int, size: int, start: int = 0) -> Iterator[tuple[int, bytes]]:
    """Yield position and bytes of the pieces of a file that are not all zeros, each of at most :data:`CHUNK` bytes.

    The pieces are in order, from byte ``start`` on. Holes of a sparse file are not read if the system reports them.
    Zeros at the end of a piece are omitted.

    Raises:
        OSError: the file cannot be read.
    """
    position = start
    while position < size and (position := _next_data(descriptor, position, size)) < size:
        data = os.pread(descriptor, min(CHUNK, size - position), position)
        if not data:
            return
        if used := data.rstrip(b"\0"):
            yield position, used
        position += len(data)


def _next_data(descriptor: int, position: int, size: int) -> int:
    """Return the end of the hole at ``position``; outside a hole, or if holes cannot be found, ``position`` itself."""
    if not hasattr(os, "SEEK_DATA"):
        return position
    try:
        return os.lseek(descriptor, position, os.SEEK_DATA)
    except OSError as error:
        return size if error.errno == errno.ENXIO else position


def unlink(path: str | os.PathLike[str]) -> bool:
    """Delete a file. Return True if it existed."""
    try:
        os.unlink(path)  # noqa: PTH108 -- creating a Path per call is measurable in a run of a million steps
    except FileNotFoundError:
        return False
    return True


@contextlib.contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Yield the name of a new file in the directory of ``path``, which replaces ``path`` in one step at the end.

    If the block raises, the new file is removed.

    Raises:
        OSError: the new file cannot replace ``path``.
    """
    target = Path(path)
    partial = target.with_name(f".{target.name[:40]}.{uuid.uuid4().hex}.partial")
    try:
        yield partial
        partial.replace(target)
    finally:
        partial.unlink(missing_ok=True)


def sync(path: Path) -> None:
    """Write a file, or the entries of a directory, to the disk.

    Raises:
        OSError: it cannot be opened or written.
    """
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
