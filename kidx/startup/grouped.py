"""Findings and remarks about a copy of log directories, grouped by partition."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Mapping
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from kidx.discovery import INDEX_SUFFIXES
from kidx.findings import HARMLESS, Fault
from kidx.startup.answers import HARMED
from kidx.startup.evidence import directories_of

if TYPE_CHECKING:
    from kidx.startup.answers import Later, PartitionStart
    from kidx.startup.start import Start
    from kidx.verify import Verification

_UNREADABLE: Final = frozenset({Fault.CHECKSUM, Fault.FORMAT})
"""Kinds of faults of a log that a consumer cannot pass."""


class Score(NamedTuple):
    """Faults of a copy, the gravest first; less is better.

    Attributes:
        stops: reasons for which a broker would not start, or give up a log directory.
        lost: readable records that are lost.
        harmed: partitions to which a start does harm, or something unknown.
        faults: files that are wrong, and that a start does not rebuild.
        refuted: statements about offsets that the logs refute.
    """

    stops: int
    lost: int
    harmed: int
    faults: int
    refuted: int

    def is_better_than(self, other: Score) -> bool:
        """Return True if something is better, and no more records are lost."""
        return self < other and self.lost <= other.lost


class Seen:
    """Findings and remarks about a view, by the files and directories of the copy.

    Args:
        original: function that returns a text about the view with the paths of the copy.
    """

    def __init__(self, result: Verification, start: Start, original: Callable[[str], str]) -> None:
        self.result, self.start = result, start
        self._original = original

    def _path(self, path: str | Path) -> Path:
        return Path(self._original(str(path)))

    @cached_property
    def kinds(self) -> Mapping[Path, set[Fault]]:
        """Kinds of the faults of each file."""
        kinds: dict[Path, set[Fault]] = defaultdict(set)
        for finding in self.result.findings:
            kinds[self._path(finding.path)].add(finding.kind)
        return kinds

    @cached_property
    def not_rebuilt(self) -> Mapping[Path, list[Path]]:
        """Index files of each partition that are wrong, and that a start does not rebuild."""
        rebuilt = set(map(self._path, self.start.rebuilt))
        files: dict[Path, list[Path]] = defaultdict(list)
        for file in sorted(set(map(self._path, self.result.faulty_paths)) - rebuilt):
            if file.suffix in INDEX_SUFFIXES:
                files[file.parent].append(file)
        return files

    @cached_property
    def faults(self) -> Mapping[Path, set[str]]:
        """Paths of the files that are wrong and that a start does not rebuild, by the partition that they are about."""
        files: dict[Path, set[str]] = defaultdict(set)
        rebuilt = set(map(str, self.start.rebuilt))
        for finding in self.result.findings:
            if finding.verdict not in HARMLESS and finding.path not in rebuilt:
                for directory in directories_of(finding):
                    files[self._path(directory)].add(finding.path)
        return files

    @cached_property
    def unreadable(self) -> Mapping[Path, list[int]]:
        """Offsets of the batches in each partition that a consumer cannot pass."""
        offsets: dict[Path, list[int]] = defaultdict(list)
        for finding in self.result.findings:
            if finding.kind in _UNREADABLE and finding.offset is not None:
                offsets[self._path(finding.path).parent].append(finding.offset)
        return offsets

    @cached_property
    def partitions(self) -> Mapping[Path, list[PartitionStart]]:
        """Effects of the start on each partition."""
        found: dict[Path, list[PartitionStart]] = defaultdict(list)
        for each in self.start.partitions:
            found[self._path(each.directory)].append(each)
        return found

    @cached_property
    def later(self) -> Mapping[Path, list[Later]]:
        """Harm to each partition after the start."""
        found: dict[Path, list[Later]] = defaultdict(list)
        for each in self.start.later:
            found[self._path(each.directory)].append(each)
        return found

    @cached_property
    def stops(self) -> Counter[Path]:
        """Number of reasons for which a broker would not start or give up a log directory, by file and directory."""
        places = [each.path for each in (*self.start.fatal, *self.start.offline.values(), *self.start.further)]
        return Counter(each for place in map(self._path, places) for each in (place, place.parent))

    def harms(self, path: Path) -> bool:
        """Return True if a start does harm to a partition, or stops because of it."""
        return bool(self._harmed(path) or self.stops[path] or self.later.get(path))

    def _harmed(self, path: Path) -> int:
        return sum(each.outcome in {*HARMED, "unknown"} for each in self.partitions.get(path, ()))

    def score(self, path: Path, lost: int, refuted: int) -> Score:
        """Return the score of a partition."""
        later = self.later.get(path, [])
        return Score(
            self.stops[path],
            lost + sum(each.records for each in later),
            self._harmed(path) + len(later),
            len(self.faults.get(path, ())),
            refuted,
        )
