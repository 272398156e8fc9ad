"""Effect of a start on whole logs of which index files are empty or missing, which follows from their files.

A start keeps all records of such a log, rebuilds the index files of the segments that it recovers, and new records can
be read. Retention can go by the modification time of a ``.log`` whose time index has no entry.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from kidx.discovery import DELETED, LOG
from kidx.findings import HARMLESS
from kidx.segment.files import OFFSET_INDEX_SUFFIX, TIME_INDEX_SUFFIX, file_name
from kidx.startup.evidence import directories_of, is_telling
from kidx.startup.readable import LoggedRecords, largest_timestamp_in

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from kidx.log import LogConfig
    from kidx.startup.simulation import Checkpoints
    from kidx.verify import Verification

_SUFFIXES: Final = frozenset({OFFSET_INDEX_SUFFIX, TIME_INDEX_SUFFIX})
"""Suffixes of the index files that a start rebuilds from a log."""


def without_entries(result: Verification) -> dict[Path, set[Path]]:
    """Return the index files without entries, by the partition directories with no other fault."""
    faulty: dict[Path, set[Path]] = defaultdict(set)
    others: set[Path] = set()
    for finding in result.findings:
        if not is_telling(finding):
            continue
        path = Path(finding.path)
        if finding.verdict not in HARMLESS and path.suffix in _SUFFIXES and not _size(path):
            faulty[path.parent].add(path)
        else:
            others |= directories_of(finding)
    return {path: files for path, files in faulty.items() if path not in others}


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0


class Kept(NamedTuple):
    """Whole log that a start keeps.

    Attributes:
        start, end: start and end of the log, before and after.
        rewritten: the index files without entries that the start rebuilds.
    """

    start: int
    end: int
    rewritten: frozenset[Path]


class WholeLog:
    """Log without a fault in its ``.log`` files.

    Args:
        names: names of all regular files of the directory.
        faulty: its index files without entries.
        checkpoints: checkpointed offsets of the log.
    """

    def __init__(
        self, directory: Path, names: Collection[str], faulty: Collection[Path], checkpoints: Checkpoints
    ) -> None:
        self.directory, self.checkpoints = directory, checkpoints
        self._names, self._faulty = frozenset(names), frozenset(faulty)
        self._logged = LoggedRecords(directory)
        self._bases = list(self._logged.sizes)

    def kept(self) -> Kept | None:
        """Return what a start keeps of the log; None if that does not follow from its files."""
        if not self._bases or any(name.endswith(DELETED) for name in self._names):
            return None
        end = self._logged.end
        start = max(self.checkpoints.start_offset, self._bases[0])
        if self._logged.readable_end != end or start > end:
            return None
        rewritten = {path for path in self._faulty if int(path.stem) in self._recovered}
        return Kept(start, end, frozenset(rewritten))

    @cached_property
    def _recovered(self) -> set[int]:
        """Base offsets of the segments that a start recovers."""
        found = {base for base in self._bases if file_name(base, OFFSET_INDEX_SUFFIX) not in self._names}
        if not self.checkpoints.clean:
            found |= set(self._bases[max(bisect_right(self._bases, self.checkpoints.recovery_point) - 1, 0) :])
        return found

    def keeps_its_segments(self, config: LogConfig, now: int) -> bool:
        """Return True if retention deletes no segment after the start that it keeps with right time indexes."""
        sizes: Mapping[int, int] = self._logged.sizes
        if not config.deletes:
            return True
        if 0 <= config.retention_bytes < sum(sizes.values()):
            return False
        for base, following in zip(self._bases, [*self._bases[1:], None], strict=True):
            if following is not None and following <= self.checkpoints.start_offset:
                continue
            log = self.directory / file_name(base, LOG)
            modified = log.stat().st_mtime_ns // 1_000_000
            is_right = base in self._recovered or log.with_suffix(TIME_INDEX_SUFFIX) not in self._faulty
            largest = largest_timestamp_in(log, sizes[base])
            actual = largest if largest >= 0 else modified
            is_old, seems_old = (0 <= config.retention_ms < now - time for time in (actual, modified))
            if not (is_old if is_right else seems_old):
                return True
            if not is_old:
                return False
        return True
