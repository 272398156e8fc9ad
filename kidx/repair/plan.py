"""What of a verification can be put right from the logs, and the reason against everything else."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final

from kidx.discovery import INDEX_SUFFIXES, LOG
from kidx.findings import HARMLESS

if TYPE_CHECKING:
    from kidx.findings import Finding
    from kidx.verify import Verification

TRANSACTIONS: Final = ".txnindex"
_BESIDE: Final = frozenset({"LG-5"})
"""Clauses about a log that say nothing against its bytes: a segment is missing before it."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """A fault that stays, and why."""

    path: str
    reason: str


@dataclass(slots=True)
class Plan:
    """What is to be done.

    Attributes:
        repairs: suffixes of the index files to be written anew, by log.
        refused: the faults that stay.
    """

    repairs: dict[Path, list[str]] = field(default_factory=dict)
    refused: list[Refusal] = field(default_factory=list)

    @property
    def files(self) -> int:
        """How many index files are to be written."""
        return sum(map(len, self.repairs.values()))

    @property
    def directories(self) -> list[Path]:
        """The partition directories concerned, in order."""
        return sorted({log.parent for log in self.repairs})


def plan(result: Verification, incomplete: Collection[Path] = ()) -> Plan:
    """Sorts what a verification found: index files of sound logs are repaired, and the rest is refused.

    Args:
        result: of :func:`kidx.verify.verify_paths`.
        incomplete: partition directories of which only some segments were looked at.
    """
    faults: dict[str, list[Finding]] = defaultdict(list)
    for finding in result.findings:
        if finding.verdict not in HARMLESS:
            faults[finding.path].append(finding)
    for file in result.files:
        if file.verdict not in HARMLESS:
            faults.setdefault(file.path, [])  # a verdict without a finding of its own is a fault, too
    verdicts = {file.path: file.verdict for file in result.files}
    broken_from = _first_broken_logs(faults)
    done = Plan()
    for name, findings in sorted(faults.items()):
        path = Path(name)
        log = path.with_suffix(LOG)
        unreadable = any(finding.verdict == "unreadable" for finding in findings)
        if path.suffix not in INDEX_SUFFIXES or str(log) not in verdicts or unreadable:
            done.refused.append(Refusal(name, _said(findings)))
        elif against := [finding for finding in faults.get(str(log), ()) if finding.clause not in _BESIDE]:
            done.refused.append(Refusal(name, f"its log is {against[0].verdict}: {against[0].message}"))
        elif path.suffix == TRANSACTIONS and path.parent in incomplete:
            reason = "transactions may begin in earlier segments: name the partition's directory, not one of its files"
            done.refused.append(Refusal(name, reason))
        elif path.suffix == TRANSACTIONS and broken_from.get(path.parent, log.name) < log.name:
            reason = f"transactions may begin in earlier segments, and {broken_from[path.parent]} is broken"
            done.refused.append(Refusal(name, reason))
        else:
            done.repairs.setdefault(log, []).append(path.suffix)
    return done


def _first_broken_logs(faults: dict[str, list[Finding]]) -> dict[Path, str]:
    """The name of the first log with a fault, by directory."""
    first: dict[Path, str] = {}
    for path in map(Path, sorted(faults)):
        if path.suffix == LOG:
            first.setdefault(path.parent, path.name)
    return first


def _said(findings: list[Finding]) -> str:
    if not findings:
        return "it is broken; only index files are rebuilt"
    more = f" (and {len(findings) - 1} more)" if len(findings) > 1 else ""
    return f"{findings[0].message}{more}; only index files are rebuilt, from logs that are sound"
