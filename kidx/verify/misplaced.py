"""Logs in the wrong partition: files of two partitions were exchanged, or one was copied over the other.

The index files of a segment show which log they were written for. A repair would rebuild them from the wrong log.
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
from kidx.findings import HARMLESS, Fault, Finding
from kidx.printable import shell_word
from kidx.verify.guarded import guarded_segment

if TYPE_CHECKING:
    from pathlib import Path

_FITTING: Final = (".index", ".timeindex")
"""Suffixes of index files that fit only one log; a ``.txnindex`` may fit several."""
_COMPARED: Final = 8
"""Maximum number of segments with one base offset that are compared: every comparison reads a log."""
_PADDING: Final = (Fault.UNTRIMMED, Fault.PADDED)
"""Zeros after the entries, which no log explains."""
_EXCHANGED: Final = (
    "the index files of {other} fit this log, and the index files of this segment fit the other log: the logs or "
    "their index files were exchanged"
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


def misplaced_logs(findings: Iterable[Finding], segments: Iterable[Segment], release: str | None) -> dict[str, Finding]:
    """Return findings about sound logs whose index files show that they are from another partition, by path.

    Only segments with the same base offset are compared, as their files have the same names.

    Args:
        findings: findings about the files of all segments.
        segments: segments that were verified.
        release: release whose rules were requested.
    """
    broken = {each.path for each in findings if each.verdict == "broken" and each.kind not in _PADDING}
    if not any(path.endswith(_FITTING) for path in broken):
        return {}
    by_base: dict[int, list[Segment]] = defaultdict(list)
    for segment in segments:
        by_base[segment.base_offset].append(segment)
    found: dict[str, Finding] = {}
    for alike in by_base.values():
        suspects = [each for each in alike if str(each.log) not in broken and any(_broken_of(each, broken))]
        for one, other in combinations(suspects[:_COMPARED], 2):
            if _are_of_two(one, other) and _fits(one, other) and _fits(other, one):
                found |= {str(a.log): _finding(a, b, _EXCHANGED, release) for a, b in ((one, other), (other, one))}
        for segment in suspects:
            if str(segment.log) not in found and all(_broken_of(segment, broken)):
                found |= {
                    str(segment.log): _finding(segment, each, _COPIED, release)
                    for each in _equal(segment, alike)
                    if not _are_twins(segment, each, by_base, broken)
                }
    return found


def _are_twins(one: Segment, other: Segment, by_base: dict[int, list[Segment]], broken: set[str]) -> bool:
    """Return True if two partitions have equal records anyway: intact segments of both are equal, too."""
    for alike in by_base.values():
        if alike[0].base_offset == one.base_offset:
            continue
        of_one, of_other = (
            [each for each in alike if each.log.parent == which.log.parent and not any(_broken_of(each, broken))]
            for which in (one, other)
        )
        if of_one and of_other and _equal(of_one[0], of_other):
            return True
    return False


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


def _finding(segment: Segment, other: Segment, text: str, release: str | None) -> Finding:
    at = segment.topic, segment.partition, segment.base_offset
    return Finding.about(
        segment.log, at, Fault.MISPLACED, "broken", text.format(other=shell_word(other.log)), release=release
    )
