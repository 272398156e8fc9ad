"""Probes: lists of operations that write a given content to a file, and open, check, query, rebuild and close the file.

The queries are derived from the first, middle and last entries or batches of the content, and from their neighbours, so
that the results show the effect of a corruption.
"""

from __future__ import annotations

import contextlib
import zlib
from collections.abc import Callable, Collection, Iterable
from itertools import islice
from typing import Any, Final, Protocol

from conformance.operations import Operation
from conformance.studies.fuzz.seed_files import BASE_OFFSET, TIME
from kidx.errors import KidxError
from kidx.java_values import INT_MAX, LONG_MAX, LONG_MIN
from kidx.layout import ABORTED_TXN, OFFSET_INDEX, TIME_INDEX, Layout
from kidx.records import iter_batches

_NAMES: Final = {"offset": "5.index", "time": "5.timeindex", "transaction": "5.txnindex"}
_FEW: Final = 5
"""Number of batches of a log from which queries are derived."""
INDEX_INTERVAL: Final = 60
"""Number of bytes of a log between two index entries."""
LOG_INDEX_SIZE: Final = 1200
"""Size in bytes of a log's new index files."""
BODY_SIZE: Final = 1 << 20
"""``max_record_body_size`` of a search by timestamp."""
READ_SIZE: Final = 100
"""Maximum size in bytes of a read, if the first batch is not larger."""

Query = tuple[str, tuple[Any, ...]]
"""Query: the name of its operation, and the arguments."""


class BatchKeys(Protocol):
    """Fields of a batch from which queries are derived."""

    @property
    def base_offset(self) -> int:
        """Return the offset of the first record."""

    @property
    def last_offset(self) -> int:
        """Return the offset of the last record."""

    @property
    def max_timestamp(self) -> int:
        """Return the largest timestamp."""


def offset_probe(content: bytes) -> list[Operation]:
    """Return the operations on an offset index."""
    rows = _rows(OFFSET_INDEX, content)
    offsets = _around(BASE_OFFSET + relative for relative, _ in rows)
    queries = [Operation("lookup", (offset,)) for offset in (*offsets, LONG_MIN, LONG_MAX)]
    queries += [Operation("entry", (slot,)) for slot in _slots(OFFSET_INDEX, content)]
    for _, position in rows:
        queries += [Operation("fetch_upper_bound", (BASE_OFFSET, position, size)) for size in (0, 1, INT_MAX)]
    last = BASE_OFFSET + rows[-1][0] if rows else BASE_OFFSET
    more = [
        Operation("append", (last + 1, 1 << 20)),
        Operation("truncate_to", (last,)),
        Operation("append", (last, 1 << 20)),  # the file was full before
    ]
    return _index_probe("offset", content, queries, more)


def time_probe(content: bytes) -> list[Operation]:
    """Return the operations on a time index."""
    rows = _rows(TIME_INDEX, content)
    queries = [Operation("lookup", (time,)) for time in (*_around(time for time, _ in rows), LONG_MIN, LONG_MAX)]
    queries += [Operation("entry", (slot,)) for slot in _slots(TIME_INDEX, content)]
    time, relative = rows[-1] if rows else (TIME, 0)
    more = [
        Operation("maybe_append", (min(time + 1, LONG_MAX), BASE_OFFSET + relative + 1, False)),
        Operation("truncate_to", (BASE_OFFSET + relative,)),
        Operation("maybe_append", (min(time + 1, LONG_MAX), BASE_OFFSET + relative, False)),  # the file was full before
    ]
    return _index_probe("time", content, queries, more)


def transaction_probe(content: bytes) -> list[Operation]:
    """Return the operations on a transaction index."""
    rows = _rows(ABORTED_TXN, content)
    queries = [Operation("all_aborted"), Operation("collect_aborted", (0, LONG_MAX))]
    for row in rows:
        first, last, stable = row[2:5]
        queries += [Operation("collect_aborted", pair) for pair in ((first, last), (last, stable), (stable, stable))]
    last = rows[-1][3] if rows else BASE_OFFSET
    bound = max(0, min(last, LONG_MAX - 1))
    queries = [Operation(name, tuple(max(0, number) for number in args)) for name, args in queries]
    more = [Operation("truncate_to", (bound,)), Operation("append_aborted", (9, 0, bound + 1, bound + 1))]
    return _index_probe("transaction", content, queries, more)


