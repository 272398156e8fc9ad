"""The binary search of a broker's look-ups: warm section first (AI-30 … AI-36), and the plain one before it.

Kafka appends at the end and most look-ups are near the end, but a plain binary search walks through the middle of the
file, and the pages it walks through change whenever the file grows by a page: sooner or later every follower and every
consumer waits for a page that has long left memory (KAFKA-6432). So the search first asks whether the target is in the
last 8192 bytes, and only otherwise looks at the rest.

Both searches give both bounds: the slot of the largest key ≤ target and of the smallest key ≥ target, -1 for none. On
unsorted or damaged content they give exactly what Kafka's loops give, which is why the loops look as they do.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple, Protocol

from kidx.layout import OFFSET_INDEX, PAGE_BYTES, TIME_INDEX, WARM_SECTION_BYTES

if TYPE_CHECKING:
    from typing_extensions import Buffer

_WARM_OFFSETS: Final = WARM_SECTION_BYTES // OFFSET_INDEX.size
_WARM_TIMES: Final = WARM_SECTION_BYTES // TIME_INDEX.size
_TIME_ENTRY: Final = TIME_INDEX.size
_timestamp_at: Final = TIME_INDEX.codec("timestamp").unpack_from  # which is a time entry's first field

Read = Callable[["Buffer", int], tuple[Any, ...]]
"""Reads the key at a byte position, as ``struct.Struct.unpack_from`` does."""


class Probe(NamedTuple):
    """One comparison of a search: which slot, which 4 KiB page of the file, in which half of the index."""

    slot: int
    page: int
    half: Literal["warm", "cold"]


ProbeCallback = Callable[[Probe], None]


class Keys(NamedTuple):
    """The keys of a file of fixed-size entries: ``read(data, slot * stride + shift)[0]`` is the key of a slot."""

    read: Read
    data: Buffer
    stride: int
    shift: int

    @property
    def warm_entries(self) -> int:
        """Entries in the warm section: 1,024 for ``.index``, 682 for ``.timeindex`` (AI-30)."""
        return WARM_SECTION_BYTES // self.stride

    def watched(self, entries: int, probe: ProbeCallback) -> Keys:
        """The same keys; ``probe`` is called with each reading of one."""
        first_warm = max(0, entries - 1 - self.warm_entries)

        def read(data: Buffer, position: int) -> tuple[Any, ...]:
            slot = position // self.stride
            probe(Probe(slot, position // PAGE_BYTES, "warm" if slot >= first_warm else "cold"))
            return self.read(data, position)

        return self._replace(read=read)


Search = Callable[[Keys, int, int], tuple[int, int]]
"""Finds both bounds of a target among the keys of that many entries: ``warm_search`` or ``plain_search``."""


def warm_search(keys: Keys, entries: int, target: int) -> tuple[int, int]:
    """Both bounds of ``target``, looking at the warm section first (AI-31, AI-32).

    Returns:
        ``(lower, upper)``: slots, -1 for "none". The halving never compares the slot it begins with, so the upper
        bound of a target equal to the very first key is the *next* slot, not that one (AI-43).
    """
    if entries == 0:
        return -1, -1
    first_warm = max(0, entries - 1 - keys.warm_entries)
    read, data, stride, shift = keys
    if read(data, first_warm * stride + shift)[0] < target:
        return _bisect(keys, entries, target, first_warm, entries - 1)
    if read(data, shift)[0] > target:
        return -1, 0
    return _bisect(keys, entries, target, 0, first_warm)


class Ints(Protocol):
    """Gives the number at a place."""

    def __getitem__(self, place: int, /) -> int: ...


def offset_floor(ints: Ints, entries: int, target: int) -> int:
    """The lower bound that :func:`warm_search` finds among relative offsets, by the same comparisons, in half the time.

    Serves look-ups without a probe: reading a key is one step of the interpreter here, without a call.

    Args:
        ints: the content of an ``.index``: relative offset, position, relative offset and so on.
        entries: how many of these pairs there are.
        target: relative, like the keys.
    """
    if entries == 0:
        return -1
    low, behind = entries - 1 - _WARM_OFFSETS if entries > _WARM_OFFSETS else 0, entries
    if ints[low + low] >= target:
        if ints[0] > target:
            return -1
        low, behind = 0, low + 1
    while (middle := (low + behind) >> 1) > low:
        key = ints[middle + middle]
        if key > target:
            behind = middle
        elif key < target:
            low = middle
        else:
            return middle
    return low


def timestamp_floor(data: Buffer, entries: int, target: int) -> int:
    """The lower bound that :func:`warm_search` finds among timestamps, by the same comparisons, without its calls.

    Args:
        data: the content of a ``.timeindex``.
        entries: how many there are.
        target: milliseconds.
    """
    if entries == 0:
        return -1
    low, behind = entries - 1 - _WARM_TIMES if entries > _WARM_TIMES else 0, entries
    if _timestamp_at(data, low * _TIME_ENTRY)[0] >= target:
        if _timestamp_at(data, 0)[0] > target:
            return -1
        low, behind = 0, low + 1
    while (middle := (low + behind) >> 1) > low:
        key = _timestamp_at(data, middle * _TIME_ENTRY)[0]
        if key > target:
            behind = middle
        elif key < target:
            low = middle
        else:
            return middle
    return low


def plain_search(keys: Keys, entries: int, target: int) -> tuple[int, int]:
    """Both bounds of ``target`` by the search of Kafka before KAFKA-6432 (1.1 and older); same answers if sorted."""
    if entries == 0:
        return -1, -1
    if keys.read(keys.data, keys.shift)[0] > target:
        return -1, 0
    return _bisect(keys, entries, target, 0, entries - 1)


def _bisect(keys: Keys, entries: int, target: int, low: int, high: int) -> tuple[int, int]:
    """The loop of AI-33: an equal key ends it at once, for either bound."""
    read, data, stride, shift = keys
    behind = high + 1
    while (middle := (low + behind) >> 1) > low:
        key = read(data, middle * stride + shift)[0]
        if key > target:
            behind = middle
        elif key < target:
            low = middle
        else:
            return middle, middle
    return low, -1 if low == entries - 1 else low + 1
