"""Plan of a repair: the files that can be rebuilt from sound logs, and the reason against every other file."""

from __future__ import annotations

import errno
import os
from collections import defaultdict
from collections.abc import Collection
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal

from kidx.discovery import DELETE, EPOCHS, INDEX_SUFFIXES, LOG, OFFSET_CHECKPOINTS, STRAY, SWAP, parse_partition
from kidx.findings import HARMLESS, Fault

if TYPE_CHECKING:
    from kidx.findings import Finding
    from kidx.verify import Verification

Kind = Literal[
    "log",
    "times",
    "log start",
    "checkpoint",
    "permission",
    "path",
    "marked",
    "swap",
    "unfinished",
    "file",
    "link",
    "index",
]
"""Kind of fault: faults of one kind have the same remedy."""

TRANSACTIONS: Final = ".txnindex"
_KINDS: Final[dict[str, Kind]] = {
    **dict.fromkeys((LOG, SWAP), "log"),
    **dict.fromkeys(INDEX_SUFFIXES, "index"),
    **dict.fromkeys((EPOCHS, *OFFSET_CHECKPOINTS), "checkpoint"),
}
"""Kind of a fault by suffix or name of its file."""


@dataclass(frozen=True, slots=True)
class RemainingFault:
    """Fault that remains, with the reason.

    Attributes:
        reason: why the fault remains.
        kind: kind of remedy.
        directory: directory of the partition; empty if the file is in it.
    """

    path: str
    reason: str
    kind: Kind = "index"
    directory: str = ""

    @property
    def place(self) -> str:
        """Directory of the partition."""
        return self.directory or os.path.dirname(self.path) or "."  # noqa: PTH120 -- of URLs, too


@dataclass(slots=True)
class Plan:
    """Work of a repair.

    Attributes:
        repairs: suffixes of the index files to rebuild, by log.
        epochs: checkpoints of leader epochs to rebuild.
        remaining: Faults that are not repaired.
    """

    repairs: dict[Path, list[str]] = field(default_factory=dict)
    epochs: list[Path] = field(default_factory=list)
    remaining: list[RemainingFault] = field(default_factory=list)

    @property
    def index_files(self) -> int:
        """Number of index files to rebuild."""
        return sum(map(len, self.repairs.values()))

    @property
    def directories(self) -> list[Path]:
        """Directories of the partitions concerned, in order."""
        return sorted({path.parent for path in (*self.repairs, *self.epochs)})


def plan(result: Verification, incomplete: Collection[Path] = ()) -> Plan:
    """Sort the faults of a verification into repairs from sound logs, and faults that remain.

    Args:
        result: result of :func:`kidx.verify.verify_paths`.
        incomplete: partition directories of which only some segments were verified.
    """
    return _Planner(result, incomplete).plan()


