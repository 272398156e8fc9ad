"""Kafka's jars on this machine: taken from the cache, or fetched on first use and checked.

``class_path("3.9.2", "index")`` is all that most callers need. A jar that is missing is looked for in the
local Maven repository (``M2_REPO``, else ``~/.m2/repository``) and otherwise downloaded with jgo's
pure-Python Maven resolver; either way it must have the locked SHA-256 before it enters the cache. Behind a
company's mirror, ``KIDX_MAVEN_MIRROR`` is the address to ask instead of jgo's default.

Nothing is printed here: pass ``progress`` to be called (:mod:`conformance.kafka.progress` draws it).
"""

from __future__ import annotations

import contextlib
import hashlib
import logging
import os
import shutil
import threading
import time
from collections.abc import Callable
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from conformance.errors import FetchError, HashMismatchError
from conformance.kafka.cache import Cache, cache_directory, cache_error, sha256_of
from conformance.kafka.releases import load_release, load_tool

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from conformance.kafka.releases import Group, Jar

__all__ = ["Progress", "Step", "cache_directory", "class_path", "fetch", "tool_jar"]

# A few at once hide the latency of many small jars; more only make a public repository slow us down.
THREADS = 4
# A connection that breaks is tried again after each of these pauses, in seconds.
PAUSES = (0.5, 2.0)

# jgo warns about a wrong checksum on stderr where no logging is set up; the check here has a better message.
logging.getLogger("jgo").addHandler(logging.NullHandler())


@dataclass(frozen=True, slots=True)
class Step:
    """How far a fetch is: jars and bytes that have arrived, of how many; ``artifact`` is the one that moved."""

    artifact: str
    jars: int
    total_jars: int
    size: int
    total_size: int


Progress = Callable[[Step], None]
"""Called for every block that arrives, from one thread at a time."""


def class_path(
    release: str,
    group: Group = "broker",
    *,
    progress: Progress | None = None,
    cache: Cache | None = None,
) -> list[Path]:
    """Return the jars of one group of a release, in class path order, fetching what is missing.

    Raises:
        UnknownReleaseError: the release is not locked.
        FetchError: a jar could not be brought into the cache; nothing half-done is left there.
    """
    return fetch(load_release(release).group(group), progress=progress, cache=cache)


def tool_jar(name: str, *, progress: Progress | None = None, cache: Cache | None = None) -> Path:
    """Return a jar of our own tool box, such as ``ecj``, fetching it on first use.

    Raises:
        FetchError: the jar could not be brought into the cache.
    """
    return fetch([load_tool(name)], progress=progress, cache=cache)[0]


def repositories() -> dict[str, str] | None:
    """The Maven repositories to ask: ``KIDX_MAVEN_MIRROR``, or None for jgo's default."""
    mirror = os.environ.get("KIDX_MAVEN_MIRROR")
    return {"mirror": mirror} if mirror else None


def fetch(jars: Sequence[Jar], *, progress: Progress | None = None, cache: Cache | None = None) -> list[Path]:
    """Return the cached paths of ``jars`` in their order, fetching what is missing.

    Raises:
        FetchError: a jar could not be brought into the cache; those that arrived before stay, verified.
    """
    cache = cache or Cache()
    missing = [jar for jar in jars if not cache.has(jar)]
    if missing:
        try:
            with cache.locked():
                # Another process may have brought them while we waited.
                _fetch_all(cache, [jar for jar in missing if not cache.has(jar)], _Tally(progress))
        except OSError as error:
            raise cache_error(error, cache.directory) from error
    return [cache.path(jar) for jar in jars]


class _Stopped(Exception):  # noqa: N818  (not an error: the first failure ends the other downloads)
    """Raised inside a download because another one has failed."""


class _Tally:
    """Counts what arrives in several threads and tells the progress callback, one call at a time."""

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
        """Note that ``size`` bytes of a jar are here, in all."""
        if self.stopped:
            raise _Stopped
        with self._lock:
            self._size += size - self._sizes.get(jar.artifact, 0)  # a second attempt starts at 0 again
            self._sizes[jar.artifact] = size
            self._jars += complete
            if self._progress:
                self._progress(Step(jar.artifact, self._jars, self._total_jars, self._size, self._total_size))


