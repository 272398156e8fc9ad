"""Index files as arrays: their entries, and what is behind them."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np

from kidx.layout import ABORTED_TXN, OFFSET_INDEX, TIME_INDEX, Layout
from kidx.scan.blocks import open_read_only

Array = np.ndarray[Any, Any]

_CHUNK: Final = 1 << 20


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
    """

    entries: Array
    zeros: int
    odd_bytes: int
    size: int


def read_index(path: str | os.PathLike[str], base_offset: int) -> IndexContent:
    """Reads a ``.index``, ``.timeindex`` or ``.txnindex``; the suffix says which.

    Raises:
        OSError: it cannot be read, or is no regular file.
    """
    suffix = Path(path).suffix
    return parse_index(_content(path), base_offset, suffix)


def parse_index(data: bytes, base_offset: int, suffix: str) -> IndexContent:
    """The same of bytes. Zeros are cut off ``.index`` and ``.timeindex``; a ``.txnindex`` is never preallocated."""
    stored = _STORED[suffix]
    odd = len(data) % stored.itemsize
    found = np.frombuffer(data, stored, len(data) // stored.itemsize)
    if suffix == ".txnindex":
        return IndexContent(found.astype(stored.newbyteorder("=")), 0, odd, len(data))
    used = -(-len(data.rstrip(b"\0")) // stored.itemsize)
    used = min(used, len(found))
    entries = np.zeros(used, [(name, "i8") for name in _COLUMNS[suffix]])
    for name in _COLUMNS[suffix]:
        if name == "offset":
            entries[name] = found["relative_offset"][:used].astype(np.int64) + base_offset
        else:
            entries[name] = found[name][:used]
    return IndexContent(entries, len(found) - used, odd, len(data))


def _content(path: str | os.PathLike[str]) -> bytes:
    descriptor = open_read_only(path)
    try:
        parts = []
        while data := os.read(descriptor, _CHUNK):
            parts.append(data)
        return b"".join(parts)
    finally:
        os.close(descriptor)
