"""Cache of jars on this machine, verified against the lock files, which list jars with their hashes.

The directory is ``KIDX_CACHE`` if set, else the user's cache directory for ``kidx``. Below it::

    jars/<Maven layout>/kafka-clients-3.9.2.jar            shared by every release that names it
    jars/<Maven layout>/kafka-clients-3.9.2.jar.verified   "<sha256> <size> <mtime_ns>" of that file
    partial/<random>/                                      downloads in progress
    fetch.lock                                             locked by the process that downloads

A class path has about fifty jars, and hashing them takes a second, so each jar is hashed once. The ``.verified`` file
records size and modification time of the hashed jar. While both are unchanged, the jar is not hashed again; then
checking a whole class path takes about 1 ms. This detects an interrupted copy or a replaced jar, but not a forged
modification time in the user's own cache directory.

A jar and its ``.verified`` file are written elsewhere in the cache and then renamed, so a process that dies leaves no
partial file under ``jars/``.
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

## Seconds to wait for another process that downloads. After that this process downloads as well:
## the other one may be suspended, and renaming is safe in either order.
LOCK_TIMEOUT_S = 600.0
## Age in seconds at which leftovers of killed processes are removed.
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
    """Return the error for a cache that cannot be written, with the reason in one line."""
    if error.errno in {errno.ENOSPC, errno.EDQUOT}:
        return CacheError(f"no space left in the cache {cache}: free some, or set KIDX_CACHE to another directory")
    if error.errno in {errno.ENOTDIR, errno.EEXIST}:
        return CacheError(f"the cache {cache} is not a directory, or lies below a file: set KIDX_CACHE to a directory")
    if error.errno in {errno.EACCES, errno.EPERM, errno.EROFS}:
        return CacheError(f"the cache {cache} is not writable: set KIDX_CACHE to a directory that is")
    return CacheError(f"cannot write to the cache {cache}: {error.strerror or error}")


class Cache:
    """Jars in one cache directory."""

    def __init__(self, directory: Path | None = None) -> None:
        self.directory = directory or cache_directory()

    def path(self, jar: Jar) -> Path:
        """Return the path that a jar has, or will have, in the cache."""
        return self.directory / "jars" / jar.path

    def has(self, jar: Jar) -> bool:
        """Return True if a jar is cached and has the hash of its lock file.

        The file is hashed unless its ``.verified`` file is valid.
        """
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
        # In a read-only cache the mark cannot be written, and every start hashes the jar again.
        with contextlib.suppress(OSError):
            self._write_mark(path, mark)
        return True

    def store(self, jar: Jar, complete: Path) -> Path:
        """Move a complete and verified file into the cache; return its path there.

        Raises:
            OSError: the cache cannot be written.
        """
        path = self.path(jar)
        path.parent.mkdir(parents=True, exist_ok=True)
        status = complete.stat()
        complete.replace(path)
        # Between the two renames, the new jar may have an old mark, which is invalid because it has another time.
        self._write_mark(path, f"{jar.sha256} {status.st_size} {status.st_mtime_ns}")
        return path

    @contextlib.contextmanager
    def partial(self) -> Iterator[Path]:
        """Yield a private directory on the cache's own file system, and remove it on exit.

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
    def locked(self, timeout: float = LOCK_TIMEOUT_S) -> Iterator[None]:
        """Prevent other processes from downloading the same jars at the same time.

        The lock only saves downloads: after ``timeout`` seconds, or if the file system has no locks, the
        body runs without it. The kernel releases the lock of a process that dies.

        Raises:
            OSError: the cache cannot be written.
        """
        self.directory.mkdir(parents=True, exist_ok=True)
        with (self.directory / "fetch.lock").open("ab") as file:
            deadline = time.monotonic() + timeout
            while True:
                try:
                    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    self._remove_stale()
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

    def _remove_stale(self) -> None:
        """Remove the partial downloads of killed processes."""
        for leftover in (self.directory / "partial").glob("*"):
            with contextlib.suppress(OSError):
                if time.time() - leftover.stat().st_mtime > PARTIAL_AGE:
                    shutil.rmtree(leftover, ignore_errors=True)


def _mark_of(path: Path) -> Path:
    """Return the path of a jar's ``.verified`` file."""
    return path.with_name(f"{path.name}.verified")
