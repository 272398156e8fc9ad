"""Index files as arrays, read from anywhere by ranges and never mapped: what plans and tables need of them.

A broker keeps the index files of the segment it writes to at full size, with zeros behind the entries. Entries come
first, so they are read in portions up to the first that is all zero.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from kidx.layout import ABORTED_TXN, OFFSET_INDEX, TIME_INDEX
from kidx.records.layout import RECORD_BATCH_OVERHEAD

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from kidx.layout import Layout
    from kidx.tables.segments import Segment

PORTION: Final = 1 << 16
"""Bytes read at once, about; always whole entries."""


def _dtype(layout: Layout) -> np.dtype[Any]:
    return np.dtype([(field.name, f">i{field.size}") for field in layout.fields])


_OFFSET: Final = _dtype(OFFSET_INDEX)
_TIME: Final = _dtype(TIME_INDEX)
_ABORTED: Final = _dtype(ABORTED_TXN)


class Counter:
    """Bytes that were read, of logs and of index files, in how many tasks and of how many in all."""

    def __init__(self) -> None:
        self.index_bytes = 0
        self.log_bytes = 0


class OffsetEntries(NamedTuple):
    """A whole ``.index``: offsets absolute, both ``int64``."""

    offsets: NDArray[np.int64]
    positions: NDArray[np.int64]

    def floor(self, offset: int) -> int:
        """The position of the last entry that is not above ``offset``; 0 if there is none (OI-7)."""
        slot = int(np.searchsorted(self.offsets, offset, side="right")) - 1
        return 0 if slot < 0 else max(int(self.positions[slot]), 0)

    def behind(self, offset: int) -> int | None:
        """A position behind the batch that holds ``offset``, None if only the end of the log is.

        The first entry at or above the offset names that batch or a later one, so the next entry is behind it.
        """
        slot = int(np.searchsorted(self.offsets, offset, side="left")) + 1
        return int(self.positions[slot]) if slot < len(self.positions) else None


class TimeEntries(NamedTuple):
    """A whole ``.timeindex``: milliseconds, and absolute offsets."""

    timestamps: NDArray[np.int64]
    offsets: NDArray[np.int64]

    def offset_before(self, timestamp: int) -> int | None:
        """An offset up to which every record is older than ``timestamp``; None if nothing is known."""
        slot = int(np.searchsorted(self.timestamps, timestamp, side="left")) - 1
        return None if slot < 0 else int(self.offsets[slot])

    def offset_at_or_above(self, timestamp: int) -> int | None:
        """The offset of the first entry with this time or a later one; None if there is none."""
        slot = int(np.searchsorted(self.timestamps, timestamp, side="left"))
        return int(self.offsets[slot]) if slot < len(self.offsets) else None


def read_offset_index(segment: Segment, counter: Counter) -> OffsetEntries:
    """The entries of a segment's ``.index``; none without one.

    Raises:
        OSError: it cannot be read.
    """
    entries = _entries(segment, "index", _OFFSET, counter)
    offsets = entries["relative_offset"].astype(np.int64) + segment.base_offset
    return OffsetEntries(offsets, entries["position"].astype(np.int64))


def read_time_index(segment: Segment, counter: Counter) -> TimeEntries:
    """The entries of a segment's ``.timeindex``; none without one.

    Raises:
        OSError: it cannot be read.
    """
    entries = _entries(segment, "timeindex", _TIME, counter)
    offsets = entries["relative_offset"].astype(np.int64) + segment.base_offset
    return TimeEntries(entries["timestamp"].astype(np.int64), offsets)


def read_transaction_index(segment: Segment, counter: Counter) -> NDArray[Any]:
    """The whole records of a segment's ``.txnindex``, with the fields of :data:`kidx.layout.ABORTED_TXN`.

    Raises:
        OSError: it cannot be read.
    """
    size = segment.sizes.get("txnindex", 0)
    if not size:
        return np.empty(0, _ABORTED)
    with segment.store.open(segment.file("txnindex")) as reader:
        most = segment.size // RECORD_BATCH_OVERHEAD + 1  # each has a marker, which is a batch
        data = reader.read(0, min(reader.size, most * _ABORTED.itemsize))
        counter.index_bytes += reader.bytes_read
    return np.frombuffer(data, _ABORTED, count=len(data) // _ABORTED.itemsize)


def last_time_entry(segment: Segment, counter: Counter) -> tuple[int, int] | None:
    """Largest timestamp and its offset by the last entry of a ``.timeindex``; None if it has no entry.

    Raises:
        OSError: the file cannot be read.
    """
    size = segment.sizes.get("timeindex", 0) // _TIME.itemsize * _TIME.itemsize
    if not size:
        return None
    with segment.store.open(segment.file("timeindex")) as reader:
        last = np.frombuffer(reader.read(size - _TIME.itemsize, _TIME.itemsize), _TIME)
        counter.index_bytes += reader.bytes_read
    if len(last) and (last["timestamp"][0] or last["relative_offset"][0]):
        return int(last["timestamp"][0]), segment.base_offset + int(last["relative_offset"][0])
    entries = read_time_index(segment, counter)
    if not len(entries.timestamps):
        return None
    return int(entries.timestamps[-1]), int(entries.offsets[-1])


def _entries(segment: Segment, suffix: str, dtype: np.dtype[Any], counter: Counter) -> NDArray[Any]:
    """The used entries of an index file, in portions up to the zeros behind them."""
    portion = PORTION // dtype.itemsize * dtype.itemsize
    portions: list[NDArray[Any]] = []
    if not segment.sizes.get(suffix):
        return np.empty(0, dtype)
    with segment.store.open(segment.file(suffix)) as reader:
        position = 0
        while data := reader.read(position, portion):
            entries = np.frombuffer(data, dtype, count=len(data) // dtype.itemsize)
            # A first entry of zeros is one: offset 0 of a segment whose first batch is indexed at once.
            zero = (entries["relative_offset"] == 0) & (entries[dtype.names[1 if suffix == "index" else 0]] == 0)  # type: ignore[index]
            zero[0] &= position > 0
            used = int(zero.argmax()) if zero.any() else len(entries)
            portions.append(entries[:used])
            position += len(data)
            if used < len(entries) or len(data) < portion:
                break
        counter.index_bytes += reader.bytes_read
    entries = np.concatenate(portions) if portions else np.empty(0, dtype)
    if len(entries) > 1 or not len(entries) or any(int(entries[0][name]) for name in dtype.names or ()):
        return entries
    # One entry of zeros: of a log with a single offset, or the start of a file that has none yet.
    return entries if segment.sizes[suffix] == dtype.itemsize and segment.size else entries[:0]
