"""Corruptions of an index file, one function each, which takes the path and the size of an entry.

The index of a killed broker has a preallocated tail of zeros after the entries. Only the entries are corrupted.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from pathlib import Path
from typing import Final

OFFSET_ENTRY: Final = 8
"""Size in bytes of an entry of an offset index."""
TIME_ENTRY: Final = 12
"""Size in bytes of an entry of a time index."""
_TIMESTAMP: Final = struct.Struct(">q")
_SHIFT_MS: Final = 150
"""Half of the time span of a segment in this experiment."""

Damage = Callable[[Path, int], None]
"""Function that corrupts the file at a path, whose entries have a size in bytes."""


def entries_of(data: bytes | bytearray, size: int) -> int:
    """Return the number of entries of a file, without its preallocated tail."""
    count = len(data) // size
    while count and not any(data[(count - 1) * size : count * size]):
        count -= 1
    return count


def delete(path: Path, size: int) -> None:
    """Delete the file."""
    del size
    path.unlink()


def rename(path: Path, size: int) -> None:
    """Rename the file, as an operator does to see whether it is needed."""
    del size
    path.rename(path.with_name(path.name + ".bak"))


def empty(path: Path, size: int) -> None:
    """Truncate the file to 0 bytes, as a full disk does."""
    del size
    path.write_bytes(b"")


def cut(path: Path, size: int) -> None:
    """Keep the first half of the entries."""
    data = path.read_bytes()
    path.write_bytes(data[: entries_of(data, size) // 2 * size])


def cut_within(path: Path, size: int) -> None:
    """Keep the first half of the entries, and three bytes of the next one."""
    data = path.read_bytes()
    path.write_bytes(data[: entries_of(data, size) // 2 * size + 3])


def fill_with_zeros(path: Path, size: int) -> None:
    """Overwrite the whole file with zeros, as a file system does after a power failure."""
    del size
    path.write_bytes(bytes(path.stat().st_size))


def flip_bit(path: Path, size: int) -> None:
    """Flip one bit in the last third of an entry in the middle, so that its position, or its offset, changes by 64."""
    data = bytearray(path.read_bytes())
    data[entries_of(data, size) // 2 * size + size - 1] ^= 64
    path.write_bytes(data)


def flip_high_bit(path: Path, size: int) -> None:
    """Flip one bit in the first third of an entry in the middle, so that its offset or timestamp changes by far."""
    data = bytearray(path.read_bytes())
    data[entries_of(data, size) // 2 * size + 1] ^= 64
    path.write_bytes(data)


def shift_timestamps_back(path: Path, size: int) -> None:
    """Write earlier timestamps than the log has, as after the restore of an older index."""
    _shift(path, size, -_SHIFT_MS)


def shift_timestamps_forward(path: Path, size: int) -> None:
    """Write later timestamps than the log has."""
    _shift(path, size, _SHIFT_MS)


def _shift(path: Path, size: int, milliseconds: int) -> None:
    data = bytearray(path.read_bytes())
    for place in range(0, entries_of(data, size) * size, size):
        (timestamp,) = _TIMESTAMP.unpack_from(data, place)
        _TIMESTAMP.pack_into(data, place, timestamp + milliseconds)
    path.write_bytes(data)
