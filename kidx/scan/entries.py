"""Entries of index files as arrays: read from a file, expected for a log, and looked up (SEG-3, SEG-4, SEG-30)."""

from __future__ import annotations

import os
import struct
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np

from kidx.dialect import Dialect, dialect_of
from kidx.discovery import SWAP
from kidx.files import pieces_with_data, regular
from kidx.index.search import Keys, warm_search
from kidx.layout import ABORTED_TXN, OFFSET_INDEX, TIME_INDEX, WARM_SECTION_BYTES, Layout
from kidx.scan.jit import COMPILED, kernels_loaded

Array = np.ndarray[Any, Any]
_COLUMNS: Final = {".index": ("offset", "position"), ".timeindex": ("timestamp", "offset")}
OFFSET_ENTRY: Final = np.dtype([("offset", "i8"), ("position", "i8")])
TIME_ENTRY: Final = np.dtype([("timestamp", "i8"), ("offset", "i8")])
_LONG: Final = struct.Struct("=q")
_MANY: Final = 100_000
"""Number of lookups from which loading numba pays off."""


def _stored(layout: Layout) -> np.dtype[Any]:
    return np.dtype([(field.name, f">{field.code}") for field in layout.fields])


_STORED: Final = {
    ".index": _stored(OFFSET_INDEX),
    ".timeindex": _stored(TIME_INDEX),
    ".txnindex": _stored(ABORTED_TXN),
}


@dataclass(frozen=True, slots=True)
class IndexContent:
    """Entries of an index file.

    Attributes:
        entries: one structured row per entry: ``offset, position`` (``.index``), ``timestamp, offset``
            (``.timeindex``), absolute and int64; the five fields of a ``.txnindex``. A tail of zeros is omitted.
        padding_entries: number of entries in that preallocated tail.
        trailing_bytes: number of bytes after the last whole entry.
        size: size of the file in bytes.
        omitted: number of entries above the requested maximum.
        last_slot: bytes of the last whole slot of the file, which may be padding; empty without one.
    """

    entries: Array
    padding_entries: int
    trailing_bytes: int
    size: int
    omitted: int = 0
    last_slot: bytes = b""

    def without_half(self, base_offset: int) -> IndexContent:
        """Return the content without a last entry of which only the first field has been written.

        Args:
            base_offset: base offset of the segment, which a ``.timeindex`` entry has if its second field is 0.
        """
        second = (self.entries.dtype.names or ("",))[-1]
        absent = {"position": 0, "offset": base_offset}.get(second)
        if absent is None or not len(self.entries) or self.entries[second][-1] != absent:
            return self
        return replace(self, entries=self.entries[:-1], padding_entries=self.padding_entries + 1)


