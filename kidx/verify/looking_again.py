"""Repeated verification of a partition whose files change, until two verifications agree.

A broker may write while its files are read. For example, retention deletes a segment, compaction replaces several
segments by one, or a checkpoint is newer than the log. Then each file is sound, but the files contradict each other.
A fault is therefore reported only if none of the files has changed since it was read, or if a second verification
finds the same fault.
"""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from kidx.discovery import discover
from kidx.files import signature_of
from kidx.findings import HARMLESS
from kidx.verify.partition import verify_partition
from kidx.verify.segment import verify_segment
from kidx.verify.verdicts import PartitionVerdict, SegmentVerdict

if TYPE_CHECKING:
    from kidx.discovery import Partition
    from kidx.files import Signature
    from kidx.findings import Finding

_PAUSES: Final = (0.05, 0.1, 0.2, 0.4, 0.8)
"""Seconds before each further verification."""

VerifySegment = Callable[[Any], SegmentVerdict]
"""Function that receives a segment and returns its verdict."""
_Key = tuple[object, ...]


class _Seen(NamedTuple):
    """State of a partition: the partition, and the signatures of its segments' files and of its epochs."""

    partition: Partition
    segments: tuple[Signature, ...]
    epochs: Signature


def verify_living(
    partition: Partition,
    verdicts: Sequence[SegmentVerdict],
    *,
    verify_one: VerifySegment = verify_segment,
    **options: Any,
) -> PartitionVerdict:
    """Return the verdict on a partition that a broker may be writing to; see :func:`kidx.verify.verify_partition`.

    Args:
        partition: partition as it was found before its segments were read.
        verdicts: verdicts on its segments.
        verify_one: function that verifies a segment again after it has changed.
        options: options of :func:`kidx.verify.verify_partition`.
    """
    before = _Seen(partition, tuple(each.signature for each in verdicts), _epochs(partition))
    verdict = verify_partition(partition, verdicts, **options)
    faults = _faults(verdict)
    if not faults or not partition.complete or any(segment.clean for segment in partition.segments):
        return verdict
    for pause in (0.0, *_PAUSES):
        now = _state_of(partition)
        if now is None:
            return PartitionVerdict(partition.directory, partition.name, (), (), 0, 0, 0)
        is_still = now == before
        if is_still and not _is_swapping(now.partition):
            return verdict
        time.sleep(pause)
        known = {(each.segment, each.signature): each for each in verdicts}
        before = now
        verdicts = [
            known.get((segment, signature)) or verify_one(segment)
            for segment, signature in zip(now.partition.segments, now.segments, strict=True)
        ]
        verdict, earlier = verify_partition(now.partition, verdicts, **options), faults
        faults = _faults(verdict)
        if faults <= earlier and not (faults and _is_swapping(now.partition)):
            return verdict
    # A broker that was killed while it swapped segments has left files that no longer change.
    return verdict if is_still else _uncertain(verdict, set() if _is_swapping(before.partition) else earlier)


def _state_of(partition: Partition) -> _Seen | None:
    """Return the current state of a partition; None if its directory no longer exists."""
    found = next((each for each in discover([partition.directory]).partitions if each.complete), None)
    if found is None or found.directory != partition.directory:
        return None
    return _Seen(found, tuple(signature_of(segment.paths) for segment in found.segments), _epochs(found))


def _epochs(partition: Partition) -> Signature:
    return signature_of([] if partition.epochs is None else [partition.epochs])


def _is_swapping(partition: Partition) -> bool:
    """Return True if compaction is currently replacing segments."""
    return any(leftover.mark == ".swap" for leftover in partition.leftovers)


def _key(finding: Finding) -> _Key:
    return finding.path, finding.clause, finding.verdict, finding.slot, finding.offset, finding.position


def _faults(verdict: PartitionVerdict) -> set[_Key]:
    """Return the faults, comparable between verifications; a bad verdict without a finding is a fault, too."""
    found = {_key(finding) for finding in verdict.findings if finding.verdict not in HARMLESS}
    return found | {(file.path, file.verdict) for file in verdict.files if file.verdict not in HARMLESS}


def _uncertain(verdict: PartitionVerdict, agreed: set[_Key]) -> PartitionVerdict:
    """Return the verdict in which every fault that is not in ``agreed`` is *changing*, which is harmless."""
    findings = tuple(
        finding
        if finding.verdict in HARMLESS or _key(finding) in agreed
        else dataclasses.replace(finding, verdict="changing")
        for finding in verdict.findings
    )
    sure = {finding.path for finding in findings if finding.verdict not in HARMLESS}
    files = tuple(
        file
        if file.verdict in HARMLESS or file.path in sure
        else dataclasses.replace(file, verdict="changing", why="it changed between all reads")
        for file in verdict.files
    )
    return dataclasses.replace(verdict, findings=findings, files=files)
