"""What differs between Kafka releases, as data.

A *dialect* is the set of version-dependent behaviours of one release. Every value is an id
whose meaning stands beside it here, and the code asks for a property by name
(``dialect.close_trims``), never for a version number. :mod:`kidx.dialect.columns` says what the table's columns are;
one module a subsystem says what follows from them.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import cached_property
from typing import Any, ClassVar, Final, Protocol

from kidx.dialect.cleaning import CleaningBehaviours
from kidx.dialect.columns import LeaderRule, version_of

__all__ = [
    "BEHAVIOURS",
    "DIALECTS",
    "NEWEST",
    "Compressor",
    "Decompressor",
    "Dialect",
    "LeaderRule",
    "adopt",
    "assumed",
    "dialect_of",
    "varied",
    "version_of",
]


class Compressor(Protocol):
    """Codec libraries."""

    def __call__(self, codec: Any, data: bytes, magic: int) -> bytes:
        """The bytes as a batch of this magic has them; the codec is a ``kidx.records.Codec``."""


class Decompressor(Protocol):
    """Codec libraries."""

    def __call__(self, codec: Any, data: bytes, magic: int, *, reading: Any) -> Any:
        """What comes of the bytes of a batch of this magic, as a ``kidx.records.codecs.Decompressed``.

        None: what they hold is too large to be lent.

        Args:
            codec: a ``kidx.records.Codec``.
            data: the compressed bytes.
            magic: of the batch.
            reading: a ``kidx.records.codecs.Reading``, which says how much of it is asked for at once (LG-64).
        """


class Dialect(CleaningBehaviours):
    """The behaviours of one release.

    Attributes:
        compressor: the codec libraries that batches are built anew with; None: those of kidx. Each release comes with
            libraries of its own, whose compressed bytes may be others (LG-58).
        decompressor: those that batches are read with, which may make other things of damage (LG-64).
    """

    compressor: ClassVar[Compressor | None] = None
    decompressor: ClassVar[Decompressor | None] = None

    def with_libraries(self, compressor: Compressor | None, decompressor: Decompressor | None) -> Dialect:
        """The same behaviours, with these codec libraries."""
        copy = replace(self)
        vars(copy).update(compressor=compressor, decompressor=decompressor)
        return copy


BEHAVIOURS: Final = tuple(
    name
    for kind in reversed(Dialect.__mro__)
    for name, value in vars(kind).items()
    if isinstance(value, cached_property)
)
"""The names of the properties that follow from the columns."""

# fmt: off
_SPANS: Final[tuple[tuple[tuple[str, ...], tuple[str, ...], tuple[int, int]], ...]] = (
    # releases                              index append leader -3   shutdown translate   ListOffsets
    (("2.4.0", "2.4.1", "2.5.0", "2.5.1"), ("X1", "A1", "L1", "M0", "C1", "last"), (0, 5)),
    (("2.6.0", "2.6.1", "2.6.2", "2.6.3", "2.7.0", "2.7.1", "2.7.2"),
                                           ("X2", "A1", "L1", "M0", "C2", "last"), (0, 5)),
    (("2.8.0", "2.8.1", "2.8.2"),          ("X2", "A1", "L1", "M0", "C2", "last"), (0, 6)),
    (("3.0.0", "3.0.1", "3.0.2", "3.1.0", "3.1.1", "3.1.2", "3.2.0", "3.2.1", "3.2.2", "3.2.3",
      "3.3.0", "3.3.1", "3.3.2", "3.4.0", "3.4.1"),
                                           ("X2", "A1", "L1", "M1", "C2", "last"), (0, 7)),
    (("3.5.0", "3.5.1", "3.5.2", "3.6.0", "3.6.1", "3.6.2"),
                                           ("X3", "A1", "L1", "M1", "C2", "last"), (0, 8)),
    (("3.7.0", "3.7.1", "3.7.2"),          ("X3", "A1", "L2", "M1", "C2", "last"), (0, 8)),
    (("3.8.0", "3.8.1"),                   ("X3", "A1", "L3", "M2", "C2", "last"), (0, 8)),
    (("3.9.0",),                           ("X3", "A1", "L3", "M2", "C2", "last"), (0, 9)),
    (("3.9.1",),                           ("X3", "A2", "L4", "M2", "C2", "last"), (0, 9)),
    (("3.9.2",),                           ("X4", "A2", "L4", "M2", "C2", "last"), (0, 9)),
    (("4.0.0",),                           ("X3", "A1", "L3", "M2", "C2", "base"), (1, 10)),
    (("4.0.1", "4.0.2", "4.1.0", "4.1.1", "4.1.2"),
                                           ("X4", "A2", "L4", "M2", "C2", "base"), (1, 10)),
    (("4.2.0", "4.2.1", "4.3.0", "4.3.1"), ("X5", "A2", "L4", "M2", "C2", "base"), (1, 11)),
    (("4.4.0",),                           ("X6", "A2", "L4", "M2", "C3", "base"), (1, 11)),
)
# fmt: on


DIALECTS: Final[dict[str, Dialect]] = {
    release: Dialect(release, *columns, versions)  # type: ignore[arg-type, call-arg]
    for releases, columns, versions in _SPANS
    for release in releases
}
"""Every published release from 2.4.0 to 4.4.0, oldest first; behind them those that :func:`adopt` adds."""

NEWEST: Final = max(DIALECTS, key=version_of)


def adopt(release: str, like: str | None = None) -> Dialect:
    """Makes a release known that this package does not know, with the columns of another.

    Args:
        release: the new one, e.g. ``"4.5.0"``.
        like: whose columns; of the newest known release before it by default.

    Raises:
        ValueError: it is older than all that are known.
    """
    before = [known for known in DIALECTS if version_of(known) < version_of(release)]
    if like is None and not before:
        raise ValueError(f"Kafka {release} is older than all that are known")
    dialect = replace(DIALECTS[like or max(before, key=version_of)], release=release)
    return DIALECTS.setdefault(release, dialect)


def dialect_of(release: str | Dialect | None = None) -> Dialect:
    """The dialect of a release; of the newest one if none is named.

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


def varied(dialect: Dialect, **behaviours: object) -> Dialect:
    """A dialect with behaviours that its columns do not give it; what follows from them follows.

    Raises:
        ValueError: no dialect has such a behaviour.
    """
    if unknown := sorted(behaviours.keys() - set(BEHAVIOURS)):
        raise ValueError(f"no dialect has a behaviour {', '.join(unknown)}")
    copy = replace(dialect)
    vars(copy).update(behaviours)  # where a cached property keeps its value
    return copy


@contextmanager
def assumed(dialect: Dialect) -> Iterator[Dialect]:
    """Lets a release have another dialect in the block, or one at all if it is not known."""
    before = DIALECTS.get(dialect.release)
    DIALECTS[dialect.release] = dialect
    try:
        yield dialect
    finally:
        if before is None:
            del DIALECTS[dialect.release]
        else:
            DIALECTS[dialect.release] = before
