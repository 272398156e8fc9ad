"""Evidence about the next start in a verification: partitions to simulate, missing logs, doubtful clean stops."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from kidx.discovery import DELETED, EPOCHS, LOG
from kidx.findings import HARMLESS, LOSSES, Fault
from kidx.startup.answers import PartitionStart
from kidx.startup.remedies import MISPLACED

if TYPE_CHECKING:
    from kidx.findings import Finding
    from kidx.verify import Verification

_TELLING: Final = frozenset({Fault.ORPHAN, Fault.LEFTOVER})
"""Remarks about files whose effect on a start only a simulation shows: without a segment, and leftovers.

The effect of other harmless files on a start follows from the remark: a log start inside a segment is not changed, a
``.deleted`` file is deleted, and an incomplete last batch is cut off (:func:`torn`). A simulation of a log costs about
a tenth of a second of a processor, and a broker that was killed can have ten thousand of these.
"""


def doubted(result: Verification, clean: Mapping[Path, bool]) -> tuple[Path, ...]:
    """Return the log directories with the mark of a clean stop whose partitions are as after a kill.

    A clean stop trims the index files of each active segment. An index that was not trimmed is also a fault.
    """
    untrimmed: dict[Path, set[Path]] = defaultdict(set)
    for finding in result.findings:
        if finding.kind == Fault.UNTRIMMED:
            partition = Path(finding.path).parent
            untrimmed[partition.parent].add(partition)
    return tuple(path for path, was_clean in clean.items() if was_clean and len(untrimmed[path]) > 1)


def lost_logs(result: Verification) -> dict[Path, list[int]]:
    """Return the base offsets of segments whose ``.log`` is missing, by partition directory."""
    found: dict[Path, list[int]] = defaultdict(list)
    for file in result.files:
        path = Path(file.path)
        if file.verdict == "missing" and path.suffix == LOG:
            found[path.parent].append(int(path.stem))
    return found


def already_lost(result: Verification) -> dict[Path, str]:
    """Return the remarks about partitions that have lost records according to checkpoints, by partition directory."""
    return {
        partition_of(finding): finding.message
        for finding in result.findings
        if finding.verdict in HARMLESS and finding.kind in LOSSES
    }


def partition_of(finding: Finding) -> Path:
    """Return the directory of the partition that a finding about a checkpoint is about."""
    directory = Path(finding.path).parent
    return directory if finding.file == EPOCHS else directory / f"{finding.topic}-{finding.partition}"


def with_misplaced(partitions: Iterable[PartitionStart], result: Verification) -> Iterator[PartitionStart]:
    """Yield partitions that change, and partitions with the log of another partition, whose remedy comes first."""
    reasons = {
        Path(
            finding.path
        ).parent: f"{finding.file} and the index files next to it are of two partitions, see its finding"
        for finding in result.findings
        if finding.verdict == "broken" and finding.kind == Fault.MISPLACED
    }
    for each in partitions:
        if each.outcome == "kept" or each.directory not in reasons:
            yield each
        else:
            yield replace(each, reason=reasons.pop(each.directory), remedy=MISPLACED, instead="", tried="")
    for directory, reason in reasons.items():
        yield PartitionStart(directory, "foreign", reason, remedy=MISPLACED)


def suspected(result: Verification) -> set[Path]:
    """Return the partition directories with a fault, or with a file whose effect on a start has to be simulated."""
    return {path for finding in result.findings if is_telling(finding) for path in directories_of(finding)}


def is_telling(finding: Finding) -> bool:
    """Return True for a fault, and for a remark about a file whose effect on a start has to be simulated."""
    return finding.verdict not in HARMLESS or (finding.kind in _TELLING and not finding.file.endswith(DELETED))


def directories_of(finding: Finding) -> set[Path]:
    """Return the directories that a finding may be about: of its file, or of its partition for a checkpoint."""
    directory = Path(finding.path).parent
    return {directory, directory / f"{finding.topic}-{finding.partition}"}


def torn(result: Verification) -> dict[Path, Finding]:
    """Return the remarks about bytes that a recovery cuts off the active segment, by partition directory."""
    return {
        Path(finding.path).parent: finding
        for finding in result.findings
        if finding.kind == Fault.TAIL and finding.verdict == "sound" and finding.file.endswith(LOG)
    }
