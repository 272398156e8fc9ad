"""Grouping of faults by cause: a corrupt log makes its indexes wrong, and a wrong index has many wrong entries."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final

from kidx.discovery import INDEX_SUFFIXES, LOG
from kidx.findings import Fault

if TYPE_CHECKING:
    from kidx.findings import Finding

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
