"""Data that ``conformance kafka list | fetch RELEASE | java`` print."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from conformance.kafka.jar_fetch import Cache, fetch, jars_of_runs
from conformance.kafka.releases import RELEASES, load_release, user_releases
from kidx.dialect import version_of
from kidx.java import JavaSearch, search_java

if TYPE_CHECKING:
    from pathlib import Path

    from conformance.kafka.jar_fetch import Progress
    from conformance.kafka.releases import Group

__all__ = ["Fetched", "JavaSearch", "ReleaseStatus", "fetch_release", "list_releases", "show_java"]


@dataclass(frozen=True, slots=True)
class ReleaseStatus:
    """Number and size in bytes of a release's jars, in total and in the cache.

    A jar that several releases share counts for each of them, so the sizes do not add up to the size of the cache.
    ``users`` is True if the user has locked the release, and False if this package has.
    """

    release: str
    logging: str
    jars: int
    size: int
    cached_jars: int
    cached_size: int
    users: bool = False

    @property
    def cached(self) -> bool:
        """True if nothing is left to fetch."""
        return self.cached_jars == self.jars


@dataclass(frozen=True, slots=True)
class Fetched:
    """Result of a fetch: the class path, its size in bytes, and the number of jars that were missing."""

    release: str
    group: Group | None
    jars: tuple[Path, ...]
    size: int
    new_jars: int
    directory: Path


def list_releases(cache: Cache | None = None) -> list[ReleaseStatus]:
    """Return the status of every locked release, from the package and from the user, oldest first.

    Raises:
        ToolError: a lock file of the user cannot be read.
    """
    cache = cache or Cache()
    present: dict[str, bool] = {}
    rows = []
    own = user_releases()
    for name in sorted((*RELEASES, *own), key=version_of):
        release = load_release(name)
        for jar in release.jars:
            if jar.sha256 not in present:
                present[jar.sha256] = cache.has(jar)
        cached = [jar for jar in release.jars if present[jar.sha256]]
        rows.append(
            ReleaseStatus(
                release=name,
                logging=release.logging,
                jars=len(release.jars),
                size=sum(jar.size for jar in release.jars),
                cached_jars=len(cached),
                cached_size=sum(jar.size for jar in cached),
                users=name in own,
            )
        )
    return rows


def fetch_release(
    release: str, group: Group | None = None, *, progress: Progress | None = None, cache: Cache | None = None
) -> Fetched:
    """Fetch one group of a release's jars (``index``, ``segment``, ``log`` or ``broker``), or all that a run can need.

    Raises:
        UnknownReleaseError: the release is not locked.
        FetchError: a jar could not be fetched.
    """
    cache = cache or Cache()
    locked = load_release(release)
    jars = locked.group(group) if group else jars_of_runs(locked)
    new = sum(not cache.has(jar) for jar in jars)
    paths = fetch(jars, progress=progress, cache=cache)
    return Fetched(release, group, tuple(paths), sum(jar.size for jar in jars), new, cache.directory)


def show_java() -> JavaSearch:
    """Return the Java that ``conformance`` uses, or None, and for each other Java the reason against it.

    Raises:
        JavaNotFoundError: the Java in ``KIDX_JAVA_HOME`` cannot be used.
    """
    return search_java()