def _fetch_all(cache: Cache, jars: Sequence[Jar], tally: _Tally) -> None:
    tally.expect(jars)
    with ThreadPoolExecutor(THREADS, thread_name_prefix="kidx-fetch") as pool:
        # The large ones first, so that none of them is left alone at the end.
        futures = [pool.submit(_fetch_one, cache, jar, tally) for jar in sorted(jars, key=lambda jar: -jar.size)]
        try:
            done, _ = wait(futures, return_when=FIRST_EXCEPTION)
        finally:
            tally.stopped = True  # also on Ctrl-C: downloads under way end at their next block
            for future in futures:
                future.cancel()
    for future in done:
        future.result()


def _fetch_one(cache: Cache, jar: Jar, tally: _Tally) -> None:
    with cache.partial() as directory:
        complete = _from_local_repository(jar, directory)
        if complete is None:
            complete = _download(jar, directory, tally)
            actual = sha256_of(complete)
            if actual != jar.sha256:
                raise HashMismatchError(
                    f"{jar.artifact} is not the locked jar: expected SHA-256 {jar.sha256}, got {actual}; not kept"
                )
        cache.keep(jar, complete)
    tally.arrived(jar, jar.size, complete=True)


def _from_local_repository(jar: Jar, directory: Path) -> Path | None:
    """Copy a jar out of the local Maven repository if the right one is there.

    The bytes in memory are hashed and written: the file belongs to other programs, which may change it meanwhile.
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


def _download(jar: Jar, directory: Path, tally: _Tally) -> Path:
    """Download one jar with jgo into ``directory`` and return its path there, unchecked.

    Raises:
        FetchError: no network, no such jar, or jgo is not installed.
        OSError: the cache cannot be written.
    """
    try:
        import requests  # noqa: PLC0415  (comes with jgo, an optional dependency)
        from jgo.maven import MavenContext, PythonResolver  # noqa: PLC0415
    except ImportError:
        raise FetchError(f"{jar.artifact} is not cached, and fetching needs jgo: pip install 'kidx[jvm]'") from None
    resolver = PythonResolver(progress_callback=lambda _name, _size: _watch(jar, tally))
    for pause in (*PAUSES, None):
        attempt = directory / str(time.monotonic_ns())  # jgo insists on an empty place
        context = MavenContext(resolver, repo_cache=attempt, remote_repos=repositories())
        group, name, version = jar.artifact.split(":")
        artifact = context.project(group, name).at_version(version).artifact()
        try:
            path = resolver.download(artifact)
        except requests.RequestException as error:
            # Also an OSError, hence the first clause: it says nothing about the cache.
            if pause is None:
                raise FetchError(f"cannot fetch {jar.artifact}: {_reason(error)}") from error
            shutil.rmtree(attempt, ignore_errors=True)
            time.sleep(0 if tally.stopped else pause)
        except RuntimeError as error:
            raise FetchError(f"cannot fetch {jar.artifact}: the Maven repository did not hand it out") from error
        else:
            return Path(str(path))
    raise AssertionError("unreachable: the last attempt returns or raises")


def _reason(error: Exception) -> str:
    """Say in a few words why a connection failed; the texts of HTTP libraries are pages long."""
    text = type(error).__name__
    if "Timeout" in text:
        return "no network, or the repository does not answer (timed out)"
    if text in {"ConnectionError", "ProxyError", "SSLError"}:
        return f"no network, or the repository cannot be reached ({text})"
    return f"the connection broke ({text})"


@contextlib.contextmanager
def _watch(jar: Jar, tally: _Tally) -> Iterator[Callable[[int], None]]:
    """Be jgo's progress callback for one download."""
    size = 0

    def update(count: int) -> None:
        nonlocal size
        size += count
        tally.arrived(jar, size)

    yield update
