"""Mutations of the contents of index and log files: of random bytes, or of whole entries and batches.

All choices come from a random number generator: Python's own, which is fast, or one of
Hypothesis, whose buffer a coverage-guided fuzzer chooses.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from random import Random
from typing import Any, Final, TypeVar

from hypothesis import strategies as st

from kidx.java_values import INT_MAX, INT_MIN, LONG_MAX, LONG_MIN
from kidx.layout import ABORTED_TXN, MESSAGE_V1, OFFSET_INDEX, RECORD_BATCH, TIME_INDEX, Layout
from kidx.layout import LOG_OVERHEAD as _LOG_OVERHEAD
from kidx.records.builder import write_checksum

LARGEST: Final = 1 << 16
"""Maximum size in bytes of a content, which limits the memory."""

_LAYOUTS: Final[dict[str, Layout]] = {
    "offset": OFFSET_INDEX,
    "time": TIME_INDEX,
    "txn": ABORTED_TXN,
    "log": RECORD_BATCH,
}
_EDGE_VALUES: Final = (0, 1, -1, 2, 5, 0x7F, 0x80, 0xFF, 0x7FFF, 0x8000, INT_MAX, INT_MIN, LONG_MAX, LONG_MIN)
_TAILS: Final = (1, 4, 8, 12, 34, 61, 96, 1200)
"""Numbers of zero bytes that a mutation appends."""

_Choice = TypeVar("_Choice")


def mutated(rng: Random, format_name: str, known: Sequence[bytes]) -> bytes:
    """Return a known content with one to four changes.

    Args:
        rng: The random number generator.
        format_name: ``offset``, ``time``, ``txn`` or ``log``.
    """
    data = bytearray(_one(rng, known))
    for _ in range(1 + _below(rng, 4)):
        if _below(rng, 2):
            _one(rng, _UNSTRUCTURED)(rng, data)
        else:
            _one(rng, _STRUCTURED)(rng, data, format_name, known)
        del data[LARGEST:]
    if format_name == "log" and _below(rng, 2):
        repair_checksums(data)
    return bytes(data)


def contents(format_name: str, known: Sequence[bytes]) -> st.SearchStrategy[bytes]:
    """Return a Hypothesis strategy for mutated contents, for coverage-guided fuzzing with ``fuzz_one_input``.

    Args:
        format_name: The format, as for :func:`mutated`.
        known: The known contents; the sequence may grow while the strategy is in use.
    """
    return st.randoms(use_true_random=False).map(lambda rng: mutated(rng, format_name, known))


def _below(rng: Random, end: int) -> int:
    return int(rng.random() * end)  # takes a third of the time of randrange


def _one(rng: Random, choices: Sequence[_Choice]) -> _Choice:
    return choices[_below(rng, len(choices))]


def repair_checksums(data: bytearray) -> None:
    """Write a correct checksum into every complete batch, so that cases reach the code after the check."""
    starts = _batch_starts(data)
    for start, end in pairwise([*starts, len(data)]):
        magic_at = start + RECORD_BATCH.field("magic").offset
        if magic_at >= len(data):
            return
        layout = RECORD_BATCH if data[magic_at] == 2 else MESSAGE_V1
        if start + layout.field("crc").offset + 4 <= end <= len(data):
            write_checksum(data, start, end, layout)


def _batch_starts(data: bytearray) -> list[int]:
    starts, at = [], 0
    while at + _LOG_OVERHEAD <= len(data):
        size = int.from_bytes(data[at + 8 : at + 12], "big", signed=True)
        starts.append(at)
        if size < 14:
            break
        at += _LOG_OVERHEAD + size
    return starts


def _starts(data: bytearray, format_name: str) -> Sequence[int]:
    """Return the positions of all entries or batches."""
    if format_name == "log":
        return _batch_starts(data)
    size = _LAYOUTS[format_name].size
    return range(0, len(data) - size + 1, size)


def _place(rng: Random, data: bytearray, format_name: str) -> tuple[int, int] | None:
    """Return start and end of a random entry or batch, half of the time of one of the last four."""
    starts = _starts(data, format_name)
    if not starts:
        return None
    count = len(starts)
    number = _below(rng, count) if _below(rng, 2) else max(0, count - 1 - _below(rng, 4))
    return starts[number], starts[number + 1] if number + 1 < count else len(data)


def _change(rng: Random, data: bytearray, format_name: str, _known: Sequence[bytes]) -> None:
    """Change one field of one entry; only the low bits of the value are used."""
    place = _place(rng, data, format_name)
    field = _one(rng, _LAYOUTS[format_name].fields)
    if place is None or place[0] + field.offset + field.size > len(data):
        return
    at, size = place[0] + field.offset, field.size
    how = _below(rng, 3)
    if how == 0:
        value = _one(rng, _EDGE_VALUES)
    elif how == 1:
        value = _below(rng, 304) - 3
    else:
        value = int.from_bytes(data[at : at + size], "big", signed=True) + _below(rng, 7) - 3
    _LAYOUTS[format_name].set(data, field.name, value, place[0])


def _swap(rng: Random, data: bytearray, format_name: str, _known: Sequence[bytes]) -> None:
    places = {place for place in (_place(rng, data, format_name), _place(rng, data, format_name)) if place}
    if len(places) == 2:
        (a, b), (c, d) = sorted(places)
        data[a:d] = data[c:d] + data[b:c] + data[a:b]


def _repeat(rng: Random, data: bytearray, format_name: str, _known: Sequence[bytes]) -> None:
    if place := _place(rng, data, format_name):
        data[place[1] : place[1]] = data[slice(*place)]


def _drop(rng: Random, data: bytearray, format_name: str, _known: Sequence[bytes]) -> None:
    if place := _place(rng, data, format_name):
        del data[slice(*place)]


def _cut(rng: Random, data: bytearray, format_name: str, _known: Sequence[bytes]) -> None:
    if place := _place(rng, data, format_name):
        del data[max(0, place[0] + _below(rng, 90) - 20) :]


def _splice(rng: Random, data: bytearray, format_name: str, known: Sequence[bytes]) -> None:
    """Insert an entry or batch of another content, or replace one."""
    other = bytearray(_one(rng, known)[:LARGEST])
    source, target = _place(rng, other, format_name), _place(rng, data, format_name)
    if source is None:
        return
    at, end = target or (len(data), len(data))
    data[at : end if _below(rng, 2) else at] = other[slice(*source)]


def _tail(rng: Random, data: bytearray, _format_name: str, _known: Sequence[bytes]) -> None:
    data.extend(bytes(_one(rng, _TAILS)))


def _splice_records(rng: Random, data: bytearray, format_name: str, known: Sequence[bytes]) -> None:
    """Replace the records of a batch by the records of another batch, with their record count and length."""
    other = bytearray(_one(rng, known)[:LARGEST])
    source, target = _place(rng, other, format_name), _place(rng, data, format_name)
    size = RECORD_BATCH.size
    if format_name != "log" or source is None or target is None:
        return
    if source[1] - source[0] < size or target[1] - target[0] < size:
        return
    data[target[0] + size : target[1]] = other[source[0] + size : source[1]]
    count = RECORD_BATCH.field("record_count")
    data[target[0] + count.offset : target[0] + size] = other[source[0] + count.offset : source[0] + size]
    length = source[1] - source[0] - _LOG_OVERHEAD
    RECORD_BATCH.set(data, "length", length, target[0])


def _renumber(rng: Random, data: bytearray, format_name: str, _known: Sequence[bytes]) -> None:
    """Give the batches of a log consecutive base offsets."""
    if format_name != "log":
        return
    offset = _below(rng, 40)
    for at in _batch_starts(data):
        RECORD_BATCH.set(data, "base_offset", offset, at)
        last = at + RECORD_BATCH.field("last_offset_delta").offset
        offset += 1 + int.from_bytes(data[last : last + 4], "big") % 64


def _flip(rng: Random, data: bytearray) -> None:
    if data:
        data[_below(rng, len(data))] ^= 1 << _below(rng, 8)


def _some_bytes(rng: Random) -> bytes:
    size = 1 + _below(rng, 16)
    return _below(rng, 1 << 8 * min(size, 6)).to_bytes(size, "big")


def _overwrite(rng: Random, data: bytearray) -> None:
    new, start = _some_bytes(rng), _below(rng, len(data) + 1)
    data[start : start + len(new)] = new


def _insert(rng: Random, data: bytearray) -> None:
    start = _below(rng, len(data) + 1)
    data[start:start] = _some_bytes(rng)


def _delete(rng: Random, data: bytearray) -> None:
    start = _below(rng, len(data) + 1)
    del data[start : start + 1 + _below(rng, 40)]


# Mutations of entries or batches; a mutation that is listed more than once is more frequent.
_STRUCTURED: Final = (
    _change,
    _change,
    _change,
    _swap,
    _repeat,
    _drop,
    _cut,
    _splice,
    _tail,
    _splice_records,
    _renumber,
)
_UNSTRUCTURED: Final = (_flip, _overwrite, _insert, _delete)


def every_flip(content: bytes) -> list[tuple[int, int, bytes]]:
    """Return every content that differs in one bit, each as (byte, bit, content)."""
    flips: list[tuple[int, int, Any]] = []
    for at in range(len(content)):
        for bit in range(8):
            data = bytearray(content)
            data[at] ^= 1 << bit
            flips.append((at, bit, bytes(data)))
    return flips
