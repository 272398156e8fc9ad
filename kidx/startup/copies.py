"""Several directories of one partition: the copy that a start serves, and what becomes of the others.

A ``-future`` directory is the copy of a partition that is being moved to another log directory. It is no partition: if
KRaft's metadata already assign the partition to its log directory, a start replaces the partition with it;
otherwise the move continues, and the copy is filled from the partition, or emptied if no partition exists.
"""

from __future__ import annotations

import contextlib
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from kidx.discovery import FUTURE, LOG, parse_partition
from kidx.printable import shell_word
from kidx.startup.answers import PartitionStart, Remark, SegmentChange
from kidx.startup.checkpoints import UnreadableError, properties_of
from kidx.startup.directories import directories_in
from kidx.startup.names import is_of_metadata
from kidx.startup.readable import NOTHING, LoggedRecords, Piece
from kidx.startup.remedies import TWICE

if TYPE_CHECKING:
    from collections.abc import Callable

Limits = tuple[int, int]
"""Start and end of a log after it is loaded."""
_ASSIGNED: Final = "KRaft's metadata assign the partition to this log directory"


class Settled(NamedTuple):
    """Result of a start for partitions with several directories.

    Attributes:
        fatal: copies that prevent the start.
        partitions: copies that are lost, or that take the place of their partition.
        remarks: copies that prevent a later start.
        replaced: directories of partitions that other copies have, although these are renamed.
    """

    fatal: list[Remark]
    partitions: list[PartitionStart]
    remarks: list[Remark]
    replaced: set[Path]


