"""Entries that a release writes into the indexes of a log, for all its batches in one call (SEG-3, SEG-4, SEG-30).

The exact but slow references are :class:`kidx.LogSegment` and :func:`kidx.rebuild.rebuild`; tests compare this module
with them.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import numpy as np

from kidx.dialect import Dialect, dialect_of
from kidx.scan.jit import kernels_loaded

Array = np.ndarray[Any, Any]

OFFSET_ENTRY: Final = np.dtype([("offset", "i8"), ("position", "i8")])
TIME_ENTRY: Final = np.dtype([("timestamp", "i8"), ("offset", "i8")])


class ExpectedIndexes(NamedTuple):
    """Entries of both indexes, with absolute offsets."""

    offsets: Array  # entries of the .index, of type OFFSET_ENTRY
    times: Array  # entries of the .timeindex, of type TIME_ENTRY


def expected_indexes(
    rows: Array,
    *,
    dialect: str | Dialect | None = None,
    index_interval_bytes: int = 4096,
    appends: Array | None = None,
    finished: bool = True,
) -> ExpectedIndexes:
    """Return the index entries that appending batches to an empty segment, or recovering them, writes.

    Args:
        rows: array of :data:`kidx.scan.BATCH`, all batches of the log, shape (n,).
        dialect: a release; the newest by default.
        index_interval_bytes: the topic's setting.
        appends: number of the first row of each append call, ascending from 0; one call per batch by default. It
            matters up to 3.9.0 and in 4.0.0, where a follower's append call writes at most one entry.
        finished: True to include the last entry of the ``.timeindex``, which rolling or closing the segment adds
            (SEG-22).
    """
    if appends is not None and len(rows) and not dialect_of(dialect).append_per_batch:
        calls = _merged(rows, appends)
    else:
        calls = {name: np.ascontiguousarray(rows[name]) for name in ("position", "last_offset", "max_timestamp")}
        calls["owner"] = calls["last_offset"]
    positions, timestamps = calls["position"], calls["max_timestamp"]
    slots = _entry_slots(positions, index_interval_bytes)
    offsets = np.empty(len(slots), OFFSET_ENTRY)
    offsets["offset"], offsets["position"] = calls["last_offset"][slots], positions[slots]
    return ExpectedIndexes(offsets, _times(timestamps, calls["owner"], slots, finished=finished))


def _merged(rows: Array, appends: Array) -> dict[str, Array]:
    """Return append calls as if each were one batch.

    ``owner`` is the last offset of the first batch of the call that has the largest timestamp.
    """
    timestamps = np.maximum.reduceat(rows["max_timestamp"], appends)
    ends = np.append(appends[1:], len(rows))
    first = np.repeat(timestamps, ends - appends) == rows["max_timestamp"]
    numbers = np.where(first, np.arange(len(rows)), len(rows))
    owner = rows["last_offset"][np.minimum.reduceat(numbers, appends)]
    return {
        "position": rows["position"][appends],
        "last_offset": rows["last_offset"][ends - 1],
        "max_timestamp": timestamps,
        "owner": owner,
    }


def _entry_slots(positions: Array, interval: int) -> Array:
    """Return the numbers of the batches with an entry: each begins more than ``interval`` bytes after the previous."""
    if kernels_loaded():
        from kidx.scan import entry_kernels  # noqa: PLC0415 -- loaded already

        return entry_kernels.entry_slots(positions, interval)
    found, last = [], 0
    while (slot := int(np.searchsorted(positions, last + interval, side="right"))) < len(positions):
        found.append(slot)
        last = int(positions[slot])
    return np.array(found, np.int64)


def _times(timestamps: Array, owners: Array, slots: Array, *, finished: bool) -> Array:
    """Return an entry for each slot at which the largest timestamp had increased since the last entry."""
    if not len(timestamps):
        return np.empty(0, TIME_ENTRY)
    running = np.maximum.accumulate(timestamps)
    raised = np.empty(len(timestamps), bool)
    raised[0] = running[0] > -1
    raised[1:] = running[1:] > running[:-1]
    first = np.maximum.accumulate(np.where(raised, np.arange(len(timestamps)), 0))
    if finished:
        slots = np.append(slots, len(timestamps) - 1)
    found = running[slots]
    retained = found > -1
    retained[1:] &= found[1:] > found[:-1]
    times = np.empty(int(retained.sum()), TIME_ENTRY)
    times["timestamp"], times["offset"] = found[retained], owners[first[slots]][retained]
    return times
