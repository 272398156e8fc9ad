"""Logs of another partition: files of two partitions were exchanged, or one was copied over the other.

The index files of a segment show which log they were written for. A repair would rebuild them from the wrong one.
"""

from __future__ import annotations

import contextlib
import dataclasses
import filecmp
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING, Any, Final

from kidx.discovery import LOG, Segment
from kidx.findings import HARMLESS, Finding
from kidx.printable import shell_word
from kidx.verify.guarded import guarded_segment

if TYPE_CHECKING:
    from pathlib import Path

    from kidx.verify.run import Verification

_FITTING: Final = (".index", ".timeindex")
"""Index files that fit one log only; a ``.txnindex`` may fit several."""
_COMPARED: Final = 8
"""Segments of one base offset that are compared with each other: every comparison reads a log."""
_EXCHANGED: Final = (
    "the index files of {other} fit this log, and those of this segment fit that one: the logs, or their index files, "
    "were exchanged"
)
_COPIED: Final = (
    "it has the content of {other}, and the index files of this segment fit another log: it was copied over this one"
)


@dataclass(frozen=True, slots=True)
class _Crossed(Segment):
    """A log with the index files of another segment."""

    indexes_of: Segment | None = None

    def path(self, suffix: str) -> Path:
        """Return the path of the log, or of the other segment's index file."""
        return Segment.path(self if suffix == LOG or self.indexes_of is None else self.indexes_of, suffix)


def mark_misplaced(result: Verification, segments: Iterable[Segment]) -> None:
    """Add a finding for each sound log that is of another partition, as index files show; the log counts as broken.

    Only segments with the same base offset are compared, as their files have the same names.

    Args:
        result: verification, which is changed.
        segments: segments that were verified.
    """
    broken = {file.path for file in result.files if file.verdict == "broken"}
    if not any(path.endswith(_FITTING) for path in broken):
        return
    by_base: dict[int, list[Segment]] = defaultdict(list)
    for segment in segments:
        by_base[segment.base_offset].append(segment)
    found: dict[str, Finding] = {}
    for alike in by_base.values():
        suspects = [each for each in alike if str(each.log) not in broken and any(_broken_of(each, broken))]
        for one, other in combinations(suspects[:_COMPARED], 2):
            if _are_of_two(one, other) and _fits(one, other) and _fits(other, one):
                found |= {str(a.log): _finding(a, b, _EXCHANGED, result) for a, b in ((one, other), (other, one))}
        for segment in suspects:
            if str(segment.log) not in found and all(_broken_of(segment, broken)):
                found |= {str(segment.log): _finding(segment, each, _COPIED, result) for each in _equal(segment, alike)}
    result.findings += found.values()
    result.files = [
        dataclasses.replace(file, verdict="broken", releases="") if file.path in found else file
        for file in result.files
    ]


def _broken_of(segment: Segment, broken: set[str]) -> list[bool]:
    """Return for each kind of index file whether it is broken."""
    return [str(segment.path(suffix)) in broken for suffix in _FITTING]


def _are_of_two(one: Segment, other: Segment) -> bool:
    """Return True for segments of two partitions, not of two replicas of one."""
    return one.topic is not None and (one.topic, one.partition) != (other.topic, other.partition)


def _fits(segment: Segment, other: Segment) -> bool:
    """Return True if the index files of another segment fit the log of a segment."""
    plain: dict[str, Any] = {each.name: getattr(segment, each.name) for each in dataclasses.fields(Segment)}
    crossed = _Crossed(**plain | {"existing": other.existing}, indexes_of=other)
    verdict = guarded_segment(crossed)
    return all(file.verdict in HARMLESS for file in verdict.files) and any(file.entries for file in verdict.files)


def _equal(segment: Segment, alike: Iterable[Segment]) -> list[Segment]:
    """Return the first segment of another partition whose log has the same content, if any."""
    for other in alike:
        with contextlib.suppress(OSError):
            if (
                _are_of_two(segment, other)
                and segment.log.stat().st_size
                and filecmp.cmp(segment.log, other.log, shallow=False)
            ):
                return [other]
    return []


def _finding(segment: Segment, other: Segment, text: str, result: Verification) -> Finding:
    release = next((finding.release for finding in result.findings), None)
    at = segment.topic, segment.partition, segment.base_offset
    return Finding.about(segment.log, at, "SEG-35", "broken", text.format(other=shell_word(other.log)), release=release)