def log_probe(content: bytes) -> list[Operation]:
    """Return the operations on a log without indexes; the recovery rebuilds the indexes.

    Half of the queries come before the recovery and half after it. The content's checksum decides which half, so that
    among similar contents every query occurs in both positions.
    """
    opening = (BASE_OFFSET, INDEX_INTERVAL, LOG_INDEX_SIZE, 0)
    before, after = ([Operation(*each) for each in half] for half in log_queries(content, *_log_keys(content)))
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
        *after,
        Operation("largest_timestamp", (TIME,)),
        Operation("become_inactive"),
        Operation("close_segment"),
    ]


def log_queries(content: bytes, offsets: Collection[int], times: Collection[int]) -> tuple[list[Query], ...]:
    """Return the queries to a log before its recovery, and the queries after the recovery.

    Args:
        offsets: The offsets of the first batches (:func:`keys_of_batches`).
        times: The timestamps of the first batches.
    """
    ordered = sorted(offsets)
    queries: list[Query] = [("translate_offset", (offset, 0)) for offset in _around(ordered)[: 2 * _FEW]]
    queries += [("find_offset", (time, BASE_OFFSET, BODY_SIZE)) for time in _around(times)[: 2 * _FEW]]
    queries += [("read_segment", (offset, READ_SIZE, len(content), True)) for offset in ordered[:_FEW]]
    half = zlib.crc32(content) % 2
    return queries[half::2], queries[1 - half :: 2]


def keys_of_batches(batches: Iterable[BatchKeys]) -> tuple[set[int], set[int]]:
    """Return offsets and timestamps of the first batches, up to the first unreadable batch."""
    offsets, times = {BASE_OFFSET}, {TIME}
    with contextlib.suppress(KidxError, OSError):  # the participants report errors themselves
        for batch in islice(batches, _FEW):
            offsets |= {batch.base_offset, batch.last_offset}
            times.add(batch.max_timestamp)
    return offsets, times


PROBES: Final[dict[str, Callable[[bytes], list[Operation]]]] = {
    "offset": offset_probe,
    "time": time_probe,
    "txn": transaction_probe,
    "log": log_probe,
}
MACHINE_OF: Final = {"offset": "offset", "time": "time", "txn": "transaction", "log": "segment"}
"""State machine whose lockstep executes the probes of a format."""


def _index_probe(kind: str, content: bytes, queries: Iterable[Operation], more: Iterable[Operation]) -> list[Operation]:
    """Return the probe of an index: queries to the read-only and the writable index, and further operations."""

    def opened(writable: bool) -> Operation:
        return Operation("open", (kind, _NAMES[kind], BASE_OFFSET, 240, writable))

    queries = list(queries)
    reading = [] if kind == "transaction" else [opened(False), Operation("sanity_check"), *queries]
    return [
        opened(True),
        Operation("crash"),
        Operation("write_file", (content.hex(),)),
        *reading,
        *([Operation("crash")] if reading else []),
        opened(True),
        Operation("sanity_check"),
        *queries,
        *more,
        Operation("close"),
    ]


def _rows(layout: Layout, content: bytes) -> list[tuple[Any, ...]]:
    """Return the fields of the first, middle and last complete entries."""
    size = layout.size
    return [layout.struct.unpack_from(content, slot * size) for slot in _slots(layout, content)]


def _slots(layout: Layout, content: bytes) -> list[int]:
    """Return the numbers of the first, middle and last complete entries."""
    count = len(content) // layout.size
    return sorted({slot for slot in (0, 1, count // 2, count - 2, count - 1) if 0 <= slot < count})


def _around(numbers: Iterable[int]) -> list[int]:
    """Return the numbers and their neighbours, as Java longs."""
    near = {number + delta for number in numbers for delta in (-1, 0, 1)}
    return sorted(number for number in near if LONG_MIN <= number <= LONG_MAX)


def _log_keys(content: bytes) -> tuple[set[int], set[int]]:
    return keys_of_batches(iter_batches(content))