class _Planner:
    """Faults of a verification by path, and the decision for each."""

    def __init__(self, result: Verification, incomplete: Collection[Path]) -> None:
        self._incomplete = incomplete
        self._faults: dict[str, list[Finding]] = defaultdict(list)
        for finding in result.findings:
            if finding.verdict not in HARMLESS:
                self._faults[finding.path].append(finding)
        for file in result.files:
            if file.verdict not in HARMLESS:
                self._faults.setdefault(file.path, [])  # a verdict without a finding is a fault, too
        self._logs = {file.path for file in result.files if file.path.endswith(LOG)}
        self._problems = {str(problem.path) for problem in result.problems}
        self._broken_from: dict[Path, str] = {}
        for path in map(Path, sorted(self._faults)):
            if path.suffix == LOG and not _has_wrong_times_only(self._faults[str(path)]):
                self._broken_from.setdefault(path.parent, path.name)

    def plan(self) -> Plan:
        done = Plan()
        for name, findings in sorted(self._faults.items()):
            path = Path(name)
            fault = self._remaining_fault(path, findings)
            if fault is not None:
                done.remaining.append(fault)
            elif path.name == EPOCHS:
                done.epochs.append(path)
            else:
                done.repairs.setdefault(path.with_suffix(LOG), []).append(path.suffix)
        return done

    def _remaining_fault(self, path: Path, findings: list[Finding]) -> RemainingFault | None:
        """Return the reason against rebuilding a file; None if it can be rebuilt."""
        kind = self._kind(path, findings)
        if kind == "index":
            return self._against_an_index(path, findings)
        broken = self._broken_from.get(path.parent)
        if path.name != EPOCHS or kind != "checkpoint":
            in_a_partition = path.name not in OFFSET_CHECKPOINTS or not findings or findings[0].topic is None
            name = "" if in_a_partition else f"{findings[0].topic}-{findings[0].partition}"
            return RemainingFault(str(path), _said(findings), kind, str(path.parent / name) if name else "")
        if path.is_symlink():
            return RemainingFault(str(path), against_a_link(path), "link")
        if broken is None:
            return None
        return RemainingFault(str(path), f"leader epochs come from the logs, and {broken} is broken or missing", "log")

    def _against_an_index(self, path: Path, findings: list[Finding]) -> RemainingFault | None:
        name, log = str(path), path.with_suffix(LOG)
        against = [finding for finding in self._faults.get(str(log), []) if finding.kind != Fault.BATCH_TIMESTAMP]
        broken_from = self._broken_from.get(path.parent, log.name)
        if path.is_symlink():
            return RemainingFault(name, against_a_link(path), "link")
        if against:
            return RemainingFault(name, f"its log is {against[0].verdict}: {against[0].message}", "log")
        if str(log) not in self._logs or any(finding.verdict == "unreadable" for finding in findings):
            return RemainingFault(name, _said(findings), "file")
        if path.suffix == TRANSACTIONS and (path.parent in self._incomplete or broken_from < log.name):
            reason = "transactions may begin in earlier segments"
            if path.parent in self._incomplete:
                return RemainingFault(name, f"{reason}: name the partition's directory, not one of its files")
            return RemainingFault(name, f"{reason}, and {broken_from} is broken or missing", "log")
        return None

    def _kind(self, path: Path, findings: list[Finding]) -> Kind:
        unreadable = {finding.message for finding in findings if finding.verdict == "unreadable"}
        parsed = parse_partition(path.parent.name)
        if parsed is not None and parsed[2] in {DELETE, STRAY}:
            return "marked"
        if any(os.strerror(errno.EACCES) in message for message in unreadable):
            return "permission"
        if path.name in OFFSET_CHECKPOINTS and not unreadable:
            return "log start" if any(finding.kind == Fault.LOG_START_PAST_END for finding in findings) else "log"
        if str(path) in self._problems and path.name not in OFFSET_CHECKPOINTS:
            return "path"
        is_unfinished = any(finding.kind == Fault.UNFINISHED_COMPACTION for finding in findings)
        if is_unfinished or (path.suffix == SWAP and not path.stem.endswith(LOG)):
            return "unfinished" if is_unfinished else "swap"
        is_wrong_in_times = path.suffix == LOG and _has_wrong_times_only(findings)
        return "times" if is_wrong_in_times else _KINDS.get(path.name) or _KINDS.get(path.suffix, "file")


def against_a_link(path: Path) -> str:
    """Return the reason against rebuilding a symbolic link."""
    instead = f"repair {path.resolve()} instead" if path.exists() else "its target does not exist"
    return f"it is a symbolic link, which is not replaced; {instead}"


def _has_wrong_times_only(findings: list[Finding]) -> bool:
    """Return True if the index files of a log can be rebuilt from it, as a start does."""
    return bool(findings) and all(finding.kind == Fault.BATCH_TIMESTAMP for finding in findings)


def _said(findings: list[Finding]) -> str:
    if not findings:
        return "it is broken; only index files and leader epochs are rebuilt"
    more = f" (and {len(findings) - 1} more)" if len(findings) > 1 else ""
    return f"{findings[0].message}{more}; only index files and leader epochs are rebuilt, from logs that are sound"
