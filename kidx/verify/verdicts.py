"""Results of a verification: verdicts on files, segments and partitions; picklable.

Faults are grouped by cause: a corrupt log makes its indexes wrong, and a wrong index has many wrong entries.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from kidx.discovery import INDEX_SUFFIXES, LOG
from kidx.findings import Fault
from kidx.printable import encodable

if TYPE_CHECKING:
    from collections.abc import Iterable

    from kidx.discovery import Segment
    from kidx.files import Signature
    from kidx.findings import Finding, Verdict
    from kidx.verify.facts import TransactionEvent


@dataclass(frozen=True, slots=True)
class Interval:
    """Values of ``index.interval.bytes`` that explain every entry of an ``.index``, both ends included.

    Attributes:
        least: the smallest value.
        most: the largest value; None without an upper limit, for example without entries.
        restarts: number of entries that are later than ``most`` allows: the broker was restarted, or an append had
            several batches.
    """

    least: int
    most: int | None
    restarts: int = 0

    def holds(self, value: int) -> bool:
        """Return True if a value explains every entry, without any restart."""
        return self.least <= value and (self.most is None or value <= self.most) and not self.restarts

    def __str__(self) -> str:
        return f"at least {self.least}" if self.most is None else f"{self.least} to {self.most}"


def agree(intervals: Iterable[Interval]) -> Interval | None:
    """Return the values of ``index.interval.bytes`` that explain the entries of most files; None without any entry."""
    known = [interval for interval in intervals if interval.most is not None]
    if not known:
        return None
    most = min(interval.most for interval in known if interval.most is not None)
    least = max((interval.least for interval in known if interval.least <= most), default=0)
    late = sum(interval.least > most for interval in known) + sum(interval.restarts for interval in known)
    return Interval(least, most, late)


@dataclass(frozen=True, slots=True)
class FileVerdict:
    """Verdict on one file.

    Attributes:
        verdict: *exact*, *sound*, *changing*, *broken*, *missing* or *unreadable*; a ``.log`` without fault is *exact*.
        releases: releases for which the file is exact: ``2.4.0 – 4.4.0``; empty if it is not exact.
        why: reason why the file is not exact, if known.
        entries: number of entries of an index file.
        size: number of bytes.
        interval: interval of the entries of an ``.index``.
    """

    path: str
    verdict: Verdict
    releases: str = ""
    why: str = ""
    entries: int | None = None
    size: int | None = None
    interval: Interval | None = None

    def to_json(self) -> dict[str, Any]:
        """Return an object of ``kidx verify --json``."""
        interval = None if self.interval is None else [self.interval.least, self.interval.most]
        return {
            "path": encodable(self.path),
            "verdict": self.verdict,
            "releases": self.releases,
            "why": encodable(self.why),
            "entries": self.entries,
            "size": self.size,
            "index_interval_bytes": interval,
        }


@dataclass(frozen=True, slots=True)
class SegmentVerdict:
    """Verdict on one segment's files, and the facts that the rules for the whole partition need.

    Attributes:
        files: one verdict per file.
        findings: findings about the files.
        batches, records: numbers of batches and records in the log; records of formats v0 and v1 are not counted.
        bytes_read: number of bytes read of all files.
        first_offset, last_offset: first and last offset of the batches that reading reaches; -1 without batches.
        hidden_end: offset after the last whole batch that reading does not reach; -1 without one.
        max_timestamp: largest timestamp in milliseconds; -1 without one.
        epochs: ``(leader epoch, first offset)`` of each change.
        transactions: begins and ends of transactions, in order.
        aborted: entries of the ``.txnindex``: ``(version, producer id, first, last, last stable offset)``; None if it
            does not exist or cannot be read.
        counts: number of batches of each kind of trouble.
        compacted: True if offsets between or in batches are missing, as after compaction.
        readable: True if the log could be read.
        gone: True if the log was removed before it could be read.
        signature: signature of the files before they were read; a changed file has another signature.
    """

    segment: Segment
    files: tuple[FileVerdict, ...] = ()
    findings: tuple[Finding, ...] = ()
    batches: int = 0
    records: int = 0
    bytes_read: int = 0
    first_offset: int = -1
    last_offset: int = -1
    max_timestamp: int = -1
    epochs: tuple[tuple[int, int], ...] = ()
    transactions: tuple[TransactionEvent, ...] = ()
    aborted: tuple[tuple[int, ...], ...] | None = None
    counts: Counter[str] = field(default_factory=Counter)
    compacted: bool = False
    readable: bool = True
    gone: bool = False
    signature: Signature = ()
    hidden_end: int = -1

    @property
    def end_offset(self) -> int:
        """Offset after the last whole batch, wherever it lies; the base offset without batches."""
        return max(self.hidden_end, self.last_offset + 1 if self.batches else self.segment.base_offset)


@dataclass(frozen=True, slots=True)
class PartitionVerdict:
    """Verdict on a partition; ``files`` and ``findings`` are from all its segments, and from the partition itself."""

    directory: Path
    name: str
    files: tuple[FileVerdict, ...]
    findings: tuple[Finding, ...]
    segments: int
    batches: int
    bytes_read: int
    interval: Interval | None = None


_OF_TRANSACTIONS: Final = {Fault.TRANSACTION, Fault.TOO_MANY_ENTRIES, Fault.MISSING_INDEX}
"""Faults of a ``.txnindex`` that follow from a log that ends too early."""
_FEW: Final = 3
"""Maximum number of similar causes that are listed one by one."""
_NUMBERS: Final = re.compile(r"\d+")


@dataclass(slots=True)
class Cause:
    """Fault, with its consequences.

    Attributes:
        finding: the fault.
        followers: faults that result from this fault, in the order of the table.
    """

    finding: Finding
    followers: list[Finding] = field(default_factory=list)


def causes_of(faults: Iterable[Finding]) -> list[Cause]:
    """Return the faults, grouped by cause: ordered by partition, then by segment, with the log before its indexes.

    Args:
        faults: faults in the order of the table.
    """
    return [cause for group in _by_directory(faults).values() for cause in _causes_in(group)]


def alike(causes: Iterable[Cause]) -> list[list[Cause]]:
    """Return causes in groups: more than :data:`_FEW` causes that differ only in files and numbers are one group.

    Every other cause is a group of one.
    """
    groups: dict[tuple[str, ...], list[Cause]] = {}
    for cause in causes:
        finding = cause.finding
        words = _NUMBERS.sub("#", finding.message)
        groups.setdefault((finding.kind, finding.verdict, Path(finding.path).suffix, words), []).append(cause)
    return [
        part for group in groups.values() for part in ([group] if len(group) > _FEW else [[each] for each in group])
    ]


def _by_directory(faults: Iterable[Finding]) -> dict[str, list[Finding]]:
    groups: dict[str, list[Finding]] = {}
    for finding in faults:
        groups.setdefault(finding.path.rpartition("/")[0], []).append(finding)
    return groups


def _causes_in(faults: list[Finding]) -> list[Cause]:
    causes: list[Cause] = []
    of_file: dict[str, Cause] = {}
    cut: Cause | None = None  # the first log that cannot be read to its end
    previous: Cause | None = None  # the last log that cannot be read to its end
    for finding in sorted(faults, key=_log_first):
        path = Path(finding.path)
        own_log = of_file.get(str(path.with_suffix(LOG)))
        if finding.kind == Fault.LOST_OFFSETS and previous is not None and finding.path == previous.finding.path:
            cause: Cause | None = previous
        elif cut is not None and path.suffix == ".txnindex" and finding.kind in _OF_TRANSACTIONS:
            cause = cut
        elif path.suffix in INDEX_SUFFIXES:
            cause = own_log or of_file.get(finding.path)
        else:
            cause = of_file.get(finding.path) if finding.position is None and finding.offset is None else None
        if cause is not None:
            cause.followers.append(finding)
            continue
        causes.append(Cause(finding))
        if finding.kind != Fault.BATCH_TIMESTAMP:  # the log can be read: no fault results from it
            of_file.setdefault(finding.path, causes[-1])
        if finding.kind == Fault.TAIL:
            previous = causes[-1]
            cut = cut or previous
    return causes


def _log_first(finding: Finding) -> tuple[bool, int, bool, bool, str]:
    is_log = finding.path.endswith(LOG)
    number = -1 if finding.base_offset is None else finding.base_offset
    return number < 0, number, not is_log, finding.kind == Fault.LOST_OFFSETS, finding.path
