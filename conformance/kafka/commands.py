"""What ``conformance kafka list | fetch RELEASE | java`` tell, as data for the command line to print."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from conformance.kafka.cache import Cache
from conformance.kafka.fetch import class_path
from conformance.kafka.releases import RELEASES, load_release, users_releases, version_key
from kidx.java import JavaSearch, search_java

if TYPE_CHECKING:
    from pathlib import Path

    from conformance.kafka.fetch import Progress
    from conformance.kafka.releases import Group

__all__ = ["Fetched", "JavaSearch", "ReleaseStatus", "fetch_release", "list_releases", "show_java"]


@dataclass(frozen=True, slots=True)
class ReleaseStatus:
    """How much of a locked release is in the cache: jars, and sizes in bytes.

    Jars that releases share are counted for each of them, so the sizes do not add up to the cache's. ``users`` says
    that the lock is the user's own, and not the package's.
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
        """Tell whether nothing is left to fetch."""
        return self.cached_jars == self.jars


@dataclass(frozen=True, slots=True)
class Fetched:
    """The result of a fetch: the class path, its size in bytes, and how many jars had to be brought."""

    release: str
    group: Group
    jars: tuple[Path, ...]
    size: int
    new_jars: int
    directory: Path


def list_releases(cache: Cache | None = None) -> list[ReleaseStatus]:
    """Return every locked release, the package's and the user's, oldest first, with what is cached of it.

    Raises:
        ToolError: a lock of the user's cannot be read.
    """
    cache = cache or Cache()
    present: dict[str, bool] = {}
    rows = []
    own = users_releases()
    for name in sorted((*RELEASES, *own), key=version_key):
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
    release: str, group: Group = "broker", *, progress: Progress | None = None, cache: Cache | None = None
) -> Fetched:
    """Bring one group of a release into the cache.

    Raises:
        UnknownReleaseError: the release is not locked.
        FetchError: a jar could not be brought into the cache.
    """
    cache = cache or Cache()
    jars = load_release(release).group(group)
    new = sum(not cache.has(jar) for jar in jars)
    paths = class_path(release, group, progress=progress, cache=cache)
    return Fetched(release, group, tuple(paths), sum(jar.size for jar in jars), new, cache.directory)


def show_java() -> JavaSearch:
    """Return the Java that would be used, or none, and why the others were passed over.

    Raises:
        JavaNotFoundError: what ``KIDX_JAVA_HOME`` names cannot be used.
    """
    return search_java()
