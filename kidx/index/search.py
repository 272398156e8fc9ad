"""Binary searches of a broker's lookups: warm section first (AI-30 … AI-36), or plain, as in Kafka 1.1 and older.

Kafka appends at the end and most lookups are near the end, but a plain binary search probes the middle of the file, and
the pages it probes change whenever the file grows by a page. Sooner or later every follower and every consumer waits
for a page that left memory long ago (KAFKA-6432). So the search first compares the target with the first key of the
last 8192 bytes, the *warm section*. It searches the rest of the file only if the target is not above that key.

Both searches return both bounds: the slot of the largest key ≤ target and of the smallest key ≥ target, -1 for none. On
unsorted or corrupt content they return exactly what Kafka's loops return, which is why the loops are written this way.
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
_timestamp_at: Final = TIME_INDEX.codec("timestamp").unpack_from  # the first field of a time entry

Read = Callable[["Buffer", int], tuple[Any, ...]]
"""Function that reads the key at a byte position, as ``struct.Struct.unpack_from`` does."""


class Probe(NamedTuple):
    """One comparison of a search: the slot compared, its 4 KiB page of the file, and the section, warm or cold."""

    slot: int
    page: int
    section: Literal["warm", "cold"]


ProbeCallback = Callable[[Probe], None]
"""Function that receives every comparison of a search, before the key is read."""


class Keys(NamedTuple):
    """Keys of a file of fixed-size entries: ``read(data, slot * stride + shift)[0]`` is the key of a slot."""

    read: Read
    data: Buffer
    stride: int
    shift: int

    @property
    def warm_entries(self) -> int:
        """Number of entries in the warm section: 1,024 for ``.index``, 682 for ``.timeindex`` (AI-30)."""
        return WARM_SECTION_BYTES // self.stride

    def with_probe(self, entries: int, probe: ProbeCallback) -> Keys:
        """Return the same keys; each read of a key calls ``probe``."""
        first_warm = max(0, entries - 1 - self.warm_entries)

        def read(data: Buffer, position: int) -> tuple[Any, ...]:
            slot = position // self.stride
            probe(Probe(slot, position // PAGE_BYTES, "warm" if slot >= first_warm else "cold"))
            return self.read(data, position)

        return self._replace(read=read)


Search = Callable[[Keys, int, int], tuple[int, int]]
"""Function of keys, number of entries and target that returns both bounds: ``warm_search`` or ``plain_search``."""


def warm_search(keys: Keys, entries: int, target: int) -> tuple[int, int]:
    """Return both bounds of ``target``; the warm section is searched first (AI-31, AI-32).

    Returns:
        ``(lower, upper)``: slots, -1 for "none". The bisection never compares the slot it starts with, so the upper
            bound of a target equal to the first key is the *next* slot, not the first (AI-43).
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
    """Sequence of integers."""

    def __getitem__(self, index: int, /) -> int: ...


def offset_floor(ints: Ints, entries: int, target: int) -> int:
    """Return the lower bound of :func:`warm_search` among relative offsets, by the same comparisons in half the time.

    Lookups without a probe use it, because it reads a key without a function call.

    Args:
        ints: the content of an ``.index``: relative offset, position, relative offset and so on.
        entries: number of these pairs.
        target: relative offset, like the keys.
    """
    if entries == 0:
        return -1
    low, end = entries - 1 - _WARM_OFFSETS if entries > _WARM_OFFSETS else 0, entries
    if ints[low + low] >= target:
        if ints[0] > target:
            return -1
        low, end = 0, low + 1
    while (middle := (low + end) >> 1) > low:
        key = ints[middle + middle]
        if key > target:
            end = middle
        elif key < target:
            low = middle
        else:
            return middle
    return low


def timestamp_floor(data: Buffer, entries: int, target: int) -> int:
    """Return the lower bound of :func:`warm_search` among timestamps, by the same comparisons without its calls.

    Args:
        data: the content of a ``.timeindex``.
        entries: number of entries in ``data``.
        target: timestamp in milliseconds.
    """
    if entries == 0:
        return -1
    low, end = entries - 1 - _WARM_TIMES if entries > _WARM_TIMES else 0, entries
    if _timestamp_at(data, low * _TIME_ENTRY)[0] >= target:
        if _timestamp_at(data, 0)[0] > target:
            return -1
        low, end = 0, low + 1
    while (middle := (low + end) >> 1) > low:
        key = _timestamp_at(data, middle * _TIME_ENTRY)[0]
        if key > target:
            end = middle
        elif key < target:
            low = middle
        else:
            return middle
    return low


def plain_search(keys: Keys, entries: int, target: int) -> tuple[int, int]:
    """Return both bounds as Kafka before KAFKA-6432 did (1.1 and older); the result is the same on sorted keys."""
    if entries == 0:
        return -1, -1
    if keys.read(keys.data, keys.shift)[0] > target:
        return -1, 0
    return _bisect(keys, entries, target, 0, entries - 1)


def _bisect(keys: Keys, entries: int, target: int, low: int, high: int) -> tuple[int, int]:
    """Return both bounds by the loop of AI-33: an equal key ends the loop immediately and is both bounds."""
    read, data, stride, shift = keys
    end = high + 1
    while (middle := (low + end) >> 1) > low:
        key = read(data, middle * stride + shift)[0]
        if key > target:
            end = middle
        elif key < target:
            low = middle
        else:
            return middle, middle
    return low, -1 if low == entries - 1 else low + 1