def read_index(path: str | os.PathLike[str], base_offset: int, *, max_entries: int | None = None) -> IndexContent:
    """Return the content of a ``.index``, ``.timeindex`` or ``.txnindex``, by its suffix; a sparse tail is not read.

    Args:
        max_entries: maximum number of entries to keep; ``omitted`` counts the others.

    Raises:
        OSError: the file cannot be read, or is not a regular file.
    """
    suffix = Path(os.fspath(path).removesuffix(SWAP)).suffix
    with regular(path) as descriptor:
        size = os.fstat(descriptor).st_size
        width = _STORED[suffix].itemsize
        limit = size if max_entries is None else min(size, max_entries * width)
        data, end = bytearray(), 0
        for position, chunk in pieces_with_data(descriptor, size):
            end = position + len(chunk)
            if position < limit:
                data += bytes(position - len(data)) + chunk[: limit - position]
        last_slot = os.pread(descriptor, width, (size // width - 1) * width) if size >= width else b""
    if suffix == ".txnindex":  # never preallocated: zeros are entries
        end = size
    used = min(-(-end // width), size // width)
    retained = min(used, limit // width)
    data += bytes(max(0, (retained + 1) * width - len(data)))
    content = parse_index(bytes(data[: retained * width]), base_offset, suffix, trimmed=True)
    return replace(
        content,
        padding_entries=size // width - used,
        trailing_bytes=size % width,
        size=size,
        omitted=used - retained,
        last_slot=last_slot,
    )


def parse_index(data: bytes, base_offset: int, suffix: str, *, trimmed: bool = False) -> IndexContent:
    """Return the entries in the bytes of an index file. Zeros at its end are omitted, because they are preallocated.

    Args:
        data: whole content of a file.
        trimmed: True if zeros at the end are entries; in a ``.txnindex`` they always are.
    """
    stored = _STORED[suffix]
    trailing = len(data) % stored.itemsize
    found = np.frombuffer(data, stored, len(data) // stored.itemsize)
    last_slot = found[-1:].tobytes()
    if suffix == ".txnindex":
        return IndexContent(found.astype(stored.newbyteorder("=")), 0, trailing, len(data), last_slot=last_slot)
    used = len(found) if trimmed else min(-(-len(data.rstrip(b"\0")) // stored.itemsize), len(found))
    entries = np.zeros(used, [(name, "i8") for name in _COLUMNS[suffix]])
    for name in _COLUMNS[suffix]:
        if name == "offset":
            entries[name] = found["relative_offset"][:used].astype(np.int64) + base_offset
        else:
            entries[name] = found[name][:used]
    return IndexContent(entries, len(found) - used, trailing, len(data), last_slot=last_slot)


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


class BulkLookup:
    """Lookups in one index, all entries of which are in memory: 16 bytes each, and 8 for the keys.

    Args:
        content: content of a ``.index`` or ``.timeindex``, from :func:`kidx.scan.read_index`.

    Attributes:
        ordered: True if keys increase strictly.
    """

    def __init__(self, content: IndexContent, base_offset: int) -> None:
        self._dtype: Any = content.entries.dtype
        key, value = self._dtype.names
        self._keys = np.ascontiguousarray(content.entries[key])
        self._values = np.ascontiguousarray(content.entries[value])
        self._width = OFFSET_INDEX.size if key == "offset" else TIME_INDEX.size
        # The result for a target below all entries.
        self._none = (base_offset, 0) if key == "offset" else (-1, base_offset)
        self.ordered = bool((self._keys[1:] > self._keys[:-1]).all())

    def slots(self, targets: Array, *, compiled: bool | None = None) -> Array:
        """Return the slot of the entry found for each target; -1 if no entry is at or below it.

        Args:
            targets: int64, shape (n,), in any order.
            compiled: True for the compiled kernel, False for the plain one; by default the faster one for this number.
        """
        requested = np.ascontiguousarray(targets, np.int64)
        if self._compiled(len(requested)) if compiled is None else compiled:
            from kidx.scan import entry_kernels  # noqa: PLC0415 -- numba takes a second to load

            return entry_kernels.lookup_slots(
                self._keys, requested, WARM_SECTION_BYTES // self._width, ordered=self.ordered
            )
        if self.ordered:
            return np.searchsorted(self._keys, requested, side="right") - 1
        return self._search(requested)

    @staticmethod
    def _compiled(count: int) -> bool:
        return COMPILED and (count >= _MANY or kernels_loaded())

    def _search(self, targets: Array) -> Array:
        """Return the slots found by a broker's search, over keys with the same distance as in the file."""
        padded = np.zeros(len(self._keys), np.dtype([("key", "i8"), ("rest", f"V{self._width - _LONG.size}")]))
        padded["key"] = self._keys
        keys = Keys(_LONG.unpack_from, padded.tobytes(), self._width, 0)
        found = [warm_search(keys, len(self._keys), target)[0] for target in targets.tolist()]
        return np.array(found, np.int64)

    def lookup(self, targets: Array, *, compiled: bool | None = None) -> Array:
        """Return the results: ``offset, position`` (``.index``) or ``timestamp, offset`` (``.timeindex``), shape (n,).

        As in Kafka's lookup, the result for a target below all entries is (base offset, 0) or (-1, base offset).
        """
        slots = self.slots(targets, compiled=compiled)
        if self._compiled(len(slots)) if compiled is None else compiled:
            from kidx.scan import entry_kernels  # noqa: PLC0415 -- loaded already

            result: Array = entry_kernels.gather_entries(self._keys, self._values, slots, self._none).view(self._dtype)[
                :, 0
            ]
            return result
        found = np.empty(len(slots), self._dtype)
        first, second = self._dtype.names
        if len(self._keys):
            below = slots < 0
            found[first], found[second] = self._keys[slots], self._values[slots]
            if below.any():
                found[first][below], found[second][below] = self._none
        else:
            found[first], found[second] = self._none
        return found
