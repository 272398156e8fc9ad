"""Cases of corrupt indexes: each is a corruption of one index file of one segment while the broker is stopped."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal, NamedTuple

from conformance.experiments.index_corruption import corruptions

if TYPE_CHECKING:
    from conformance.experiments.index_corruption.corruptions import Damage

Suffix = Literal[".index", ".timeindex"]
Place = Literal["sealed", "active"]
Shutdown = Literal["clean", "killed"]

_SIZES: Final[dict[Suffix, int]] = {".index": corruptions.OFFSET_ENTRY, ".timeindex": corruptions.TIME_ENTRY}
_OF_BOTH_INDEXES: Final[dict[str, Damage]] = {
    "deleted": corruptions.delete,
    "renamed": corruptions.rename,
    "emptied": corruptions.empty,
    "cut in half": corruptions.cut,
    "cut within an entry": corruptions.cut_within,
    "filled with zeros": corruptions.fill_with_zeros,
    "low bit flipped": corruptions.flip_bit,
    "high bit flipped": corruptions.flip_high_bit,
}
_OF_TIME_INDEXES: Final[dict[str, Damage]] = {
    "stale timestamps": corruptions.shift_timestamps_back,
    "timestamps ahead": corruptions.shift_timestamps_forward,
}


class Case(NamedTuple):
    """Corruption of one index file of one segment.

    Attributes:
        shutdown: How the broker was stopped before the corruption.
        place: The segment: the active one, or the inactive one before it (``sealed``).
        suffix: The suffix of the file.
        corruption: The name of the corruption.
    """

    shutdown: Shutdown
    place: Place
    suffix: Suffix
    corruption: str

    def file(self, directory: Path) -> Path:
        """Return the path of the file in a partition's directory."""
        logs = sorted(directory.glob("*.log"))
        return logs[-1 if self.place == "active" else -2].with_suffix(self.suffix)

    def apply(self, directory: Path) -> None:
        """Corrupt the file.

        Raises:
            OSError: The file does not exist.
        """
        (_OF_BOTH_INDEXES | _OF_TIME_INDEXES)[self.corruption](self.file(directory), _SIZES[self.suffix])

    def __str__(self) -> str:
        return f"{self.suffix} of the {self.place} segment {self.corruption}, broker {self.shutdown}"


def _cases() -> Iterator[Case]:
    shutdowns: tuple[Shutdown, ...] = ("clean", "killed")
    places: tuple[Place, ...] = ("sealed", "active")
    for shutdown in shutdowns:
        for place in places:
            for damage in _OF_BOTH_INDEXES:
                yield Case(shutdown, place, ".index", damage)
            for damage in (*_OF_BOTH_INDEXES, *_OF_TIME_INDEXES):
                yield Case(shutdown, place, ".timeindex", damage)


CASES: Final = tuple(_cases())
