"""What is done to an index file, one function a damage; each takes the path and the size of an entry.

A file that a killed broker leaves has room behind its entries, which is zero: damage is done to the entries.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from pathlib import Path
from typing import Final

OFFSET_ENTRY: Final = 8
TIME_ENTRY: Final = 12
_TIMESTAMP: Final = struct.Struct(">q")
_SHIFT_MS: Final = 150
"""Half of what a segment here spans."""

Damage = Callable[[Path, int], None]


def entries_of(data: bytes | bytearray, size: int) -> int:
    """How many entries a file has, before the room behind them."""
    count = len(data) // size
    while count and not any(data[(count - 1) * size : count * size]):
        count -= 1
    return count


def delete(path: Path, size: int) -> None:
    """Deletes it."""
    del size
    path.unlink()


def rename(path: Path, size: int) -> None:
    """Renames it, as an operator does to see whether it is needed."""
    del size
    path.rename(path.with_name(path.name + ".bak"))


def empty(path: Path, size: int) -> None:
    """Leaves nothing of it, as a disk that was full."""
    del size
    path.write_bytes(b"")


def cut(path: Path, size: int) -> None:
    """Keeps the first half of its entries."""
    data = path.read_bytes()
    path.write_bytes(data[: entries_of(data, size) // 2 * size])


def cut_within(path: Path, size: int) -> None:
    """Keeps the first half of its entries, and three bytes of the next."""
    data = path.read_bytes()
    path.write_bytes(data[: entries_of(data, size) // 2 * size + 3])


def fill_with_zeros(path: Path, size: int) -> None:
    """Overwrites all of it with zeros, as a file system does after a loss of power."""
    del size
    path.write_bytes(bytes(path.stat().st_size))


def flip_bit(path: Path, size: int) -> None:
    """Flips one bit of the last third of an entry in the middle: a position, or an offset, is 64 off."""
    data = bytearray(path.read_bytes())
    data[entries_of(data, size) // 2 * size + size - 1] ^= 64
    path.write_bytes(data)


def flip_high_bit(path: Path, size: int) -> None:
    """Flips one bit of the first third of an entry in the middle: an offset, or a timestamp, is far off."""
    data = bytearray(path.read_bytes())
    data[entries_of(data, size) // 2 * size + 1] ^= 64
    path.write_bytes(data)


def make_stale(path: Path, size: int) -> None:
    """Writes earlier timestamps than the log has, as a restore of another copy does."""
    _shift(path, size, -_SHIFT_MS)


def make_early(path: Path, size: int) -> None:
    """Writes later timestamps than the log has."""
    _shift(path, size, _SHIFT_MS)


def _shift(path: Path, size: int, milliseconds: int) -> None:
    data = bytearray(path.read_bytes())
    for place in range(0, entries_of(data, size) * size, size):
        (timestamp,) = _TIMESTAMP.unpack_from(data, place)
        _TIMESTAMP.pack_into(data, place, timestamp + milliseconds)
    path.write_bytes(data)
