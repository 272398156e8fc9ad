"""What a dump finds wrong, gathered over all files and written to stderr after the dump (DL-5, DL-7)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Literal

if TYPE_CHECKING:
    from kidx.dump.wording import Wording

MismatchKind = Literal[
    "index_mismatch", "timestamp_mismatch", "timestamp_out_of_order", "offset_not_found", "non_consecutive_offsets"
]

# kind: (heading with the file, line), in the order in which Kafka tells them.
_TEXTS: Final[dict[MismatchKind, tuple[str, str]]] = {
    "index_mismatch": ("Mismatches in :{}", "  Index offset: {}, log offset: {}"),
    "timestamp_mismatch": ("Found timestamp mismatch in :{}", "  Index timestamp: {}, log timestamp: {}"),
    "timestamp_out_of_order": (
        "Found out of order timestamp in :{}",
        "  Index timestamp: {}, Previously indexed timestamp: {}",
    ),
    "offset_not_found": (
        "The following indexed offsets are not found in the log.",
        "Indexed offset: {}, found log offset: {}",
    ),
    "non_consecutive_offsets": ("Non-consecutive offsets in {}", "  {} is followed by {}"),
}
_NOT_FOUND_IN: Final = "The following indexed offsets are not found in :{}"


@dataclass(frozen=True, slots=True)
class Mismatch:
    """One thing that is wrong.

    Attributes:
        kind: what it is.
        path: absolute path of the file.
        found: what the file says.
        expected: what the log, or the entry before, says.
    """

    kind: MismatchKind
    path: str
    found: int
    expected: int

    @property
    def is_false_alarm(self) -> bool:
        """Kafka 4.3 tells of a gap before the first record of a log that does not begin at 0."""
        return self.kind == "non_consecutive_offsets" and self.found == -1


@dataclass(slots=True)
class Mismatches:
    """All of them, in the order in which they were found."""

    found: list[Mismatch] = field(default_factory=list)

    def add(self, kind: MismatchKind, path: str, found: int, expected: int) -> None:
        """Notes one."""
        self.found.append(Mismatch(kind, path, found, expected))

    def __bool__(self) -> bool:
        return not all(mismatch.is_false_alarm for mismatch in self.found)

    def lines(self, words: Wording) -> Iterator[str]:
        """What a release prints on stderr."""
        for kind, (heading, line) in _TEXTS.items():
            if kind == "offset_not_found" and words.names_file_not_found:
                heading = _NOT_FOUND_IN  # noqa: PLW2901
            files: dict[str, list[Mismatch]] = {}
            for mismatch in self.found:
                if mismatch.kind == kind:
                    files.setdefault(mismatch.path, []).append(mismatch)
            for path, mismatches in files.items():
                yield heading.format(path)
                for mismatch in reversed(mismatches) if kind in words.latest_first else mismatches:
                    yield line.format(mismatch.found, mismatch.expected)
