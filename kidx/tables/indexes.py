"""Index files as arrays, read by ranges from any storage and never mapped.

A broker keeps the index files of its active segment at full size, with zeros after the entries. Entries come first, so
they are read in chunks up to the first entry of zeros.
"""

from __future__ import annotations

from bisect import bisect_left
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from kidx.java_values import LONG_MAX
from kidx.layout import ABORTED_TXN, OFFSET_INDEX, RECORD_BATCH_OVERHEAD, TIME_INDEX

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from kidx.layout import Layout
    from kidx.tables.segments import Segment

PORTION: Final = 1 << 16
"""Approximate number of bytes of one read; always a multiple of the entry size."""


def _dtype(layout: Layout) -> np.dtype[Any]:
    return np.dtype([(field.name, f">i{field.size}") for field in layout.fields])


_OFFSET: Final = _dtype(OFFSET_INDEX)
_TIME: Final = _dtype(TIME_INDEX)
_ABORTED: Final = _dtype(ABORTED_TXN)


class Counter:
    """A counter of bytes read from log files and from index files, and of segments that a plan skipped."""

    def __init__(self) -> None:
        self.index_bytes = 0
        self.log_bytes = 0
        self.skipped = 0


class OffsetEntries(NamedTuple):
    """All entries of an ``.index``; offsets are absolute, both arrays ``int64``."""

    offsets: NDArray[np.int64]
    positions: NDArray[np.int64]

    def floor(self, offset: int) -> int:
        """Return the position of the last entry at or below ``offset``; 0 without such an entry (OI-7)."""
        slot = int(np.searchsorted(self.offsets, offset, side="right")) - 1
        return 0 if slot < 0 else max(int(self.positions[slot]), 0)

    def position_after(self, offset: int) -> int | None:
        """Return a position after the batch that contains ``offset``; None if the index has no such position.

        The first entry at or above the offset names that batch or a later batch, so the next entry is after it.
        """
        slot = int(np.searchsorted(self.offsets, offset, side="left")) + 1
        return int(self.positions[slot]) if slot < len(self.positions) else None


class TimeEntries(NamedTuple):
    """All entries of a ``.timeindex``: timestamps in milliseconds, and absolute offsets."""

    timestamps: NDArray[np.int64]
    offsets: NDArray[np.int64]

    def offset_before(self, timestamp: int) -> int | None:
        """Return an offset up to which every record is older than ``timestamp``; None if no entry proves one."""
        slot = int(np.searchsorted(self.timestamps, timestamp, side="left")) - 1
        return None if slot < 0 else int(self.offsets[slot])

    def offset_at_or_above(self, timestamp: int) -> int | None:
        """Return the offset of the first entry with at least this timestamp; None without such an entry."""
        slot = int(np.searchsorted(self.timestamps, timestamp, side="left"))
        return int(self.offsets[slot]) if slot < len(self.offsets) else None


def read_offset_index(segment: Segment, counter: Counter) -> OffsetEntries:
    """Read the entries of a segment's ``.index``; empty if there is no file.

    Raises:
        OSError: the file cannot be read.
    """
    entries = _entries(segment, "index", _OFFSET, counter)
    offsets = entries["relative_offset"].astype(np.int64) + segment.base_offset
    return OffsetEntries(offsets, entries["position"].astype(np.int64))


