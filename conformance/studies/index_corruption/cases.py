"""Cases of corrupt indexes: each is a corruption of one index file of one segment while the broker is stopped.

The index of a killed broker has a preallocated tail of zeros after the entries. Only the entries are corrupted.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import Final, Literal, NamedTuple

from kidx.layout import OFFSET_INDEX, TIME_INDEX

Suffix = Literal[".index", ".timeindex"]
Place = Literal["sealed", "active"]
Shutdown = Literal["clean", "killed"]

ENTRY: Final[dict[str, int]] = {".index": OFFSET_INDEX.size, ".timeindex": TIME_INDEX.size}
"""Size in bytes of an entry."""
_SHIFT_MS: Final = 150
"""Half of the time span of a segment in this experiment."""


def entries_of(data: bytes | bytearray, size: int) -> int:
    """Return the number of entries of a file, without its preallocated tail."""
    count = len(data) // size
    while count and not any(data[(count - 1) * size : count * size]):
        count -= 1
    return count


def _middle(data: bytes, size: int) -> int:
    return entries_of(data, size) // 2 * size


def _flipped(data: bytes, place: int) -> bytes:
    return data[:place] + bytes([data[place] ^ 64]) + data[place + 1 :]


def _shifted(data: bytes, size: int, milliseconds: int) -> bytes:
    changed = bytearray(data)
    for place in range(0, entries_of(data, size) * size, size):
        timestamp, _ = TIME_INDEX.struct.unpack_from(data, place)
        TIME_INDEX.set(changed, "timestamp", timestamp + milliseconds, place)
    return bytes(changed)


_CHANGES: Final[dict[str, Callable[[bytes, int], bytes]]] = {
    # as a full disk does
    "emptied": lambda _, __: b"",
    "cut in half": lambda data, size: data[: _middle(data, size)],
    "cut within an entry": lambda data, size: data[: _middle(data, size) + 3],
    # as a file system does after a power failure
    "filled with zeros": lambda data, _: bytes(len(data)),
    # in the last third of an entry, so that its position, or its offset, changes by 64
    "low bit flipped": lambda data, size: _flipped(data, _middle(data, size) + size - 1),
    # in the first third of an entry, so that its offset or timestamp changes by far
    "high bit flipped": lambda data, size: _flipped(data, _middle(data, size) + 1),
}
_OF_TIME_INDEXES: Final[dict[str, Callable[[bytes, int], bytes]]] = {
    # as after the restore of an older index
    "stale timestamps": lambda data, size: _shifted(data, size, -_SHIFT_MS),
    "timestamps ahead": lambda data, size: _shifted(data, size, _SHIFT_MS),
}


def corrupt(path: Path, corruption: str) -> None:
    """Corrupt an index file.

    Raises:
        OSError: The file does not exist.
    """
    if corruption == "deleted":
        path.unlink()
    elif corruption == "renamed":  # as an operator does to see whether it is needed
        path.rename(path.with_name(path.name + ".bak"))
    else:
        path.write_bytes((_CHANGES | _OF_TIME_INDEXES)[corruption](path.read_bytes(), ENTRY[path.suffix]))


class Case(NamedTuple):
    """Corruption of one index file of one segment.

    Attributes:
        shutdown: How the broker was stopped before the corruption.
        place: The segment: the active one, or the inactive one before it (``sealed``).
    """

    shutdown: Shutdown
    place: Place
    suffix: Suffix
    corruption: str

    def file(self, directory: Path) -> Path:
        """Return the path of the file in a partition's directory."""
        logs = sorted(directory.glob("*.log"))
        return logs[-1 if self.place == "active" else -2].with_suffix(self.suffix)

    def __str__(self) -> str:
        return f"{self.suffix} of the {self.place} segment {self.corruption}, broker {self.shutdown}"


_OF_ALL: Final = ("deleted", "renamed", *_CHANGES)
_OF_SUFFIX: Final[dict[Suffix, tuple[str, ...]]] = {".index": _OF_ALL, ".timeindex": (*_OF_ALL, *_OF_TIME_INDEXES)}
_SHUTDOWNS: Final[tuple[Shutdown, ...]] = ("clean", "killed")
_PLACES: Final[tuple[Place, ...]] = ("sealed", "active")
CASES: Final = tuple(
    Case(shutdown, place, suffix, corruption)
    for shutdown, place, (suffix, corruptions) in product(_SHUTDOWNS, _PLACES, _OF_SUFFIX.items())
    for corruption in corruptions
)
