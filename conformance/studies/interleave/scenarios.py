"""Operations on an index, a segment, a cache or a log that a broker's threads may execute concurrently.

A fetch looks up indexes without a lock, while a replica's thread appends, truncates, rolls, closes and deletes. The
arguments are drawn from a seed. An operation is a string: its name and its arguments, separated by blanks.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Final, NamedTuple


class Case(NamedTuple):
    """Operation that is interrupted, and others that run in its middle.

    Attributes:
        kind: kind of the object on which the operations are called, one of :data:`KINDS`.
        setup: operations that run before.
        first: the operation that is interrupted.
        others: the operations that run in its middle, separated by ``;``.
    """

    kind: str
    setup: tuple[str, ...]
    first: str
    others: str

    @property
    def names(self) -> tuple[str, str]:
        """Names of the operations, without their arguments."""
        return self.first.split()[0], "; ".join(each.split()[0] for each in self.others.split(";"))


class Scenario(NamedTuple):
    """Operations on one object, of which cases are made.

    Attributes:
        setup: operations that run before.
        writers: operations that change the object; operations that run one after another are separated by ``;``.
        readers: operations of other threads.
        exclusive: True if a lock of the broker keeps writers from running in the middle of each other.
        whole: further writers, which run in the middle of readers but are not interrupted.
    """

    setup: tuple[str, ...]
    writers: tuple[str, ...]
    readers: tuple[str, ...]
    exclusive: bool = False
    whole: tuple[str, ...] = ()

    def cases(self, kind: str) -> list[Case]:
        """Return a case for every operation that is interrupted, and every other that runs in its middle."""
        pairs = [pair for writer in self.writers for reader in self.readers for pair in _both(writer, reader)]
        pairs += [(reader, writer) for writer in self.whole for reader in self.readers]
        if not self.exclusive:
            pairs += [(one, two) for one in self.writers for two in self.writers if ";" not in one]
        return [Case(kind, self.setup, first, others) for first, others in dict.fromkeys(pairs)]


def _both(writer: str, reader: str) -> list[tuple[str, str]]:
    return [(reader, writer)] if ";" in writer else [(reader, writer), (writer, reader)]


def _climbing(rng: random.Random, count: int, start: int, least: int, most: int) -> list[int]:
    """Return increasing numbers above ``start``, whose differences are from ``least`` to ``most``."""
    numbers = [start]
    for _ in range(count):
        numbers.append(numbers[-1] + rng.randint(least, most))
    return numbers[1:]


def _offset(rng: random.Random) -> Scenario:
    count = rng.randint(3, 5)
    offsets = _climbing(rng, count + 2, 0, 4, 20)
    positions = _climbing(rng, count + 2, 0, 50, 200)
    keep = rng.randint(1, count - 2)
    cut, shift = offsets[keep] - 1, rng.randint(1, 3)
    size = 8 * rng.randint(count, 30 - 1)
    again = f"append {cut + shift} {positions[keep] - 7};append {offsets[count]} {positions[count] - 9}"
    return Scenario(
        tuple(f"append {offset} {position}" for offset, position in zip(offsets[:count], positions, strict=False)),
        (
            f"append {offsets[count]} {positions[count]}",
            f"truncateTo {cut}",
            f"truncateTo {offsets[0]}",
            "truncate",
            f"resize {size}",
            "trimToValidSize",
            "flush",
            f"truncateTo {cut};{again}",
        ),
        (
            f"lookup {offsets[keep] + 1}",
            f"lookup {cut}",
            f"lookup {offsets[count + 1]}",
            "lastOffset",
            "entries",
            f"entry {keep}",
            "isFull",
            "sanityCheck",
        ),
    )


def _time(rng: random.Random) -> Scenario:
    count = rng.randint(3, 5)
    offsets = _climbing(rng, count + 2, 0, 4, 20)
    times = _climbing(rng, count + 2, 1000, 4, 20)
    keep = rng.randint(1, count - 2)
    cut, shift = offsets[keep] - 1, rng.randint(1, 3)
    size = 12 * rng.randint(count, 20 - 1)
    return Scenario(
        tuple(f"maybeAppend {time} {offset} false" for time, offset in zip(times[:count], offsets, strict=False)),
        (
            f"maybeAppend {times[count]} {offsets[count]} false",
            f"truncateTo {cut}",
            f"truncateTo {offsets[0]}",
            "truncate",
            f"resize {size}",
            "trimToValidSize",
            "flush",
            f"truncateTo {cut};maybeAppend {times[keep] - 1} {cut + shift + 1} false",
        ),
        (
            f"lookup {times[keep] + 1}",
            f"lookup {times[keep] - 1}",
            f"lookup {times[count + 1]}",
            "lastEntry",
            "entries",
            f"entry {keep}",
            "isFull",
            "sanityCheck",
        ),
    )


def _lazy(rng: random.Random) -> Scenario:
    count = rng.randint(2, 4)
    offsets = _climbing(rng, count + 2, 0, 4, 20)
    entries = tuple(f"append {offset} {10 * offset}" for offset in offsets[:count])
    return Scenario(
        (*entries, "reopen"),
        (
            f"truncateTo {offsets[count - 1]}",
            "close",
            "closeHandler",
            "deleteIfExists",
            "renameTo 00000000000000000000.index.deleted",
        ),
        (f"lookup {offsets[count - 1]}", "entries", "file"),
    )


def _segment(rng: random.Random) -> Scenario:
    count = rng.randint(3, 4)
    offsets = _climbing(rng, count + 3, -1, 1, 4)
    times = _climbing(rng, count + 3, 1000, 3, 20)
    keep = rng.randint(1, count - 2)
    cut = offsets[keep]
    append = [f"append {offset} {time}" for offset, time in zip(offsets, times, strict=True)]
    return Scenario(
        tuple(append[:count]),
        (
            append[count],
            f"truncateTo {cut}",
            f"truncateTo {cut};append {cut} {times[keep] + 1};append {offsets[count]} {times[count] + 2}",
            "onBecomeInactiveSegment",
            "close",
            "deleteIfExists",
            "rename .deleted",
            f"abort {offsets[0]} {offsets[1]}",
        ),
        (
            f"read {cut} 100",
            f"find {times[keep]} 0",
            "largestTimestamp",
            "readNextOffset",
            f"collect 0 {offsets[count]}",
            "flush",
        ),
        exclusive=True,
    )


def _opened(rng: random.Random) -> Scenario:
    count = rng.randint(1, 3)
    offsets = _climbing(rng, count + 2, -1, 1, 4)
    times = _climbing(rng, count + 2, 1000, 3, 20)
    append = [f"append {offset} {time}" for offset, time in zip(offsets, times, strict=True)]
    return Scenario(
        (*append[:count], "reopen"),
        (append[count], f"{append[count]};{append[count + 1]}", "onBecomeInactiveSegment"),
        (f"read {offsets[count - 1]} 100", f"find {times[count - 1]} 0", "largestTimestamp"),
        exclusive=True,
    )


def _cache(rng: random.Random) -> Scenario:
    readers = _of_cache(rng)
    return Scenario(
        rng.choice((("hold 0",), ("hold 0", "getIndexEntry 1"))),
        (
            "remove 0",
            "deleteRemoved",
            "remove 0;deleteRemoved",
            "remove 0;getIndexEntry 0",
            "remove 0;getIndexEntry 0;deleteRemoved",
            "close",
            "entryClose",
            "resizeCacheSize 0 1",
        ),
        readers,
    )


def _removed(rng: random.Random) -> Scenario:
    """Draw operations that run during the caching library's late notification of a removal (KAFKA-15481)."""
    return Scenario(("hold 0", "removeOnly 0"), ("notify",), _of_cache(rng))