def last_offset_entry(
    segment: Segment, counter: Counter, position_before: int, offset_before: int = LONG_MAX
) -> tuple[int, int] | None:
    """Return the absolute offset and the position of the last entry below two bounds; None without such an entry.

    It reads one portion of the ``.index``, which a binary search among the first entries of all portions finds. So it
    may return another entry of a corrupt index, in which entries do not grow: the caller has to check it.

    Raises:
        OSError: the file cannot be read.
    """
    if not segment.sizes.get("index"):
        return None

    def below(data: bytes) -> NDArray[Any]:
        entries = np.frombuffer(data, _OFFSET, count=len(data) // _OFFSET.itemsize)
        position, offset = entries["position"], entries["relative_offset"] + np.int64(segment.base_offset)
        return entries[(position > 0) & (position < position_before) & (offset < offset_before)]

    try:
        with segment.store.open(segment.file("index")) as reader:
            others = range(PORTION, reader.size, PORTION)
            number = bisect_left(others, 1, key=lambda at: not len(below(reader.read(at, _OFFSET.itemsize))))
            found = below(reader.read(number * PORTION, PORTION))
            counter.index_bytes += reader.bytes_read
    except FileNotFoundError:  # the segment was removed
        return None
    return (segment.base_offset + int(found["relative_offset"][-1]), int(found["position"][-1])) if len(found) else None


def read_time_index(segment: Segment, counter: Counter) -> TimeEntries:
    """Read the entries of a segment's ``.timeindex``; empty if there is no file.

    Raises:
        OSError: the file cannot be read.
    """
    entries = _entries(segment, "timeindex", _TIME, counter)
    offsets = entries["relative_offset"].astype(np.int64) + segment.base_offset
    return TimeEntries(entries["timestamp"].astype(np.int64), offsets)


def read_transaction_index(segment: Segment, counter: Counter) -> NDArray[Any]:
    """Read the complete entries of a segment's ``.txnindex``, with the fields of :data:`kidx.layout.ABORTED_TXN`.

    Raises:
        OSError: the file cannot be read.
    """
    if not segment.sizes.get("txnindex", 0) and not segment.is_last:  # the last segment may have one by now
        return np.empty(0, _ABORTED)
    try:
        with segment.store.open(segment.file("txnindex")) as reader:
            most = segment.size // RECORD_BATCH_OVERHEAD + 1  # each entry has a marker, which is a batch
            data = reader.read(0, min(reader.size, most * _ABORTED.itemsize))
            counter.index_bytes += reader.bytes_read
    except FileNotFoundError:
        if segment.is_last:
            return np.empty(0, _ABORTED)
        raise
    return np.frombuffer(data, _ABORTED, count=len(data) // _ABORTED.itemsize)


def last_time_entry(segment: Segment, counter: Counter) -> tuple[int, int] | None:
    """Return the largest timestamp and its offset, from the last entry of a ``.timeindex``; None if it has no entry.

    Raises:
        OSError: the file cannot be read.
    """
    size = segment.sizes.get("timeindex", 0) // _TIME.itemsize * _TIME.itemsize
    if not size:
        return None
    try:
        with segment.store.open(segment.file("timeindex")) as reader:
            last = np.frombuffer(reader.read(size - _TIME.itemsize, _TIME.itemsize), _TIME)
            counter.index_bytes += reader.bytes_read
    except FileNotFoundError:  # the segment was removed
        return None
    if len(last) and (last["timestamp"][0] or last["relative_offset"][0]):
        return int(last["timestamp"][0]), segment.base_offset + int(last["relative_offset"][0])
    entries = read_time_index(segment, counter)
    if not len(entries.timestamps):
        return None
    return int(entries.timestamps[-1]), int(entries.offsets[-1])


def _entries(segment: Segment, suffix: str, dtype: np.dtype[Any], counter: Counter) -> NDArray[Any]:
    """Read the used entries of an index file, in chunks up to the zeros after them."""
    portion = PORTION // dtype.itemsize * dtype.itemsize
    portions: list[NDArray[Any]] = []
    if not segment.sizes.get(suffix):
        return np.empty(0, dtype)
    try:
        with segment.store.open(segment.file(suffix)) as reader:
            position = 0
            while data := reader.read(position, portion):
                entries = np.frombuffer(data, dtype, count=len(data) // dtype.itemsize)
                # A first entry of zeros is real: offset 0 of a segment whose first batch is indexed immediately.
                zero = (entries["relative_offset"] == 0) & (entries[dtype.names[1 if suffix == "index" else 0]] == 0)  # type: ignore[index]
                zero[:1] &= position > 0
                used = int(zero.argmax()) if zero.any() else len(entries)
                portions.append(entries[:used])
                position += len(data)
                if used < len(entries) or len(data) < portion:
                    break
            counter.index_bytes += reader.bytes_read
    except FileNotFoundError:  # the segment was removed
        return np.empty(0, dtype)
    entries = np.concatenate(portions) if portions else np.empty(0, dtype)
    if len(entries) > 1 or not len(entries) or any(int(entries[0][name]) for name in dtype.names or ()):
        return entries
    # If the only entry is zeros, it is valid for a log with one indexed batch; otherwise the file has no entry yet.
    return entries if segment.sizes[suffix] == dtype.itemsize and segment.size else entries[:0]
