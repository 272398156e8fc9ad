"""Defects of the search (AI-30 … AI-36, AI-43): the warm section, the halving, the bounds.

A row is a mutant: violated clause, name, defect, function (the names that lead to it from the class), fragment of its
source (``START``: its beginning), and replacement. A class with ``@defect`` is a mutant, too.
"""

from __future__ import annotations

from typing import Any

from conformance.implementations.mutants.registry import START, Row, defect, plant
from kidx import OffsetIndex, TimeIndex
from kidx.index.search import Keys, Search, plain_search, warm_search


class Searching:
    """Base of an index class with another search for every query: ``look``, of which the rows change fragments."""

    look: Search = staticmethod(warm_search)

    def lookup(self, *target: Any, **options: Any) -> Any:
        return super().lookup(*target, **(options | {"search": type(self).look}))  # type: ignore[misc]

    def _bounds(self, *target: Any, **options: Any) -> Any:
        return super()._bounds(*target, **(options | {"search": type(self).look}))  # type: ignore[misc]


class OffsetSearch(Searching, OffsetIndex):
    """Offset index that passes its search to every query."""


class TimeSearch(Searching, TimeIndex):
    """Time index that passes its search to every query."""


# fmt: off
plant(
    OffsetSearch,
    Row("AI-32", "warm-section-one-entry-larger", "The warm section begins one entry earlier.",
        "look", "entries - 1 - keys.warm_entries", "entries - 2 - keys.warm_entries"),
    Row("AI-32", "warm-section-one-entry-smaller", "The warm section begins one entry later.",
        "look", "entries - 1 - keys.warm_entries", "entries - keys.warm_entries"),
    Row("AI-32", "takes-the-warm-edge-for-warm",
        "A target equal to the first key of the warm section is searched in the warm section (``<=`` for ``<``).",
        "look", "read(data, first_warm * stride + shift)[0] < target",
        "read(data, first_warm * stride + shift)[0] <= target"),
    Row("AI-32", "cold-half-one-entry-short",
        "The search of the cold section excludes the first entry of the warm section.",
        "look", "_bisect(keys, entries, target, 0, first_warm)",
        "_bisect(keys, entries, target, 0, max(0, first_warm - 1))"),
    Row("AI-33", "bound-behind-the-end", "Above the last key the upper bound is the last slot instead of none.",
        "look._bisect", "-1 if low == entries - 1 else low + 1", "low if low == entries - 1 else low + 1"),
    Row("AI-31", "finds-something-in-nothing", "An empty index is searched as if it had one entry.",
        "look", START, "entries = entries or int(len(memoryview(keys.data)) >= keys.stride)"),
    Row("AI-33", "searches-the-tail", "The search covers all slots of the file, the preallocated ones too.",
        "look", START, "entries = len(memoryview(keys.data)) // keys.stride if entries else 0"),
    Row("AI-33", "compares-ints", "The target is compared as a number of 32 bits.",
        "look", START, "target = (target + 2**31) % 2**32 - 2**31"),
)

plant(
    TimeSearch,
    Row("AI-30", "warm-section-of-another-index",
        "The warm section of a time index has as many entries as in an offset index.",
        "look", "keys.warm_entries", "1024"),
    Row("AI-32", "looks-up-in-the-wrong-half", "A target in the cold section is searched in the warm section.",
        "look", "_bisect(keys, entries, target, 0, first_warm)",
        "_bisect(keys, entries, target, *((first_warm, entries - 1) if read(data, first_warm * stride + "
        "shift)[0] > target else (0, first_warm)))"),
    Row("AI-32", "skips-the-first-key", "A target before all entries is only detected if there is a cold section.",
        "look", "return -1, 0", "return (0, 0) if entries <= keys.warm_entries else (-1, 0)"),
    Row("AI-33", "leaves-out-the-last-entry", "The search excludes its upper end.",
        "look", START, "entries -= entries > 1"),
)
# fmt: on


def key_of(keys: Keys, slot: int) -> int:
    """Return the key in a slot."""
    key: int = keys.read(keys.data, slot * keys.stride + keys.shift)[0]
    return key


# -- the warm section --------------------------------------------------------------------------------------------------


@defect("AI-32")
class PlainBinarySearch(Searching, OffsetIndex):
    """The search of Kafka 1.1: no warm section at all."""

    look = staticmethod(plain_search)


# -- the halving -------------------------------------------------------------------------------------------------------


@defect("AI-33")
class StopsOneEarly(Searching, OffsetIndex):
    """The search ends with two slots left, and returns the lower one."""

    @staticmethod
    def look(keys: Keys, entries: int, target: int) -> tuple[int, int]:
        lower, upper = warm_search(keys, entries, target)
        if lower > 0 and lower == upper and lower == entries - 1:
            return lower - 1, lower
        return lower, upper


@defect("AI-36")
class GoesBackToTheFirstEqualKey(Searching, OffsetIndex):
    """Of equal keys the first one in the file is returned, not the first one that the search compares."""

    @staticmethod
    def look(keys: Keys, entries: int, target: int) -> tuple[int, int]:
        lower, upper = warm_search(keys, entries, target)
        while 0 < lower == upper and key_of(keys, lower - 1) == target:
            lower = upper = lower - 1
        return lower, upper


@defect("AI-36")
class GoesOnToTheLastEqualKey(Searching, TimeIndex):
    """Of equal keys the last one in the file is returned, not the first one that the search compares."""

    @staticmethod
    def look(keys: Keys, entries: int, target: int) -> tuple[int, int]:
        lower, upper = warm_search(keys, entries, target)
        while lower >= 0 and lower + 1 < entries and key_of(keys, lower + 1) == target == key_of(keys, lower):
            lower = upper = lower + 1
        return lower, upper


@defect("AI-43")
class MendsTheFirstUpperBound(Searching, OffsetIndex):
    """The upper bound of a target equal to the first key is this key, which is correct but differs from Kafka."""

    @staticmethod
    def look(keys: Keys, entries: int, target: int) -> tuple[int, int]:
        if entries and key_of(keys, 0) == target:
            lower, _ = warm_search(keys, entries, target)
            return lower, lower
        return warm_search(keys, entries, target)


@defect("AI-33")
class ComparesUnsigned(Searching, TimeIndex):
    """Keys and targets are compared as unsigned numbers."""

    @staticmethod
    def look(keys: Keys, entries: int, target: int) -> tuple[int, int]:
        def read(data: Any, position: int) -> tuple[int]:
            return (keys.read(data, position)[0] & 0xFFFFFFFFFFFFFFFF,)

        return warm_search(keys._replace(read=read), entries, target & 0xFFFFFFFFFFFFFFFF)
