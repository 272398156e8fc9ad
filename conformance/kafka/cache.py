"""Where jars live on this machine, and how we know that they are the locked ones.

The directory is ``KIDX_CACHE`` if set, else the user's cache directory for ``kidx``. Below it::

    jars/<Maven layout>/kafka-clients-3.9.2.jar            shared by every release that names it
    jars/<Maven layout>/kafka-clients-3.9.2.jar.verified   "<sha256> <size> <mtime_ns>" of that file
    partial/<random>/                                      downloads in progress
    fetch.lock                                             held by the process that downloads

A class path has some fifty jars and hashing them takes a second, so it is done once: the ``.verified``
file records size and modification time of the bytes that were hashed, and while both still hold the jar
is taken as it is (about 1 ms for a whole class path). That finds an interrupted copy or a replaced jar,
not a forged time stamp in the user's own cache directory.

Nothing is ever written in place: a jar and its ``.verified`` file are completed elsewhere in the cache
and renamed, so a process that dies leaves nothing half-written under ``jars/``.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import hashlib
import os
import shutil
import time
import uuid
from pathlib import Path
from typing import TYPE_CHECKING

from platformdirs import user_cache_path

from conformance.errors import CacheError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from conformance.kafka.releases import Jar

# Another process that downloads is waited for this long, in seconds. After that we download as well:
# it may be a stopped process, and renaming is safe whichever comes first.
LOCK_PATIENCE = 600.0
# Leftovers of killed processes are removed when they are this old, in seconds.
PARTIAL_AGE = 3600.0


def cache_directory() -> Path:
    """Return the cache directory, which need not exist."""
    chosen = os.environ.get("KIDX_CACHE")
    return Path(chosen).expanduser().absolute() if chosen else user_cache_path("kidx")


def sha256_of(path: Path) -> str:
    """Return the SHA-256 of a file in hex."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def cache_error(error: OSError, cache: Path) -> CacheError:
    """Say in one line why the cache cannot be written."""
    if error.errno in {errno.ENOSPC, errno.EDQUOT}:
        return CacheError(f"no space left in the cache {cache}: free some, or set KIDX_CACHE to another directory")
    if error.errno in {errno.ENOTDIR, errno.EEXIST}:
        return CacheError(f"the cache {cache} is not a directory, or lies below a file: set KIDX_CACHE to a directory")
    if error.errno in {errno.EACCES, errno.EPERM, errno.EROFS}:
        return CacheError(f"the cache {cache} is not writable: set KIDX_CACHE to a directory that is")
    return CacheError(f"cannot write to the cache {cache}: {error.strerror or error}")


class Cache:
    """The jars of one cache directory."""

    def __init__(self, directory: Path | None = None) -> None:
        self.directory = directory or cache_directory()

    def path(self, jar: Jar) -> Path:
        """Return where a jar is or will be."""
        return self.directory / "jars" / jar.path

    def has(self, jar: Jar) -> bool:
        """Tell whether a jar is there and known to be the locked one; hash it if that is not on record."""
        path = self.path(jar)
        try:
            status = path.stat()
            if status.st_size != jar.size:
                return False
            mark = f"{jar.sha256} {status.st_size} {status.st_mtime_ns}"
            with contextlib.suppress(OSError):
                if _mark_of(path).read_text("ascii") == mark:
                    return True
            if sha256_of(path) != jar.sha256:
                return False
        except OSError:
            return False
        # In a read-only cache the mark cannot be written: then every start hashes again, and that is all.
        with contextlib.suppress(OSError):
            self._write_mark(path, mark)
        return True

    def keep(self, jar: Jar, complete: Path) -> Path:
        """Move a complete and verified file into place; return its path there.

        Raises:
            OSError: the cache cannot be written.
        """
        path = self.path(jar)
        path.parent.mkdir(parents=True, exist_ok=True)
        status = complete.stat()
        complete.replace(path)
        # Between the two renames an old mark may stand beside the new jar: it names another time stamp.
        self._write_mark(path, f"{jar.sha256} {status.st_size} {status.st_mtime_ns}")
        return path

    @contextlib.contextmanager
    def partial(self) -> Iterator[Path]:
        """Give a private directory on the cache's own file system, and remove it in the end.

        Raises:
            OSError: the cache cannot be written.
        """
        directory = self.directory / "partial" / uuid.uuid4().hex
        directory.mkdir(parents=True)
        try:
            yield directory
        finally:
            shutil.rmtree(directory, ignore_errors=True)

    @contextlib.contextmanager
    def locked(self, patience: float = LOCK_PATIENCE) -> Iterator[None]:
        """Keep other processes from downloading the same jars at the same time.

        A courtesy, not a guard: after ``patience`` seconds, or where the file system has no locks, the
        body runs anyway. The kernel releases the lock of a process that dies.

        Raises:
            OSError: the cache cannot be written.
        """
        self.directory.mkdir(parents=True, exist_ok=True)
        with (self.directory / "fetch.lock").open("ab") as file:
            deadline = time.monotonic() + patience
            while True:
                try:
                    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    self._sweep()
                except BlockingIOError:
                    if time.monotonic() < deadline:
                        time.sleep(0.05)
                        continue
                except OSError:
                    pass  # no locks on this file system
                break
            yield

    def _write_mark(self, path: Path, mark: str) -> None:
        temporary = path.with_name(f".{path.name}.{uuid.uuid4().hex}")
        try:
            temporary.write_text(mark, "ascii")
            temporary.replace(_mark_of(path))
        finally:
            temporary.unlink(missing_ok=True)

    def _sweep(self) -> None:
        """Remove what killed processes left behind."""
        for leftover in (self.directory / "partial").glob("*"):
            with contextlib.suppress(OSError):
                if time.time() - leftover.stat().st_mtime > PARTIAL_AGE:
                    shutil.rmtree(leftover, ignore_errors=True)


def _mark_of(path: Path) -> Path:
    return path.with_name(f"{path.name}.verified")
