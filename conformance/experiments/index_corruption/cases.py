"""Cases of the experiment: each is a corruption of one file of one segment, after one kind of stop."""

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
_BOTH: Final[dict[str, Damage]] = {
    "deleted": corruptions.delete,
    "renamed": corruptions.rename,
    "emptied": corruptions.empty,
    "cut in half": corruptions.cut,
    "cut within an entry": corruptions.cut_within,
    "filled with zeros": corruptions.fill_with_zeros,
    "low bit flipped": corruptions.flip_bit,
    "high bit flipped": corruptions.flip_high_bit,
}
_TIME_ONLY: Final[dict[str, Damage]] = {
    "stale timestamps": corruptions.shift_timestamps_back,
    "timestamps ahead": corruptions.shift_timestamps_forward,
}


class Case(NamedTuple):
    """Corruption of one file of one segment, after one kind of stop."""

    shutdown: Shutdown
    place: Place
    suffix: Suffix
    damage: str

    def file(self, directory: Path) -> Path:
        """Return the path of the file in a partition's directory."""
        logs = sorted(directory.glob("*.log"))
        return logs[-1 if self.place == "active" else -2].with_suffix(self.suffix)

    def apply(self, directory: Path) -> None:
        """Corrupt the file.

        Raises:
            OSError: The file does not exist.
        """
        (_BOTH | _TIME_ONLY)[self.damage](self.file(directory), _SIZES[self.suffix])

    def __str__(self) -> str:
        return f"{self.suffix} of the {self.place} segment {self.damage}, broker {self.shutdown}"


def _cases() -> Iterator[Case]:
    shutdowns: tuple[Shutdown, ...] = ("clean", "killed")
    places: tuple[Place, ...] = ("sealed", "active")
    for shutdown in shutdowns:
        for place in places:
            for damage in _BOTH:
                yield Case(shutdown, place, ".index", damage)
            for damage in (*_BOTH, *_TIME_ONLY):
                yield Case(shutdown, place, ".timeindex", damage)


CASES: Final = tuple(_cases())
