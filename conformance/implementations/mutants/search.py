"""Defects of the search (AI-30 … AI-36, AI-43): the warm section, the halving, the bounds."""

from __future__ import annotations

from typing import Any

from conformance.implementations.mutants.registry import defect
from kidx import OffsetIndex, TimeIndex
from kidx.index.search import Keys, Search, plain_search, warm_search
from kidx.java_numbers import to_int


class _Searching:
    """Base of an index class with another search for every query."""

    look: Search

    def lookup(self, *target: Any, **options: Any) -> Any:
        return super().lookup(*target, **(options | {"search": type(self).look}))  # type: ignore[misc]

    def _bounds(self, *target: Any, **options: Any) -> Any:
        return super()._bounds(*target, **(options | {"search": type(self).look}))  # type: ignore[misc]


def _key(keys: Keys, slot: int) -> int:
    key: int = keys.read(keys.data, slot * keys.stride + keys.shift)[0]
    return key


def _halve(keys: Keys, entries: int, target: int, low: int, high: int) -> tuple[int, int]:
    while low < high:
        middle = (low + high + 1) >> 1
        key = _key(keys, middle)
        if key > target:
            high = middle - 1
        elif key < target:
            low = middle
        else:
            return middle, middle
    return low, -1 if low == entries - 1 else low + 1


def _sectioned(keys: Keys, entries: int, target: int, first_warm: int) -> tuple[int, int]:
    """Return the search with another beginning of the warm section."""
    if entries == 0:
        return -1, -1
    if _key(keys, first_warm) < target:
        return _halve(keys, entries, target, first_warm, entries - 1)
    if _key(keys, 0) > target:
        return -1, 0
    return _halve(keys, entries, target, 0, first_warm)


# -- the warm section --------------------------------------------------------------------------------------------------


@defect("AI-32")
class WarmSectionOneEntryLarger(_Searching, OffsetIndex):
    """The warm section begins one entry earlier."""

    @staticmethod
    def look(keys: Keys, entries: int, target: int) -> tuple[int, int]:
        return _sectioned(keys, entries, target, max(0, entries - 2 - keys.warm_entries))


@defect("AI-32")
class WarmSectionOneEntrySmaller(_Searching, OffsetIndex):
    """The warm section begins one entry later."""

    @staticmethod
    def look(keys: Keys, entries: int, target: int) -> tuple[int, int]:
        return _sectioned(keys, entries, target, max(0, entries - keys.warm_entries))


@defect("AI-30")
class WarmSectionOfAnotherIndex(_Searching, TimeIndex):
    """The warm section of a time index has as many entries as in an offset index."""

    @staticmethod
    def look(keys: Keys, entries: int, target: int) -> tuple[int, int]:
        return _sectioned(keys, entries, target, max(0, entries - 1 - 1024))


@defect("AI-32")
class PlainBinarySearch(_Searching, OffsetIndex):
    """The search of Kafka 1.1: no warm section at all."""

    look = staticmethod(plain_search)


@defect("AI-32")
class TakesTheWarmEdgeForWarm(_Searching, OffsetIndex):
    """A target equal to the first key of the warm section is searched for in it (``<=`` for ``<``)."""

    @staticmethod
    def look(keys: Keys, entries: int, target: int) -> tuple[int, int]:
        if entries:
            first_warm = max(0, entries - 1 - keys.warm_entries)
            if _key(keys, first_warm) == target:
                return _halve(keys, entries, target, first_warm, entries - 1)
        return warm_search(keys, entries, target)


@defect("AI-32")
class ColdHalfOneEntryShort(_Searching, OffsetIndex):
    """The search of the cold half skips the first entry of the warm half."""

    @staticmethod
    def look(keys: Keys, entries: int, target: int) -> tuple[int, int]:
        first_warm = max(0, entries - 1 - keys.warm_entries)
        if first_warm and _key(keys, 0) <= target <= _key(keys, first_warm):
            return _halve(keys, entries, target, 0, first_warm - 1)
        return warm_search(keys, entries, target)


@defect("AI-32")
class LooksUpInTheWrongHalf(_Searching, TimeIndex):
    """A target in the cold half is looked for in the warm one."""

    @staticmethod
    def look(keys: Keys, entries: int, target: int) -> tuple[int, int]:
        first_warm = max(0, entries - 1 - keys.warm_entries)
        if first_warm and _key(keys, 0) <= target < _key(keys, first_warm):
            return _halve(keys, entries, target, first_warm, entries - 1)
        return warm_search(keys, entries, target)


