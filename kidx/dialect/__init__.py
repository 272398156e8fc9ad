"""Differences between Kafka releases, as data.

A *dialect* is the set of behaviours of one release. The code queries a behaviour by name (``dialect.close_trims``),
never a version number. :mod:`kidx.dialect.table` is the table, with one row per behaviour.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from copy import copy
from functools import lru_cache
from typing import Final

from kidx.dialect.release_range import version_of
from kidx.dialect.table import ROWS, Compressor, Decompressor, Dialect

__all__ = [
    "BEHAVIOURS",
    "DIALECTS",
    "NEWEST",
    "PUBLISHED",
    "ROWS",
    "Compressor",
    "Decompressor",
    "Dialect",
    "dialect_of",
    "override_dialect",
    "register_release",
    "representative",
    "version_of",
    "with_overrides",
]

BEHAVIOURS: Final = tuple(ROWS)
"""Names of all rows of the table."""

# fmt: off
PUBLISHED: Final = (
    "2.4.0 2.4.1 2.5.0 2.5.1 2.6.0 2.6.1 2.6.2 2.6.3 2.7.0 2.7.1 2.7.2 2.8.0 2.8.1 2.8.2 3.0.0 3.0.1 3.0.2 3.1.0 3.1.1 "
    "3.1.2 3.2.0 3.2.1 3.2.2 3.2.3 3.3.0 3.3.1 3.3.2 3.4.0 3.4.1 3.5.0 3.5.1 3.5.2 3.6.0 3.6.1 3.6.2 3.7.0 3.7.1 3.7.2 "
    "3.8.0 3.8.1 3.9.0 3.9.1 3.9.2 4.0.0 4.0.1 4.0.2 4.1.0 4.1.1 4.1.2 4.2.0 4.2.1 4.2.2 4.3.0 4.3.1 4.4.0"
)
# fmt: on
"""Every release from 2.4.0 on that had been published when this table was made, oldest first."""

DIALECTS: Final[dict[str, Dialect]] = {release: Dialect(release) for release in PUBLISHED.split()}
"""Dialects of the published releases, followed by those that :func:`register_release` adds."""

NEWEST: Final = max(DIALECTS, key=version_of)


def register_release(release: str, like: str | None = None) -> Dialect:
    """Add a release that this package does not know, with the behaviours of another release.

    Args:
        release: the new release, e.g. ``"4.5.0"``.
        like: the release whose behaviours it gets; by default the newest known release before it.

    Raises:
        ValueError: the new release is older than all known releases.
    """
    before = [known for known in DIALECTS if version_of(known) < version_of(release)]
    if like is None and not before:
        raise ValueError(f"Kafka {release} is older than all known releases")
    known = DIALECTS[like or max(before, key=version_of)]
    return DIALECTS.setdefault(release, Dialect(release, known.like))


def dialect_of(release: str | Dialect | None = None) -> Dialect:
    """Return the dialect of a release, by default of the newest one.

    Raises:
        ValueError: kidx does not know the release.
    """
    if isinstance(release, Dialect):
        return release
    if release is None:
        return DIALECTS[NEWEST]
    try:
        return DIALECTS[release]
    except KeyError:
        known = ", ".join(DIALECTS)
        raise ValueError(f"unknown Kafka release {release!r}; kidx knows {known}") from None


@lru_cache(maxsize=64)
def _representatives(sections: tuple[str, ...], dialects: tuple[Dialect, ...]) -> dict[tuple[object, ...], str]:
    oldest: dict[tuple[object, ...], str] = {}
    for dialect in dialects:
        oldest.setdefault(dialect.rules(*sections), dialect.release)
    return oldest


def representative(release: str, *sections: str) -> str:
    """Return the oldest known release with the same behaviours.

    Args:
        release: a known release.
        sections: sections of the table that are compared, e.g. ``"index"``; all by default.
    """
    return _representatives(sections, tuple(DIALECTS.values()))[dialect_of(release).rules(*sections)]


def with_overrides(dialect: Dialect, **behaviours: object) -> Dialect:
    """Return a copy of a dialect in which some behaviours differ from the table.

    Raises:
        ValueError: no row has such a name.
    """
    if unknown := sorted(behaviours.keys() - set(BEHAVIOURS)):
        raise ValueError(f"unknown behaviour {', '.join(unknown)}: kidx.dialect.table defines all of them")
    other = copy(dialect)
    vars(other).update(behaviours)  # a cached property stores its value in the instance's dictionary
    return other


@contextmanager
def override_dialect(dialect: Dialect) -> Iterator[Dialect]:
    """Give a release, known or unknown, another dialect inside the block."""
    before = DIALECTS.get(dialect.release)
    DIALECTS[dialect.release] = dialect
    try:
        yield dialect
    finally:
        if before is None:
            del DIALECTS[dialect.release]
        else:
            DIALECTS[dialect.release] = before
