"""Kafka's jars, fetched and verified on first use, then cached.

Most callers need only ``class_path("3.9.2", "index")``. A missing jar is copied from the local Maven repository
(``M2_REPO``, or ``~/.m2/repository``), or else downloaded with the pure-Python Maven resolver of jgo. In both cases the
jar must have the SHA-256 in the release's lock file. To use a company's mirror, set ``KIDX_MAVEN_MIRROR`` to its
address.

This module prints nothing; it calls ``progress`` (:mod:`conformance.kafka.progress` displays it).

The directory of the cache is ``KIDX_CACHE`` if set, else the user's cache directory for ``kidx``. Below it::

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
import logging
import os
import shutil
import threading
import time
import uuid
from collections.abc import Callable
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from platformdirs import user_cache_path

from conformance.errors import CacheError, FetchError, HashMismatchError
from conformance.kafka.releases import load_release, load_tool

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from conformance.kafka.releases import Group, Jar, Release

# Seconds to wait for another process that downloads. After that this process downloads as well:
# the other one may be suspended, and renaming is safe in either order.
LOCK_TIMEOUT_S = 600.0
# Age in seconds at which leftovers of killed processes are removed.
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


__all__ = ["Progress", "Step", "cache_directory", "class_path", "fetch", "tool_jar"]

# A few parallel downloads hide the latency of many small jars. A public repository throttles clients with more.
THREADS = 4
# Pauses in seconds, after each of which a broken connection is retried.
PAUSES = (0.5, 2.0)

# Without a handler, jgo prints a warning about a wrong checksum; the check in this module has a better message.
logging.getLogger("jgo").addHandler(logging.NullHandler())


@dataclass(frozen=True, slots=True)
class Step:
    """Progress of a fetch: numbers of fetched jars and bytes, their totals, and the artifact being fetched."""

    artifact: str
    jars: int
    total_jars: int
    size: int
    total_size: int


Progress = Callable[[Step], None]
"""Function that is called for every received block, by one thread at a time."""


def class_path(
    release: str,
    group: Group = "broker",
    *,
    progress: Progress | None = None,
    cache: Cache | None = None,
) -> list[Path]:
    """Return the jars of one group of a release, in class path order, fetching missing ones.

    A group is the class path for one purpose: ``index``, ``segment`` or ``log`` for these classes, or ``broker``.

    Raises:
        UnknownReleaseError: the release is not locked.
        FetchError: a jar could not be fetched; no partial file is left in the cache.
    """
    return fetch(load_release(release).group(group), progress=progress, cache=cache)


def tool_jar(name: str, *, progress: Progress | None = None, cache: Cache | None = None) -> Path:
    """Return a jar that the harness itself uses, such as ``ecj``, fetching it on first use.

    Raises:
        FetchError: the jar could not be fetched.
    """
    return fetch([load_tool(name)], progress=progress, cache=cache)[0]


def repositories() -> dict[str, str] | None:
    """Return the Maven repositories to use: ``KIDX_MAVEN_MIRROR``, or None for jgo's default."""
    mirror = os.environ.get("KIDX_MAVEN_MIRROR")
    return {"mirror": mirror} if mirror else None


def fetch(jars: Sequence[Jar], *, progress: Progress | None = None, cache: Cache | None = None) -> list[Path]:
    """Return the cached paths of ``jars`` in their order, fetching missing ones.

    Raises:
        FetchError: a jar could not be fetched; jars that arrived before it remain, verified.
    """
    cache = cache or Cache()
    missing = [jar for jar in jars if not cache.has(jar)]
    if missing:
        try:
            with cache.locked():
                # Another process may have fetched some of them in the meantime.
                _fetch_all(cache, [jar for jar in missing if not cache.has(jar)], _ProgressCounter(progress))
        except OSError as error:
            raise cache_error(error, cache.directory) from error
    return [cache.path(jar) for jar in jars]


class _Cancelled(Exception):  # noqa: N818  (not an error: the first failure cancels the other downloads)
    """Signal inside a download that another download has failed."""


class _ProgressCounter:
    """Counter of the bytes that several threads receive; only one thread at a time calls the progress callback."""

    def __init__(self, progress: Progress | None) -> None:
        self.stopped = False
        self._progress = progress
        self._lock = threading.Lock()
        self._jars = self._size = self._total_jars = self._total_size = 0
        self._sizes: dict[str, int] = {}

    def expect(self, jars: Iterable[Jar]) -> None:
        for jar in jars:
            self._total_jars += 1
            self._total_size += jar.size

    def arrived(self, jar: Jar, size: int, *, complete: bool = False) -> None:
        """Record the total number of bytes received of a jar."""
        if self.stopped:
            raise _Cancelled
        with self._lock:
            self._size += size - self._sizes.get(jar.artifact, 0)  # a second attempt starts at 0 again
            self._sizes[jar.artifact] = size
            self._jars += complete
            if self._progress:
                self._progress(Step(jar.artifact, self._jars, self._total_jars, self._size, self._total_size))


def _fetch_all(cache: Cache, jars: Sequence[Jar], tally: _ProgressCounter) -> None:
    tally.expect(jars)
    with ThreadPoolExecutor(THREADS, thread_name_prefix="kidx-fetch") as pool:
        # The large jars come first, so that none of them is downloaded alone at the end.
        futures = [pool.submit(_fetch_one, cache, jar, tally) for jar in sorted(jars, key=lambda jar: -jar.size)]
        try:
            done, _ = wait(futures, return_when=FIRST_EXCEPTION)
        finally:
            tally.stopped = True  # running downloads end with their next block, also on Ctrl-C
            for future in futures:
                future.cancel()
    for future in done:
        future.result()