@defect("AI-32")
class SkipsTheFirstKey(_Searching, TimeIndex):
    """A target before all entries is only detected if there is a cold half."""

    @staticmethod
    def look(keys: Keys, entries: int, target: int) -> tuple[int, int]:
        if 0 < entries <= keys.warm_entries and _key(keys, 0) > target:
            return 0, 0
        return warm_search(keys, entries, target)


# -- the halving -------------------------------------------------------------------------------------------------------


@defect("AI-33")
class StopsOneEarly(_Searching, OffsetIndex):
    """The halving ends while two slots are left, and answers with the lower one."""

    @staticmethod
    def look(keys: Keys, entries: int, target: int) -> tuple[int, int]:
        lower, upper = warm_search(keys, entries, target)
        if lower > 0 and lower == upper and lower == entries - 1:
            return lower - 1, lower
        return lower, upper


@defect("AI-33")
class LeavesOutTheLastEntry(_Searching, TimeIndex):
    """The upper end of the search is taken for exclusive."""

    @staticmethod
    def look(keys: Keys, entries: int, target: int) -> tuple[int, int]:
        return warm_search(keys, entries - 1, target) if entries > 1 else warm_search(keys, entries, target)


@defect("AI-33")
class BoundBehindTheEnd(_Searching, OffsetIndex):
    """Above the last key the upper bound is the last slot instead of none."""

    @staticmethod
    def look(keys: Keys, entries: int, target: int) -> tuple[int, int]:
        lower, upper = warm_search(keys, entries, target)
        return (lower, lower) if entries and upper == -1 else (lower, upper)


@defect("AI-36")
class GoesBackToTheFirstEqualKey(_Searching, OffsetIndex):
    """Of equal keys the first one is answered with, not the one met first."""

    @staticmethod
    def look(keys: Keys, entries: int, target: int) -> tuple[int, int]:
        lower, upper = warm_search(keys, entries, target)
        while 0 < lower == upper and _key(keys, lower - 1) == target:
            lower = upper = lower - 1
        return lower, upper


@defect("AI-36")
class GoesOnToTheLastEqualKey(_Searching, TimeIndex):
    """Of equal keys the last one is answered with, not the one met first."""

    @staticmethod
    def look(keys: Keys, entries: int, target: int) -> tuple[int, int]:
        lower, upper = warm_search(keys, entries, target)
        while lower >= 0 and lower + 1 < entries and _key(keys, lower + 1) == target == _key(keys, lower):
            lower = upper = lower + 1
        return lower, upper


@defect("AI-43")
class MendsTheFirstUpperBound(_Searching, OffsetIndex):
    """The upper bound of a target equal to the first key is that key, which would be right but differs from Kafka."""

    @staticmethod
    def look(keys: Keys, entries: int, target: int) -> tuple[int, int]:
        if entries and _key(keys, 0) == target:
            lower, _ = warm_search(keys, entries, target)
            return lower, lower
        return warm_search(keys, entries, target)


@defect("AI-31")
class FindsSomethingInNothing(_Searching, OffsetIndex):
    """An empty index is searched as if it held the entry in its first slot."""

    @staticmethod
    def look(keys: Keys, entries: int, target: int) -> tuple[int, int]:
        return warm_search(keys, entries or (1 if len(memoryview(keys.data)) >= keys.stride else 0), target)


@defect("AI-33")
class SearchesTheTail(_Searching, OffsetIndex):
    """The search covers all slots of the file, the preallocated ones too."""

    @staticmethod
    def look(keys: Keys, entries: int, target: int) -> tuple[int, int]:
        slots = len(memoryview(keys.data)) // keys.stride
        return warm_search(keys, slots if entries else 0, target)


@defect("AI-33")
class ComparesInts(_Searching, OffsetIndex):
    """The target is compared as a number of 32 bits."""

    @staticmethod
    def look(keys: Keys, entries: int, target: int) -> tuple[int, int]:
        return warm_search(keys, entries, to_int(target))


@defect("AI-33")
class ComparesUnsigned(_Searching, TimeIndex):
    """Keys and targets are compared as unsigned numbers."""

    @staticmethod
    def look(keys: Keys, entries: int, target: int) -> tuple[int, int]:
        def read(data: Any, position: int) -> tuple[int]:
            return (keys.read(data, position)[0] & 0xFFFFFFFFFFFFFFFF,)

        return warm_search(keys._replace(read=read), entries, target & 0xFFFFFFFFFFFFFFFF)
