"""What is done with a file of any content: opened, checked, asked everything that a broker asks, rebuilt, closed.

Questions are derived from the content itself, from its first, middle and last entries or batches and their neighbours,
so that they land where a damage shows.
"""

from __future__ import annotations

import contextlib
import zlib
from collections.abc import Callable, Collection, Iterable
from itertools import islice
from typing import Any, Final, Protocol

from conformance.experiments.fuzz.seeds import BASE_OFFSET, TIME
from conformance.operations import Operation
from kidx.errors import KidxError
from kidx.java_numbers import INT_MAX, LONG_MAX, LONG_MIN
from kidx.layout import ABORTED_TXN, OFFSET_INDEX, TIME_INDEX, Layout
from kidx.records import iter_batches

_NAMES: Final = {"offset": "5.index", "time": "5.timeindex", "transaction": "5.txnindex"}
_FEW: Final = 5
INDEX_INTERVAL: Final = 60
"""Bytes of a log between two entries."""
LOG_INDEX_SIZE: Final = 1200
"""Bytes of a log's new index files."""
BODY_SIZE: Final = 1 << 20
"""Most bytes of a record, in a search by timestamp."""
READ_SIZE: Final = 100
"""Most bytes of a read, if the first batch is not larger."""

Question = tuple[str, tuple[Any, ...]]
"""An operation that changes nothing: its name and its arguments."""


class BatchKeys(Protocol):
    """What of a batch questions are derived from."""

    @property
    def base_offset(self) -> int:
        """Offset of the first record."""

    @property
    def last_offset(self) -> int:
        """Offset of the last one."""

    @property
    def max_timestamp(self) -> int:
        """Largest timestamp."""


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
    opening = (BASE_OFFSET, INDEX_INTERVAL, LOG_INDEX_SIZE, 0)
    before, behind = ([Operation(*each) for each in half] for half in log_questions(content, *_log_keys(content)))
    return [
        Operation("open_segment", (*opening, False, 0, False, "", TIME)),
        Operation("crash_segment"),
        Operation("damage_segment_file", (".log", "write_file", (content.hex(),))),
        Operation("open_segment", (*opening, True, 0, False, "", TIME)),
        Operation("read_next_offset"),
        *before,
        Operation("has_overflow"),
        Operation("recover_segment"),
        Operation("read_next_offset"),
        *behind,
        Operation("largest_timestamp", (TIME,)),
        Operation("become_inactive"),
        Operation("close_segment"),
    ]


def log_questions(content: bytes, offsets: Collection[int], times: Collection[int]) -> tuple[list[Question], ...]:
    """What a log is asked before its recovery, and what behind it.

    Args:
        content: of the log.
        offsets: of its first batches (:func:`keys_of_batches`).
        times: likewise.
    """
    ordered = sorted(offsets)
    questions: list[Question] = [("translate_offset", (offset, 0)) for offset in _around(ordered)[: 2 * _FEW]]
    questions += [("find_offset", (time, BASE_OFFSET, BODY_SIZE)) for time in _around(times)[: 2 * _FEW]]
    questions += [("read_segment", (offset, READ_SIZE, len(content), True)) for offset in ordered[:_FEW]]
    half = zlib.crc32(content) % 2
    return questions[half::2], questions[1 - half :: 2]


def keys_of_batches(batches: Iterable[BatchKeys]) -> tuple[set[int], set[int]]:
    """Offsets and timestamps of the first batches, as far as they can be read."""
    offsets, times = {BASE_OFFSET}, {TIME}
    with contextlib.suppress(KidxError, OSError):  # what is wrong is for the participants to say
        for batch in islice(batches, _FEW):
            offsets |= {batch.base_offset, batch.last_offset}
            times.add(batch.max_timestamp)
    return offsets, times


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


def _log_keys(content: bytes) -> tuple[set[int], set[int]]:
    return keys_of_batches(iter_batches(content))