class Copies:
    """Directories of partitions, by topic and number.

    Args:
        log_directories: log directories of a broker.
        assigned: id of the log directory to which KRaft's metadata assign a partition, by topic and number.
        aside: directories that the start renames while it loads logs.
        limits: function that returns the start and the end of the log in a directory.
        are_settled: True if the release replaces partitions with their copies when it starts.
    """

    def __init__(
        self,
        log_directories: Iterable[Path],
        assigned: Mapping[tuple[str, int], str],
        aside: Collection[Path],
        limits: Callable[[Path], Limits],
        *,
        are_settled: bool,
    ) -> None:
        self._assigned, self._limits, self._are_settled = assigned, limits, are_settled
        self._aside = set(aside) if are_settled else set()
        self._places: dict[tuple[str, int], dict[str, list[Path]]] = defaultdict(lambda: defaultdict(list))
        self._ids: dict[Path, str] = {}
        for directory in log_directories:
            with contextlib.suppress(UnreadableError):
                self._ids[directory] = (properties_of(directory) or {}).get("directory.id", "")
            for path in directories_in(directory):
                parsed = parse_partition(path.name)
                if parsed is not None and parsed[2] in {"", FUTURE} and not is_of_metadata(path.name):
                    self._places[parsed[:2]][parsed[2]].append(path)

    def settle(self) -> Settled:
        """Return what a start makes of the partitions with several directories."""
        found = Settled([], [], [], set())
        for (topic, number), places in self._places.items():
            current, future = ([path for path in places[state] if path not in self._aside] for state in ("", FUTURE))
            if current or future:
                found.replaced.update(path for path in places[""] if path in self._aside)
            name = shell_word(f"{topic}-{number}")
            duplicates = [some for some in (current, future) if len(some) > 1]
            for first, *others in duplicates:
                what = f"{name}, being moved," if first in future else name
                found.fatal.append(Remark(first, f"{what} lies in {', '.join(map(shell_word, others))}, too", TWICE))
            if future and not duplicates:
                self._settle(future[0], current[0] if current else None, (topic, number), found)
        return found

    def _settle(self, future: Path, current: Path | None, place: tuple[str, int], found: Settled) -> None:
        """Settle one partition that is being moved."""
        name = shell_word(f"{place[0]}-{place[1]}")
        assigned = self._assigned.get(place, "")
        if self._are_settled and assigned and assigned == self._ids.get(future.parent):
            self._promote(future, current, name, found)
        elif current is None:
            reason = (
                f"it is the only copy of {name}, which was being moved here: the start makes an empty {name}, and "
                "empties this copy, which follows it"
            )
            remedy = f"mv {shell_word(future)} {shell_word(future.parent / f'{place[0]}-{place[1]}')}"
            found.partitions.append(self._lost(future, None, reason, remedy))
        elif current.parent == future.parent:
            if self._are_settled and assigned and current.parent in self._ids:
                reason = (
                    f"it is next to {name}, in a log directory to which KRaft's metadata do not assign the partition: "
                    "this start leaves it, and the broker has the assignment corrected; the next start then fails "
                    "(DirectoryNotEmptyException)"
                )
            else:
                reason = (
                    f"it is next to {name}: this start leaves it, and no later one succeeds once KRaft's metadata "
                    "assign the partition to this log directory"
                )
            found.remarks.append(Remark(future, reason, "move it out of the log directory"))
        else:
            reason = (
                f"it is cut to the end of {shell_word(current)}, from which the start continues to move {name}: later "
                "records are in this copy alone"
            )
            lost = self._lost(future, current, reason, f"copy {shell_word(future)} out of the log directories")
            if lost.lost:
                found.partitions.append(lost)

    def _promote(self, future: Path, current: Path | None, name: str, found: Settled) -> None:
        """Replace a partition with its copy."""
        start, end = self._limits(future)
        if current is None:
            found.partitions.append(PartitionStart(future, "kept", f"it becomes {name}", (start, start), (end, end)))
            return
        if current.parent == future.parent:
            last = self._limits(current)[1]
            shorter = current if last < end else future
            reason = (
                f"{_ASSIGNED}, so the start renames it to {current.name}, which exists (DirectoryNotEmptyException)"
            )
            remedy = f"move {shell_word(shorter)} out of the log directory: the other copy ends at {max(last, end)}"
            found.fatal.append(Remark(future, reason, remedy))
            return
        reason = (
            f"KRaft's metadata assign {name} to {shell_word(future.parent)}, where {shell_word(future)} is: the start "
            "makes that copy the partition, and deletes this directory"
        )
        remedy = f"move {shell_word(future)} out of the log directory: the broker then serves this directory"
        lost = self._lost(current, future, reason, remedy)
        if not lost.lost:
            reason = f"it becomes {name}, and the start deletes {shell_word(current)}"
            lost = PartitionStart(future, "kept", reason, (start, start), (end, end))
        found.partitions.append(lost)

    def _lost(self, path: Path, other: Path | None, reason: str, remedy: str) -> PartitionStart:
        """Return what is lost of a copy if another copy takes its place; None for an empty log."""
        start, end = self._limits(path)
        first, last = self._limits(other) if other is not None else (0, 0)
        lost, changes = NOTHING, []
        with contextlib.suppress(OSError):
            sizes = LoggedRecords(other).sizes if other is not None else {}
            pieces = [Piece(base, _log(other, base), size) for base, size in sizes.items() if other is not None]
            logged = LoggedRecords(path)
            lost = logged.lost(pieces, start, first, last)
            kept_below = last if path.name.endswith(f"-{FUTURE}") else 0  # a copy is cut, a partition is deleted
            changes = [
                SegmentChange(_log(path, base), size, None, logged.records_from(base, 0))
                for base, size in logged.sizes.items()
                if base >= kept_below
            ]
        return PartitionStart(path, "cut", reason, (start, first), (end, last), tuple(changes), remedy, lost=lost)


def _log(directory: Path, base: int) -> Path:
    return directory / f"{base:020d}{LOG}"


def renamed_only(partitions: Iterable[PartitionStart], replaced: Collection[Path]) -> Iterator[PartitionStart]:
    """Yield partitions; one whose directory is renamed, and that has another copy, does not start empty."""
    for each in partitions:
        if each.outcome == "stray" and each.directory in replaced:
            cause = each.reason.partition(": ")[0]
            reason = f"{cause}: the directory is renamed to …-stray, and another copy is the partition"
            yield PartitionStart(each.directory, "renamed", reason)
        else:
            yield each