def _fetch_one(cache: Cache, jar: Jar, tally: _ProgressCounter) -> None:
    with cache.partial() as directory:
        complete = _from_local_repository(jar, directory)
        if complete is None:
            complete = _download(jar, directory, tally)
            actual = sha256_of(complete)
            if actual != jar.sha256:
                raise HashMismatchError(
                    f"{jar.artifact} is not the locked jar: expected SHA-256 {jar.sha256}, got {actual}; discarded"
                )
        cache.store(jar, complete)
    tally.arrived(jar, jar.size, complete=True)


def _from_local_repository(jar: Jar, directory: Path) -> Path | None:
    """Copy a jar from the local Maven repository; return None if the jar is missing or has another hash.

    The file is read once, because other programs may change it between hashing and copying.
    """
    repository = Path(os.environ.get("M2_REPO") or Path.home() / ".m2" / "repository")
    source = repository / jar.path
    try:
        if source.stat().st_size != jar.size:
            return None
        content = source.read_bytes()
    except OSError:
        return None
    if hashlib.sha256(content).hexdigest() != jar.sha256:
        return None
    target = directory / jar.name
    target.write_bytes(content)
    return target


def _download(jar: Jar, directory: Path, tally: _ProgressCounter) -> Path:
    """Download one jar with jgo into ``directory`` and return its path there, unverified.

    Raises:
        FetchError: no network, no such jar, or jgo is not installed.
        OSError: the cache cannot be written.
    """
    try:
        import requests  # noqa: PLC0415  (comes with jgo, an optional dependency)
        from jgo.maven import MavenContext, PythonResolver  # noqa: PLC0415
    except ImportError:
        raise FetchError(f"{jar.artifact} is not cached; fetching requires jgo: pip install 'kidx[jvm]'") from None
    resolver = PythonResolver(progress_callback=lambda _name, _size: _watch(jar, tally))
    for pause in (*PAUSES, None):
        attempt = directory / str(time.monotonic_ns())  # jgo requires an empty directory
        context = MavenContext(resolver, repo_cache=attempt, remote_repos=repositories())
        group, name, version, *classifier = jar.artifact.split(":")
        artifact = context.project(group, name).at_version(version).artifact(*classifier)
        try:
            path = resolver.download(artifact)
        except requests.RequestException as error:
            # Caught before OSError, its base class, which is an error of the cache.
            if pause is None:
                raise FetchError(f"cannot fetch {jar.artifact}: {_reason(error)}") from error
            shutil.rmtree(attempt, ignore_errors=True)
            time.sleep(0 if tally.stopped else pause)
        except RuntimeError as error:
            raise FetchError(f"cannot fetch {jar.artifact}: the Maven repository did not provide it") from error
        else:
            return Path(str(path))
    raise AssertionError("unreachable: the last attempt returns or raises")


def _reason(error: Exception) -> str:
    """Return a short reason for a failed connection, because the messages of HTTP libraries are very long."""
    text = type(error).__name__
    if "Timeout" in text:
        return "no network, or the repository does not answer (timed out)"
    if text in {"ConnectionError", "ProxyError", "SSLError"}:
        return f"no network, or the repository cannot be reached ({text})"
    return f"the connection broke ({text})"


@contextlib.contextmanager
def _watch(jar: Jar, tally: _ProgressCounter) -> Iterator[Callable[[int], None]]:
    """Provide jgo's progress callback for one download."""
    size = 0

    def update(count: int) -> None:
        nonlocal size
        size += count
        tally.arrived(jar, size)

    yield update


_STORAGE_OF: Final = {
    "3.6": "3.6.2",
    "3.7": "3.7.2",
    "3.8": "3.8.1",
    "3.9": "3.9.2",
    "4.0": "4.0.2",
    "4.1": "4.1.2",
    "4.2": "4.2.1",
    "4.3": "4.3.1",
    "4.4": "4.3.1",  # no test jar of 4.4.0 is published
}
"""The release whose ``LocalTieredStorage`` the releases of each series use."""


def storage_jar(release: str) -> Path:
    """Return the jar with the ``LocalTieredStorage`` of a release.

    Raises:
        FetchError: The jar cannot be fetched.
        KeyError: No test jar is locked for the series of the release.
    """
    return tool_jar(f"tiers-{_storage_release(release)}")


def moved_classes(release: str) -> list[Path]:
    """Return the jars with classes that the storage needs and that the release no longer has, for the class path's end.

    Raises:
        FetchError: A jar cannot be fetched.
        KeyError: As :func:`storage_jar`.
    """
    storage = _storage_release(release)
    if storage.startswith(_series(release)):
        return []
    return [jar for jar in class_path(storage, "log") if jar.name.startswith("kafka-clients-")]


def jars_of_runs(release: Release) -> list[Jar]:
    """Return all jars that a run of a release can need: its own, the jars of tools, and a storage for tiers."""
    jars = [*release.jars, *map(load_tool, ("ecj", "asm", "asm-tree", "asm-commons", "jacoco"))]
    storage = _STORAGE_OF.get(_series(release.name))
    if storage is not None:
        jars.append(load_tool(f"tiers-{storage}"))
        if _series(storage) != _series(release.name):
            jars += [jar for jar in load_release(storage).jars if jar.name.startswith("kafka-clients-")]
    return jars


def _storage_release(release: str) -> str:
    return _STORAGE_OF[_series(release)]


def _series(release: str) -> str:
    return release.rpartition(".")[0]
