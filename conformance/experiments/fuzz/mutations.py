"""Which contents are tried: a known one, changed with knowledge of the format and without.

A Hypothesis strategy, so that its buffer can come from anywhere: from random bytes, or from a coverage-guided fuzzer
through ``fuzz_one_input``.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any, Final

import google_crc32c
from hypothesis import strategies as st

from kidx.java_numbers import INT_MAX, INT_MIN, LONG_MAX, LONG_MIN
from kidx.layout import ABORTED_TXN, OFFSET_INDEX, TIME_INDEX, Field, Layout
from kidx.records.layout import CHECKSUMMED_FROM, RECORD_BATCH
from kidx.records.layout import LOG_OVERHEAD as _LOG_OVERHEAD

LARGEST: Final = 1 << 16
"""Bytes of a case at most: memory stays bounded, and nothing here needs more."""

_LAYOUTS: Final[dict[str, Layout]] = {
    "offset": OFFSET_INDEX,
    "time": TIME_INDEX,
    "txn": ABORTED_TXN,
    "log": RECORD_BATCH,
}
_EDGES: Final = (0, 1, -1, 2, 5, 0x7F, 0x80, 0xFF, 0x7FFF, 0x8000, INT_MAX, INT_MIN, LONG_MAX, LONG_MIN)
_TAILS: Final = (1, 4, 8, 12, 34, 61, 96, 1200)

Mutation = Callable[[bytearray], None]


def contents(format_name: str, known: Sequence[bytes]) -> st.SearchStrategy[bytes]:
    """Contents made of known ones.

    Args:
        format_name: ``offset``, ``time``, ``txn`` or ``log``.
        known: contents to begin with; the sequence may grow while the strategy is in use.
    """

    @st.composite
    def made(draw: st.DrawFn) -> bytes:
        data = bytearray(known[draw(st.integers(0, (1 << 16) - 1)) % len(known)])
        structured = _structured(format_name)
        for _ in range(draw(st.integers(1, 4))):
            draw(st.one_of(structured, _UNSTRUCTURED))(data)
            del data[LARGEST:]
        if format_name == "log" and draw(st.booleans()):
            repair_checksums(data)
        return bytes(data)

    return made()


def _structured(format_name: str) -> st.SearchStrategy[Mutation]:
    """Changes to fields, entries and tails."""
    layout = _LAYOUTS[format_name]
    slots = st.integers(-3, 40)
    fields = st.sampled_from(layout.fields)
    values = st.one_of(st.sampled_from(_EDGES), st.integers(-3, 300))
    deltas = st.integers(-3, 3)
    starts = _batch_starts if format_name == "log" else _slot_starts(layout.size)
    return st.one_of(
        st.builds(lambda slot, field, value: _change(starts, slot, field, lambda _: value), slots, fields, values),
        st.builds(lambda slot, field, more: _change(starts, slot, field, more.__add__), slots, fields, deltas),
        st.builds(lambda first, second: _swap(starts, first, second), slots, slots),
        st.builds(lambda slot: _repeat(starts, slot), slots),
        st.builds(lambda slot: _drop(starts, slot), slots),
        st.builds(lambda count: lambda data: data.extend(bytes(count)), st.sampled_from(_TAILS)),
        st.builds(lambda slot, extra: _cut(starts, slot, extra), slots, st.integers(-20, 70)),
    )


_PLACES: Final = st.integers(0, LARGEST)
_UNSTRUCTURED: Final[st.SearchStrategy[Mutation]] = st.one_of(
    st.builds(lambda at, bit: lambda data: _flip(data, at, bit), _PLACES, st.integers(0, 7)),
    st.builds(lambda at, new: lambda data: _overwrite(data, at, new), _PLACES, st.binary(min_size=1, max_size=16)),
    st.builds(lambda at, new: lambda data: _insert(data, at, new), _PLACES, st.binary(min_size=1, max_size=16)),
    st.builds(lambda at, count: lambda data: _delete(data, at, count), _PLACES, st.integers(1, 40)),
)


def repair_checksums(data: bytearray) -> None:
    """Gives every whole batch the checksum of what it says now, so that what lies behind the check is looked at."""
    starts = _batch_starts(data)
    for start, end in pairwise([*starts, len(data)]):
        magic_at = start + RECORD_BATCH.field("magic").offset
        if magic_at >= len(data):
            return
        if data[magic_at] == 2:
            crc_at, checksum = start + RECORD_BATCH.field("crc").offset, google_crc32c.value
            begin = start + CHECKSUMMED_FROM
        else:
            crc_at, checksum = start + _LOG_OVERHEAD, zlib.crc32
            begin = crc_at + 4
        if begin <= end <= len(data):
            data[crc_at : crc_at + 4] = checksum(bytes(data[begin:end])).to_bytes(4, "big")


Starts = Callable[[bytearray], list[int]]


def _slot_starts(size: int) -> Starts:
    return lambda data: list(range(0, len(data) - size + 1, size))


def _batch_starts(data: bytearray) -> list[int]:
    starts, at = [], 0
    while at + _LOG_OVERHEAD <= len(data):
        size = int.from_bytes(data[at + 8 : at + 12], "big", signed=True)
        starts.append(at)
        if size < 14:
            break
        at += _LOG_OVERHEAD + size
    return starts


def _place(starts: Starts, data: bytearray, slot: int) -> tuple[int, int] | None:
    """First byte of a slot, and the one behind it; slots are taken modulo their number."""
    found = starts(data)
    if not found:
        return None
    number = slot % len(found)
    return found[number], found[number + 1] if number + 1 < len(found) else len(data)


def _change(starts: Starts, slot: int, field: Field, change: Callable[[int], int]) -> Mutation:
    """Another value in one field of one slot; whatever the value, its low bits fit."""

    def mutate(data: bytearray) -> None:
        place = _place(starts, data, slot)
        if place is None or place[0] + field.offset + field.size > len(data):
            return
        at, size = place[0] + field.offset, field.size
        value = change(int.from_bytes(data[at : at + size], "big", signed=True)) & ((1 << 8 * size) - 1)
        data[at : at + size] = value.to_bytes(size, "big")

    return mutate


def _swap(starts: Starts, first: int, second: int) -> Mutation:
    def mutate(data: bytearray) -> None:
        places = sorted({place for place in (_place(starts, data, first), _place(starts, data, second)) if place})
        if len(places) == 2:
            (a, b), (c, d) = places
            data[a:d] = data[c:d] + data[b:c] + data[a:b]

    return mutate


def _repeat(starts: Starts, slot: int) -> Mutation:
    def mutate(data: bytearray) -> None:
        if place := _place(starts, data, slot):
            data[place[1] : place[1]] = data[slice(*place)]

    return mutate


def _drop(starts: Starts, slot: int) -> Mutation:
    def mutate(data: bytearray) -> None:
        if place := _place(starts, data, slot):
            del data[slice(*place)]

    return mutate


def _cut(starts: Starts, slot: int, extra: int) -> Mutation:
    def mutate(data: bytearray) -> None:
        if place := _place(starts, data, slot):
            del data[max(0, place[0] + extra) :]

    return mutate


def _flip(data: bytearray, at: int, bit: int) -> None:
    if data:
        data[at % len(data)] ^= 1 << bit


def _overwrite(data: bytearray, at: int, new: bytes) -> None:
    start = at % (len(data) + 1)
    data[start : start + len(new)] = new


def _insert(data: bytearray, at: int, new: bytes) -> None:
    start = at % (len(data) + 1)
    data[start:start] = new


def _delete(data: bytearray, at: int, count: int) -> None:
    start = at % (len(data) + 1)
    del data[start : start + count]


def every_flip(content: bytes) -> list[tuple[int, int, bytes]]:
    """Every content that differs in one bit: byte, bit, content."""
    flips: list[tuple[int, int, Any]] = []
    for at in range(len(content)):
        for bit in range(8):
            data = bytearray(content)
            data[at] ^= 1 << bit
            flips.append((at, bit, bytes(data)))
    return flips
