"""Lock of a log directory, which a broker holds while it runs (``FileLock``, a POSIX record lock on ``.lock``)."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import struct
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

from kidx.discovery import META_PROPERTIES
from kidx.errors import ToolError
from kidx.files import regular

LOCK_FILE: Final = ".lock"

_FLOCK: Final = struct.Struct("hhqqi4x")
"""``struct flock`` of 64-bit Linux: type, whence, start, length, process id."""


def log_directories_of(partition: Path) -> set[Path]:
    """Return the log directories whose lock may protect a partition: its parent, and the parent of its link target."""
    named = bool(partition.name) and ".." not in partition.parts
    parent, real = (partition if named else partition.absolute()).parent, partition.resolve().parent
    return {parent} if parent.resolve() == real else {parent.resolve(), real}


def lock_owner(log_directory: Path) -> int | None:
    """Return the process id that holds the lock of a log directory, 0 if it is unknown, or None without a lock.

    Nothing is locked or written, so a running broker is not affected.
    """
    try:
        with regular(log_directory / LOCK_FILE) as descriptor:
            request = _FLOCK.pack(fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0)
            kind, _, _, _, process = _FLOCK.unpack(fcntl.fcntl(descriptor, fcntl.F_GETLK, request))
    except OSError:  # the file does not exist, or cannot be read
        return None
    return None if kind == fcntl.F_UNLCK else max(process, 0)


@contextlib.contextmanager
def broker_locks(directories: Iterable[Path]) -> Iterator[None]:
    """Hold the locks of log directories, so that no broker starts with them.

    A missing lock file is created in a log directory, as a broker does. Any other directory has no lock.

    Raises:
        ToolError: a broker holds a lock, or a lock file cannot be opened.
    """
    with contextlib.ExitStack() as stack:
        for directory in sorted(set(directories)):
            stack.enter_context(broker_lock(directory))
        yield


@contextlib.contextmanager
def broker_lock(log_directory: Path) -> Iterator[None]:
    """Hold the lock of one log directory, as :func:`broker_locks` does."""
    path = log_directory / LOCK_FILE
    creation = os.O_CREAT if (log_directory / META_PROPERTIES).exists() else 0
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CLOEXEC | creation, 0o644)
    except FileNotFoundError:
        yield
        return
    except OSError as error:
        raise ToolError(f"cannot open {path}: {error.strerror}") from error
    try:
        try:
            fcntl.lockf(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            if error.errno not in (errno.EACCES, errno.EAGAIN):
                raise ToolError(f"cannot lock {path}: {error.strerror}") from error
            raise ToolError(f"{log_directory} is in use: a broker holds {path}; stop it first") from error
        yield
    finally:
        os.close(descriptor)
