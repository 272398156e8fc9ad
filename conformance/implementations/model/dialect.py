"""Differences between Kafka's releases that the model can observe."""

from __future__ import annotations

from typing import Final, NamedTuple


class Dialect(NamedTuple):
    """Behaviour of one group of releases.

    Attributes:
        misplaced: The error of an append while the write position is not at the end of the entries (OI-6).
        trims_when_closed: True if ``trim`` and ``close`` try to trim even if the file is unmapped (AI-16).
        unmaps_to_resize: True if the file is unmapped before it is resized (KAFKA-19390), so that a failed resize
            leaves a closed index.
        close_trims: True if ``close`` trims the file (before 4.4).
        flushes_when_closed: True if ``flush`` of a closed index does nothing instead of failing (from 4.4).
        strict_versions: True if a transaction record must have version 0 in all 16 bits; before 4.4, only a first byte
            from 1 to 127 is rejected.
    """

    misplaced: str = "illegal_state"
    trims_when_closed: bool = False
    unmaps_to_resize: bool = False
    close_trims: bool = True
    flushes_when_closed: bool = False
    strict_versions: bool = False


# Groups of releases: indexes in Scala, in Java, with guards of unmapped files, with KAFKA-19390, and without trimming.
SCALA: Final = Dialect(misplaced="invalid_argument", trims_when_closed=True)
JAVA: Final = Dialect(trims_when_closed=True)
GUARDED: Final = Dialect()
REMAPPED: Final = Dialect(unmaps_to_resize=True)
UNTRIMMED: Final = Dialect(unmaps_to_resize=True, close_trims=False, flushes_when_closed=True, strict_versions=True)

SINCE: Final[tuple[tuple[tuple[int, int, int], Dialect], ...]] = (
    ((2, 4, 0), SCALA),
    ((3, 5, 0), JAVA),
    ((3, 9, 2), REMAPPED),
    ((4, 0, 0), JAVA),
    ((4, 0, 1), GUARDED),
    ((4, 0, 2), REMAPPED),
    ((4, 1, 0), GUARDED),
    ((4, 1, 1), REMAPPED),
    ((4, 4, 0), UNTRIMMED),
)
"""For each release that changes the behaviour, in version order, the behaviour from that release on."""


def dialect_of(release: str) -> Dialect:
    """Return the dialect of a release such as ``"3.9.2"``.

    Raises:
        ValueError: The text is not a release, or the release is older than 2.4.0.
    """
    parts = release.split(".")
    if len(parts) != 3 or not all(part.isdecimal() for part in parts):
        raise ValueError(f"not a Kafka release: {release!r}")
    version = (int(parts[0]), int(parts[1]), int(parts[2]))
    known = [dialect for first, dialect in SINCE if first <= version]
    if not known:
        raise ValueError(f"the model begins with Kafka 2.4.0, not {release}")
    return known[-1]
