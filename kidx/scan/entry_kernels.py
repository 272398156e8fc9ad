"""Compiled selection of indexed batches, and compiled lookups; imported only where it is used."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from kidx.scan.jit import kernel

Array = np.ndarray[Any, Any]


@kernel
def _entry_slots(positions: Any, interval: int, found: Any) -> int:
    """Write the numbers of the batches that get an index entry into ``found``; return how many they are."""
    count, last = 0, 0
    for slot in range(len(positions)):
        if positions[slot] - last > interval:
            found[count] = slot
            count += 1
            last = positions[slot]
    return count


def entry_slots(positions: Array, interval: int) -> Array:
    """Return the numbers of the batches that get an index entry (SEG-4): int64, ascending."""
    found = np.empty(len(positions), np.int64)
    return found[: _entry_slots(positions, interval, found)]


_NEAR: Final = 8
"""Number of keys after the last result in which the next one is searched first: they are adjacent in memory."""


@kernel
def _guess_slots(keys: Any, targets: Any, slots: Any) -> None:
    """Find the last key not above each target, among increasing keys: a guess, then doubling steps, then bisection.

    The last result is the guess if the target follows closely, as in sorted targets.
    """
    count = len(keys)
    first, last = keys[0], keys[count - 1]
    scale = (count - 1) / max(1.0, np.float64(last) - np.float64(first))
    low: Any = 0
    for number in range(len(targets)):
        target = targets[number]
        if target < first:
            slots[number] = -1
            continue
        if target >= last:
            slots[number] = count - 1
            continue
        if target < keys[low] or target >= keys[min(count - 1, low + _NEAR)]:
            low = min(count - 2, np.int64((np.float64(target) - np.float64(first)) * scale))
        step = 1
        if keys[low] <= target:
            high = low + 1
            while high < count and keys[high] <= target:
                low, step = high, 2 * step
                high = min(count, low + step)
        else:
            high, low = low, low - 1
            while keys[low] > target:
                high, step = low, 2 * step
                low = max(0, high - step)
        while high - low > 1:
            middle = (low + high) >> 1
            if keys[middle] <= target:
                low = middle
            else:
                high = middle
        slots[number] = low


@kernel
def _search_slots(keys: Any, targets: Any, warm: int, slots: Any) -> None:
    """Find the lower bounds of :func:`kidx.index.search.warm_search`, also if keys do not increase."""
    count = len(keys)
    for number in range(len(targets)):
        target = targets[number]
        low, high = max(0, count - 1 - warm), count - 1
        if keys[low] >= target:
            if keys[0] > target:
                slots[number] = -1
                continue
            low, high = 0, low
        while low < high:
            middle = (low + high + 1) >> 1
            if keys[middle] > target:
                high = middle - 1
            elif keys[middle] < target:
                low = middle
            else:
                low = high = middle
        slots[number] = low


@kernel
def _gather_entries(keys: Any, values: Any, slots: Any, first: int, second: int, found: Any) -> None:
    """Write key and value of some slots into ``found``, and ``first, second`` for slot -1."""
    for number in range(len(slots)):
        slot = slots[number]
        found[number, 0] = keys[slot] if slot >= 0 else first
        found[number, 1] = values[slot] if slot >= 0 else second


def gather_entries(keys: Array, values: Array, slots: Array, none: tuple[int, int]) -> Array:
    """Return key and value of some slots, or ``none`` for slot -1: int64, shape (n, 2)."""
    found = np.empty((len(slots), 2), np.int64)
    _gather_entries(keys, values, slots, *none, found)
    return found


def lookup_slots(keys: Array, targets: Array, warm: int, *, ordered: bool) -> Array:
    """Return the slots found for some targets, -1 for none: int64.

    ``warm`` is the number of entries in the warm section; ``ordered`` is True if the keys increase.
    """
    slots = np.full(len(targets), -1, np.int64)
    if len(keys) and ordered:
        _guess_slots(keys, targets, slots)
    elif len(keys):
        _search_slots(keys, targets, warm, slots)
    return slots
