"""Kernels of the search of :func:`kidx.index.search.warm_search`, and of its use by a truncation."""

from __future__ import annotations

from typing import Any, Final

from conformance.experiments.fuzz.compiled.encode_kernels import be32, be64
from kidx.layout import WARM_SECTION_BYTES
from kidx.scan.jit import kernel

_WARM: Final = WARM_SECTION_BYTES
_INT: Final = 4


@kernel
def key(data: Any, column: Any, size: Any) -> Any:
    """Return the four-byte or eight-byte number at a position."""
    return be32(data, column) if size == _INT else be64(data, column)


@kernel
def search(data: Any, column: Any, size: Any, stride: Any, entries: Any, target: Any) -> Any:
    """Return the slots of the largest key up to a target and of the smallest key from it on; -1 for none.

    Args:
        data: The bytes of the index.
        column: The position of the key of slot 0.
        size: The size of a key, 4 or 8.
        stride: The size of an entry.
        entries: The number of entries.
        target: The key.
    """
    if entries == 0:
        return -1, -1
    first_warm = max(0, entries - 1 - _WARM // stride)
    low, after = first_warm, entries
    if key(data, column + first_warm * stride, size) >= target:
        if key(data, column, size) > target:
            return -1, 0
        low, after = 0, first_warm + 1
    while True:
        middle = (low + after) >> 1
        if middle <= low:
            break
        found = key(data, column + middle * stride, size)
        if found > target:
            after = middle
        elif found < target:
            low = middle
        else:
            return middle, middle
    return low, -1 if low == entries - 1 else low + 1


@kernel
def entries_below(data: Any, column: Any, stride: Any, entries: Any, relative: Any) -> Any:
    """Return the number of entries that a truncation to a relative offset leaves."""
    slot, _ = search(data, column, _INT, stride, entries, relative)
    if slot < 0:
        return 0
    return slot if be32(data, column + slot * stride) == relative else slot + 1


@kernel
def sampled_slots(slots: Any, count: Any) -> Any:
    """Write the numbers of the first, middle and last of ``count`` slots, sorted; return how many they are."""
    found = 0
    for slot in (0, 1, count // 2, count - 2, count - 1):
        if slot < 0 or slot >= count:
            continue
        place = found
        while place > 0 and slots[place - 1] > slot:
            place -= 1
        if place > 0 and slots[place - 1] == slot:
            continue
        for other in range(found, place, -1):
            slots[other] = slots[other - 1]
        slots[place] = slot
        found += 1
    return found


@kernel
def add_once(numbers: Any, count: Any, number: Any) -> Any:
    """Add a number to sorted ones if it is missing; return their new count."""
    place = count
    while place > 0 and numbers[place - 1] > number:
        place -= 1
    if place > 0 and numbers[place - 1] == number:
        return count
    for other in range(count, place, -1):
        numbers[other] = numbers[other - 1]
    numbers[place] = number
    return count + 1