def _full(rng: random.Random) -> Scenario:
    """Draw operations of a cache with space for one entry, which is used often: others are evicted (KAFKA-19971)."""
    return Scenario(
        ("fetchOften 1",),
        ("notify", "notify;deleteRemoved", "fetchOften 1", "fetchOften 1;deleteRemoved"),
        _of_cache(rng)[:3],
        exclusive=True,
    )


def _of_cache(rng: random.Random) -> tuple[str, ...]:
    offset, time = rng.randint(10, 35), rng.randint(1010, 1035)
    return "getIndexEntry 0", f"lookupOffset 0 {offset}", f"lookupTimestamp 0 {time}", f"entryLookup 0 {offset}"


def _log(rng: random.Random) -> Scenario:
    """Draw operations of a log of three segments, whose high watermark is in the second one.

    The name of a reader ends with the place that it reads: below the high watermark, above it, or in the segment that
    retention deletes (``Expired``).
    """
    offsets = _climbing(rng, 10, -1, 1, 3)
    times = _climbing(rng, 10, 1000, 3, 20)
    append = [f"append {offset} {time}" for offset, time in zip(offsets, times, strict=True)]
    start, below, mark, active, above = offsets[2], offsets[3], offsets[4], offsets[5], offsets[6]
    again = f"append {active} {times[5] + 1};append {above + 1} {times[6] + 3};append {offsets[9]} {times[9]}"
    return Scenario(
        (*append[:2], "roll", *append[2:5], "roll", *append[5:8], "reopen", f"watermark {mark}"),
        (append[8], f"truncateToWatermark {mark}"),
        (
            f"readBelow {below}",
            f"readAbove {active}",
            f"readExpired {offsets[1]}",
            f"timeBelow {times[3]}",
            f"timeAbove {times[6]}",
            "maxTimestamp",
            f"entryBelow {mark}",
            f"entryAbove {offsets[9] + 1}",
            "offsets",
        ),
        exclusive=True,
        whole=(
            f"roll;{append[8]}",
            f"truncateTo {above}",
            f"truncateTo {active};{again}",
            f"truncateToWatermark {mark};deleteFiles",
            f"startAt {start};deleteSegments;deleteFiles",
            f"truncateBelowWatermark {below}",
            f"truncateFully {offsets[9]}",
            "close",
        ),
    )


