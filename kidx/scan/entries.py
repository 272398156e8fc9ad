"""Index files as arrays: their entries, and the bytes after them."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import numpy as np

from kidx.discovery import SWAP
from kidx.files import pieces_with_data, regular
from kidx.layout import ABORTED_TXN, OFFSET_INDEX, TIME_INDEX, Layout

Array = np.ndarray[Any, Any]


def _stored(layout: Layout) -> np.dtype[Any]:
    return np.dtype([(field.name, f">{field.code}") for field in layout.fields])


_STORED: Final = {
    ".index": _stored(OFFSET_INDEX),
    ".timeindex": _stored(TIME_INDEX),
    ".txnindex": _stored(ABORTED_TXN),
}
_COLUMNS: Final = {".index": ("offset", "position"), ".timeindex": ("timestamp", "offset")}


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
        path: path of the file.
        base_offset: base offset of the segment.
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
        base_offset: base offset of the segment.
        suffix: suffix of the file.
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
