"""Errors that a dump finds, collected over all files and written to stderr after the dump (DL-5, DL-7)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Literal

if TYPE_CHECKING:
    from kidx.dump.wording import Wording

MismatchKind = Literal[
    "index_mismatch", "timestamp_mismatch", "timestamp_out_of_order", "offset_not_found", "non_consecutive_offsets"
]

# kind: (heading with the file, line), in the order in which Kafka prints them.
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
    """One error.

    Attributes:
        kind: kind of the error.
        path: absolute path of the file.
        found: value in the file.
        expected: value in the log, or in the entry before.
    """

    kind: MismatchKind
    path: str
    found: int
    expected: int

    @property
    def is_false_alarm(self) -> bool:
        """True if Kafka reports a gap that valid logs have, too.

        Compaction leaves gaps. Kafka 4.3 even reports a gap before the first record of a log that does not begin at 0.
        """
        return self.kind == "non_consecutive_offsets" and self.expected > self.found


@dataclass(slots=True)
class Mismatches:
    """All errors, in the order in which they were found."""

    found: list[Mismatch] = field(default_factory=list)

    def add(self, kind: MismatchKind, path: str, found: int, expected: int) -> None:
        """Add an error; the arguments are the fields of :class:`Mismatch`."""
        self.found.append(Mismatch(kind, path, found, expected))

    def __bool__(self) -> bool:
        return not all(mismatch.is_false_alarm for mismatch in self.found)

    def lines(self, wording: Wording) -> Iterator[str]:
        """Yield the lines that a release prints on stderr."""
        for kind, (heading, line) in _TEXTS.items():
            if kind == "offset_not_found" and wording.names_file_not_found:
                heading = _NOT_FOUND_IN  # noqa: PLW2901
            files: dict[str, list[Mismatch]] = {}
            for mismatch in self.found:
                if mismatch.kind == kind:
                    files.setdefault(mismatch.path, []).append(mismatch)
            for path, mismatches in files.items():
                yield heading.format(path)
                for mismatch in reversed(mismatches) if kind in wording.latest_first else mismatches:
                    yield line.format(mismatch.found, mismatch.expected)
