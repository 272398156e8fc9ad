"""All that is tried: a damage, the file it is done to, the segment that has it, and how the broker was stopped."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal, NamedTuple

from conformance.experiments.file_damage import damages

if TYPE_CHECKING:
    from conformance.experiments.file_damage.damages import Damage

Suffix = Literal[".index", ".timeindex"]
Place = Literal["sealed", "active"]
Shutdown = Literal["clean", "killed"]

_SIZES: Final[dict[Suffix, int]] = {".index": damages.OFFSET_ENTRY, ".timeindex": damages.TIME_ENTRY}
_BOTH: Final[dict[str, Damage]] = {
    "deleted": damages.delete,
    "renamed": damages.rename,
    "emptied": damages.empty,
    "cut in half": damages.cut,
    "cut within an entry": damages.cut_within,
    "filled with zeros": damages.fill_with_zeros,
    "low bit flipped": damages.flip_bit,
    "high bit flipped": damages.flip_high_bit,
}
_TIME_ONLY: Final[dict[str, Damage]] = {
    "stale timestamps": damages.make_stale,
    "timestamps ahead": damages.make_early,
}


class Case(NamedTuple):
    """One damage to one file of one segment, after one kind of stop."""

    shutdown: Shutdown
    place: Place
    suffix: Suffix
    damage: str

    def file(self, directory: Path) -> Path:
        """The file in a partition's directory: of the active segment, or of the one before it."""
        logs = sorted(directory.glob("*.log"))
        return logs[-1 if self.place == "active" else -2].with_suffix(self.suffix)

    def do(self, directory: Path) -> None:
        """Does the damage.

        Raises:
            OSError: there is no such file.
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
