"""Races that are planted in Kafka's own classes, to test the search for operations that are not atomic."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Final, NamedTuple

from conformance.experiments.interleave.experiment import Interrupter, Pair
from conformance.experiments.interleave.known import KnownPairs
from conformance.experiments.interleave.scenarios import draw_scenario
from conformance.implementations.jvm.race_planting import Change, too_early, without_guard, without_lock

RELEASE: Final = "4.3.1"
"""Release whose classes are changed, if the user names no other."""
_EXAMPLES: Final = 3
"""Number of scenarios that are drawn from a seed; a race that none of them shows counts as not found."""


class Planted(NamedTuple):
    """Planted race.

    Attributes:
        kind: kind of object whose operations show the race, such as ``offset`` or ``cache``.
        title: description of the race.
        change: function that plants the race in a class file.
    """

    kind: str
    title: str
    change: Change


PLANTED: Final = {
    "offset-entry-before-its-bytes": Planted(
        "offset",
        "an entry counts before its bytes are written",
        too_early("OffsetIndex", "append", "incrementEntries", "mmap"),
    ),
    "time-entry-before-its-bytes": Planted(
        "time",
        "an entry counts before its bytes are written",
        too_early("TimeIndex", "maybeAppend", "incrementEntries", "mmap"),
    ),
    "offset-append-without-lock": Planted(
        "offset", "appends take no lock", without_guard("OffsetIndex", "append", "inLock")
    ),
    "time-append-without-lock": Planted(
        "time", "appends take no lock", without_guard("TimeIndex", "maybeAppend", "inLock")
    ),
    "offset-truncation-without-lock": Planted(
        "offset", "truncations look for the slot without a lock", without_guard("OffsetIndex", "truncateTo", "inLock")
    ),
    "resize-without-lock": Planted(
        "offset", "a resize takes no lock", without_guard("AbstractIndex", "resize", "inLock")
    ),
    "remap-without-lock": Planted(
        "offset", "a resize remaps while lookups read", without_guard("AbstractIndex", "resize", "inRemapWriteLock")
    ),
    "offset-lookup-while-remapped": Planted(
        "offset", "a lookup reads while a resize remaps", without_guard("OffsetIndex", "lookup", "inRemapReadLock")
    ),
    "time-lookup-while-remapped": Planted(
        "time", "a lookup reads while a resize remaps", without_guard("TimeIndex", "lookup", "inRemapReadLock")
    ),
    "entry-while-remapped": Planted(
        "offset", "an entry is read while a resize remaps", without_guard("OffsetIndex", "entry", "inRemapReadLock")
    ),
    "flush-while-remapped": Planted(
        "offset", "a flush forces memory that a resize unmaps", without_guard("AbstractIndex", "flush", "inLock")
    ),
    "close-while-mapped": Planted(
        "lazy",
        "an index is unmapped while lookups read",
        without_guard("AbstractIndex", "closeHandler", "inRemapWriteLock"),
    ),
    "index-loaded-twice": Planted("lazy", "two threads load an index", without_lock("LazyIndex", "get")),
    "renamed-while-loaded": Planted(
        "lazy", "a file is renamed while its index is loaded", without_lock("LazyIndex", "renameTo")
    ),
    "deleted-while-loaded": Planted(
        "lazy", "a file is deleted while its index is loaded", without_lock("LazyIndex", "deleteIfExists")
    ),
    "largest-timestamp-without-lock": Planted(
        "opened",
        "a largest timestamp that is read overwrites a newer one (KAFKA-19407)",
        without_lock("LogSegment", "readMaxTimestampAndOffsetSoFar"),
    ),
    "entry-lookup-without-lock": Planted(
        "cache",
        "an entry of the cache is read while its files go",
        without_lock("RemoteIndexCache$Entry", "lookupOffset"),
    ),
    "cache-closed-without-lock": Planted(
        "cache", "the cache is closed while an entry is loaded", without_lock("RemoteIndexCache", "close")
    ),
}
"""Planted races by name."""


class Found(NamedTuple):
    """Result of a search for a planted race.

    Attributes:
        name: name of the race.
        seed: seed of the scenarios.
        pairs: number of pairs (an interrupted operation, and others in its middle) that were searched.
        pair: the first pair that is not atomic, and is so in no unchanged release; None if the race was not found.
    """

    name: str
    seed: int
    pairs: int
    pair: Pair | None


def find_planted(patterns: Sequence[str], seeds: Sequence[int], release: str, scratch: Path) -> Iterator[Found]:
    """Search for the planted races whose names match a pattern, once from each seed.

    Raises:
        ToolError: the release does not have the code that a race changes.
    """
    for name, planted in PLANTED.items():
        if any(fnmatchcase(name, pattern) for pattern in patterns):
            interrupter = Interrupter(release, scratch / name, change=planted.change)
            for seed in seeds:
                yield _search(name, planted, interrupter, release, seed)


def _search(name: str, planted: Planted, interrupter: Interrupter, release: str, seed: int) -> Found:
    known, pairs = KnownPairs(), 0
    for number in range(_EXAMPLES):
        for case in draw_scenario(planted.kind, seed, number).cases(planted.kind):
            pairs += 1
            pair = interrupter.interrupt(case)
            if pair.violations and known.clause_of(pair, release) is None:
                return Found(name, seed, pairs, pair)
    return Found(name, seed, pairs, None)