def _replicated(rng: random.Random) -> Scenario:
    offsets = _climbing(rng, 4, -1, 1, 3)
    times = _climbing(rng, 4, 1000, 3, 20)
    append = [f"append {offset} {time}" for offset, time in zip(offsets, times, strict=True)]
    return Scenario(
        (*append[:2], f"watermark {offsets[1] + 1}"),
        (append[2],),
        (f"readBelow {offsets[0]}", f"timeBelow {times[0]}", f"entryBelow {offsets[1]}", "maxTimestamp", "offsets"),
        exclusive=True,
        whole=(f"{append[2]};{append[3]}", f"roll;{append[2]}"),
    )


_DRAWN: Final[dict[str, Callable[[random.Random], Scenario]]] = {
    "offset": _offset,
    "time": _time,
    "lazy": _lazy,
    "segment": _segment,
    "opened": _opened,
    "cache": _cache,
    "removed": _removed,
    "full": _full,
    "log": _log,
    "replicated": _replicated,
}

KINDS: Final = tuple(_DRAWN)
"""Kinds of objects: an offset index, a time index, an index in a LazyIndex, a segment, a segment that has just been
opened, the cache of remote indexes (also with a removed entry, and full), a log, and a log whose high watermark is its
end."""


def draw_scenario(kind: str, seed: int, number: int = 0) -> Scenario:
    """Return a scenario of a kind; the same seed and number draw the same one."""
    return _DRAWN[kind](random.Random(f"{kind} {seed} {number}"))  # noqa: S311


PLANTED: Final = Scenario((), ("add 1",), ("add 2",))
"""Additions to a counter without a lock, a race that must be detected before a run is trusted."""

CACHES: Final = ("cache", "removed", "full")
"""Kinds that are a cache of remote indexes."""

LOGS: Final = ("log", "replicated")
"""Kinds whose operations two threads execute; only ``--machine`` selects them, because they take long."""

APPENDS: Final = Case("log", (), "append 0 1000", "append 1 1001")
"""Appends to a log, which have to be detected as not atomic if the log takes no lock."""
