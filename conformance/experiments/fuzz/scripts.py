"""What is done with a file of any content: opened, checked, asked everything that a broker asks, rebuilt, closed.

Questions are derived from the content itself, from its first, middle and last entries or batches and their neighbours,
so that they land where a damage shows.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterable
from typing import Any, Final

from conformance.experiments.fuzz.seeds import BASE_OFFSET, TIME
from conformance.operations import Operation
from kidx.errors import KidxError
from kidx.java_numbers import INT_MAX, LONG_MAX, LONG_MIN
from kidx.layout import ABORTED_TXN, OFFSET_INDEX, TIME_INDEX, Layout
from kidx.records import iter_batches

_NAMES: Final = {"offset": "5.index", "time": "5.timeindex", "transaction": "5.txnindex"}
_FEW: Final = 5


def offset_script(content: bytes) -> list[Operation]:
    """An offset index."""
    rows = _rows(OFFSET_INDEX, content)
    offsets = _around(BASE_OFFSET + relative for relative, _ in rows)
    questions = [Operation("lookup", (offset,)) for offset in (*offsets, LONG_MIN, LONG_MAX)]
    questions += [Operation("entry", (slot,)) for slot in _slots(OFFSET_INDEX, content)]
    for _, position in rows:
        questions += [Operation("fetch_upper_bound", (BASE_OFFSET, position, size)) for size in (0, 1, INT_MAX)]
    last = BASE_OFFSET + rows[-1][0] if rows else BASE_OFFSET
    more = [
        Operation("append", (last + 1, 1 << 20)),
        Operation("truncate_to", (last,)),
        Operation("append", (last, 1 << 20)),  # the file was full before
    ]
    return _index_script("offset", content, questions, more)


def time_script(content: bytes) -> list[Operation]:
    """A time index."""
    rows = _rows(TIME_INDEX, content)
    questions = [Operation("lookup", (time,)) for time in (*_around(time for time, _ in rows), LONG_MIN, LONG_MAX)]
    questions += [Operation("entry", (slot,)) for slot in _slots(TIME_INDEX, content)]
    time, relative = rows[-1] if rows else (TIME, 0)
    more = [
        Operation("maybe_append", (min(time + 1, LONG_MAX), BASE_OFFSET + relative + 1, False)),
        Operation("truncate_to", (BASE_OFFSET + relative,)),
        Operation("maybe_append", (min(time + 1, LONG_MAX), BASE_OFFSET + relative, False)),  # the file was full before
    ]
    return _index_script("time", content, questions, more)


def transaction_script(content: bytes) -> list[Operation]:
    """A transaction index."""
    rows = _rows(ABORTED_TXN, content)
    questions = [Operation("all_aborted"), Operation("collect_aborted", (0, LONG_MAX))]
    for row in rows:
        first, last, stable = row[2:5]
        questions += [Operation("collect_aborted", pair) for pair in ((first, last), (last, stable), (stable, stable))]
    last = rows[-1][3] if rows else BASE_OFFSET
    bound = max(0, min(last, LONG_MAX - 1))
    questions = [Operation(name, tuple(max(0, number) for number in args)) for name, args in questions]
    more = [Operation("truncate_to", (bound,)), Operation("append_aborted", (9, 0, bound + 1, bound + 1))]
    return _index_script("transaction", content, questions, more)


def log_script(content: bytes) -> list[Operation]:
    """A log without indexes: read as it is, then recovered, which rebuilds them, then read through them.

    Half of the questions come before the recovery and half behind it; which half is decided by the content, so that
    contents that differ little are asked everything in both ways.
    """
    opening = (BASE_OFFSET, 60, 1200, 0)
    offsets, times = _log_keys(content)
    questions = [Operation("translate_offset", (offset, 0)) for offset in _around(offsets)[: 2 * _FEW]]
    questions += [Operation("find_offset", (time, BASE_OFFSET, 1 << 20)) for time in _around(times)[: 2 * _FEW]]
    questions += [Operation("read_segment", (offset, 100, len(content), True)) for offset in offsets[:_FEW]]
    half = zlib.crc32(content) % 2
    return [
        Operation("open_segment", (*opening, False, 0, False, "", TIME)),
        Operation("crash_segment"),
        Operation("damage_segment_file", (".log", "write_file", (content.hex(),))),
        Operation("open_segment", (*opening, True, 0, False, "", TIME)),
        Operation("read_next_offset"),
        *questions[half::2],
        Operation("has_overflow"),
        Operation("recover_segment"),
        Operation("read_next_offset"),
        *questions[1 - half :: 2],
        Operation("largest_timestamp", (TIME,)),
        Operation("become_inactive"),
        Operation("close_segment"),
    ]


SCRIPTS: Final[dict[str, Callable[[bytes], list[Operation]]]] = {
    "offset": offset_script,
    "time": time_script,
    "txn": transaction_script,
    "log": log_script,
}
MACHINE_OF: Final = {"offset": "offset", "time": "time", "txn": "transaction", "log": "segment"}
"""The machine whose lockstep performs the script, and whose name a trace of it has."""


def _index_script(
    kind: str, content: bytes, questions: Iterable[Operation], more: Iterable[Operation]
) -> list[Operation]:
    def opened(writable: bool) -> Operation:
        return Operation("open", (kind, _NAMES[kind], BASE_OFFSET, 240, writable))

    questions = list(questions)
    reading = [] if kind == "transaction" else [opened(False), Operation("sanity_check"), *questions]
    return [
        opened(True),
        Operation("crash"),
        Operation("write_file", (content.hex(),)),
        *reading,
        *([Operation("crash")] if reading else []),
        opened(True),
        Operation("sanity_check"),
        *questions,
        *more,
        Operation("close"),
    ]


def _rows(layout: Layout, content: bytes) -> list[tuple[Any, ...]]:
    """The entries of the first, middle and last whole slots."""
    size = layout.size
    return [layout.struct.unpack_from(content, slot * size) for slot in _slots(layout, content)]


def _slots(layout: Layout, content: bytes) -> list[int]:
    count = len(content) // layout.size
    return sorted({slot for slot in (0, 1, count // 2, count - 2, count - 1) if 0 <= slot < count})


def _around(numbers: Iterable[int]) -> list[int]:
    """The numbers and their neighbours, as Java longs."""
    near = {number + delta for number in numbers for delta in (-1, 0, 1)}
    return sorted(number for number in near if LONG_MIN <= number <= LONG_MAX)


def _log_keys(content: bytes) -> tuple[list[int], list[int]]:
    """Offsets and timestamps of the batches, as far as they can be read."""
    offsets, times = {BASE_OFFSET}, {TIME}
    try:
        for number, batch in enumerate(iter_batches(content)):
            if number == _FEW:
                break
            offsets |= {batch.base_offset, batch.last_offset}
            times.add(batch.max_timestamp)
    except (KidxError, OSError):
        pass  # the numbers read so far will do; what is wrong is for the participants to say
    return sorted(offsets), sorted(times)
