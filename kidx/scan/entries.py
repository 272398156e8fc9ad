"""Index files as arrays: their entries, and what is behind them."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import numpy as np

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
    """The entries of an index file.

    Attributes:
        entries: one structured row an entry: ``offset, position`` (``.index``), ``timestamp, offset`` (``.timeindex``),
            absolute and int64; the five fields of a ``.txnindex``. A tail of zeros is left out.
        zeros: entries in that tail: room that is reserved.
        odd_bytes: bytes behind the last whole entry.
        size: of the file, bytes.
        left_out: entries that were more than asked for.
    """

    entries: Array
    zeros: int
    odd_bytes: int
    size: int
    left_out: int = 0


def read_index(path: str | os.PathLike[str], base_offset: int, *, most: int | None = None) -> IndexContent:
    """Reads a ``.index``, ``.timeindex`` or ``.txnindex``, as the suffix says; room behind the entries costs nothing.

    Args:
        path: of the file.
        base_offset: of the segment.
        most: entries to keep at most; ``left_out`` counts the others.

    Raises:
        OSError: it cannot be read, or is no regular file.
    """
    suffix = Path(path).suffix
    with regular(path) as descriptor:
        size = os.fstat(descriptor).st_size
        width = _STORED[suffix].itemsize
        limit = size if most is None else min(size, most * width)
        data, end = bytearray(), 0
        for position, piece in pieces_with_data(descriptor, size):
            end = position + len(piece)
            if position < limit:
                data += bytes(position - len(data)) + piece[: limit - position]
    if suffix == ".txnindex":  # never preallocated: zeros are entries
        end = size
    used = min(-(-end // width), size // width)
    kept = min(used, limit // width)
    data += bytes(max(0, (kept + 1) * width - len(data)))
    content = parse_index(bytes(data[: kept * width]), base_offset, suffix, trimmed=True)
    return replace(content, zeros=size // width - used, odd_bytes=size % width, size=size, left_out=used - kept)


def parse_index(data: bytes, base_offset: int, suffix: str, *, trimmed: bool = False) -> IndexContent:
    """The same of bytes. Zeros are cut off ``.index`` and ``.timeindex``; a ``.txnindex`` is never preallocated.

    Args:
        data: whole content of a file.
        base_offset: of the segment.
        suffix: which file.
        trimmed: zeros at the end are entries.
    """
    stored = _STORED[suffix]
    odd = len(data) % stored.itemsize
    found = np.frombuffer(data, stored, len(data) // stored.itemsize)
    if suffix == ".txnindex":
        return IndexContent(found.astype(stored.newbyteorder("=")), 0, odd, len(data))
    used = len(found) if trimmed else min(-(-len(data.rstrip(b"\0")) // stored.itemsize), len(found))
    entries = np.zeros(used, [(name, "i8") for name in _COLUMNS[suffix]])
    for name in _COLUMNS[suffix]:
        if name == "offset":
            entries[name] = found["relative_offset"][:used].astype(np.int64) + base_offset
        else:
            entries[name] = found[name][:used]
    return IndexContent(entries, len(found) - used, odd, len(data))
