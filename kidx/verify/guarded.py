"""Verification that no file and no broker disturbs: an exception becomes a finding, and what changes is read again.

A broker may write while its files are read. For example, retention deletes a segment, compaction replaces several
segments by one, or a checkpoint is newer than the log. Then each file is sound, but the files contradict each other.
A fault, or a loss of records, is therefore reported only if none of the files has changed since it was read, or if a
second verification finds the same.

That is not enough for files that a broker has open, which it also changes in several steps, through mappings that do
not change the time of the file. It creates an index file empty, and preallocates it afterwards. After a truncation,
the entries past the new end remain, until others are written over them: only the memory of the broker says which
entries count. So in a log directory whose lock is held, a fault in an index file from the recovery point on is
*changing*: the segment is active, or a start may be recovering it.
"""

from __future__ import annotations

import dataclasses
import time
import traceback
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from kidx.discovery import INDEX_SUFFIXES, discover
from kidx.files import signature_of
from kidx.findings import HARMLESS, LOSSES, Fault, Finding
from kidx.rebuild.lock import lock_owner, log_directories_of
from kidx.verify.identity import identified_as_before
from kidx.verify.partition import verify_partition
from kidx.verify.segment import verify_segment
from kidx.verify.verdicts import FileVerdict, PartitionVerdict, SegmentVerdict

if TYPE_CHECKING:
    from kidx.dialect import Dialect
    from kidx.discovery import Partition, Segment
    from kidx.files import Signature

_PAUSES: Final = (0.05, 0.1, 0.2, 0.4, 0.8)
"""Seconds before each further verification."""

_CONFIRMED: Final = LOSSES | {Fault.END_TRUNCATED, Fault.ORPHAN}
"""Remarks that records are lost, or may be, which follow from several files: they are confirmed as faults are."""

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
    if not faults or not partition.complete:
        return verdict
    is_held = any(lock_owner(path) is not None for path in log_directories_of(partition.directory))
    if not is_held and any(segment.clean for segment in partition.segments):
        return verdict
    agreed: set[_Key] = set()
    for pause in (0.0, *_PAUSES):
        now = _state_of(partition)
        if now is None:
            return PartitionVerdict(partition.directory, partition.name, (), (), 0, 0, 0)
        is_still = now == before
        if is_still and not _is_swapping(now.partition):
            agreed = faults
            break
        time.sleep(pause)
        known = {(each.segment, each.signature): each for each in verdicts}
        before = now
        verdicts = [
            known.get((segment, signature)) or verify_one(segment)
            for segment, signature in zip(now.partition.segments, now.segments, strict=True)
        ]
        verdict, earlier = verify_partition(now.partition, verdicts, **options), faults
        faults = _faults(verdict)
        agreed = set() if _is_swapping(before.partition) else faults & earlier
        if agreed == faults:
            break
    else:
        # A broker that was killed while it swapped segments has left files that no longer change.
        agreed = faults if is_still and not is_held else agreed
    return _uncertain(verdict, agreed, _open_files(before.partition) if is_held else set())


def _open_files(partition: Partition) -> set[str]:
    """Return the index files that a broker may have open to write to them, or to rebuild them."""
    point = partition.recovery_point or 0
    return {
        str(segment.path(suffix))
        for segment in partition.segments
        if segment.next_base_offset is None or segment.next_base_offset > point
        for suffix in INDEX_SUFFIXES
    }


def _state_of(partition: Partition) -> _Seen | None:
    """Return the current state of a partition; None if its directory no longer exists."""
    found = next((each for each in discover([partition.directory]).partitions if each.complete), None)
    if found is None or found.directory != partition.directory:
        return None
    found = identified_as_before(found, partition)
    return _Seen(found, tuple(signature_of(segment.paths) for segment in found.segments), _epochs(found))


def _epochs(partition: Partition) -> Signature:
    return signature_of([] if partition.epochs is None else [partition.epochs])


def _is_swapping(partition: Partition) -> bool:
    """Return True if compaction is currently replacing segments."""
    return any(leftover.mark == ".swap" for leftover in partition.leftovers)


def _key(finding: Finding) -> _Key:
    return finding.path, finding.kind, finding.verdict, finding.slot, finding.offset, finding.position


def _faults(verdict: PartitionVerdict) -> set[_Key]:
    """Return the faults, comparable between verifications; a bad verdict without a finding is a fault, too."""
    found = {_key(each) for each in verdict.findings if each.verdict not in HARMLESS or each.kind in _CONFIRMED}
    return found | {(file.path, file.verdict) for file in verdict.files if file.verdict not in HARMLESS}


def _uncertain(verdict: PartitionVerdict, agreed: set[_Key], open_files: set[str]) -> PartitionVerdict:
    """Return the verdict in which faults are *changing*, which is harmless, and losses are not said, unless certain.

    Args:
        verdict: the last verdict.
        agreed: faults that no change of the files explains.
        open_files: files of which a broker that runs knows more than they show.
    """

    def is_certain(key: _Key, path: str) -> bool:
        return key in agreed and path not in open_files

    findings = tuple(
        finding
        if finding.verdict in HARMLESS or is_certain(_key(finding), finding.path)
        else dataclasses.replace(finding, verdict="changing")
        for finding in verdict.findings
        if finding.verdict not in HARMLESS or finding.kind not in _CONFIRMED or _key(finding) in agreed
    )
    sure = {finding.path for finding in findings if finding.verdict not in HARMLESS}
    unsure = {finding.path for finding in findings if finding.verdict == "changing"}
    files = tuple(
        file
        if file.verdict in HARMLESS
        or file.path in sure
        or (file.path not in unsure and is_certain((file.path, file.verdict), file.path))
        else dataclasses.replace(
            file,
            verdict="changing",
            why="a broker has it open" if file.path in open_files else "it changed between all reads",
        )
        for file in verdict.files
    )
    return dataclasses.replace(verdict, findings=findings, files=files)


def guarded_segment(
    segment: Segment,
    *,
    release: Dialect | None = None,
    index_interval_bytes: int | None = None,
    records: bool = False,
) -> SegmentVerdict:
    """Call :func:`kidx.verify.verify_segment`; an exception, such as a MemoryError, becomes a finding."""
    try:
        return verify_segment(segment, release=release, index_interval_bytes=index_interval_bytes, records=records)
    except Exception as error:  # noqa: BLE001 -- one file of a million must not stop the others
        return unreadable_segment(segment, f"the verifier failed: {_words(error)}")


def unreadable_segment(segment: Segment, why: str) -> SegmentVerdict:
    """Return the verdict on a segment that could not be verified; ``why`` is the message of its finding."""
    path = segment.log
    at = segment.topic, segment.partition, segment.base_offset
    finding = Finding.about(path, at, Fault.UNREADABLE, "unreadable", why)
    return SegmentVerdict(segment, (FileVerdict(str(path), "unreadable", why=why),), (finding,), readable=False)


def guarded_partition(
    partition: Partition,
    verdicts: Sequence[SegmentVerdict],
    *,
    release: Dialect | None = None,
    index_interval_bytes: int | None = None,
    records: bool = False,
    living: bool = True,
    epochs_not_fetched: str = "",
) -> PartitionVerdict:
    """Call :func:`kidx.verify.verify_partition`; an exception becomes a finding about the directory.

    Args:
        partition: partition to verify.
        verdicts: verdicts on its segments.
        release: release for the verdict *exact*.
        index_interval_bytes: the topic's setting; inferred if None.
        records: True to read every record when a segment is verified again.
        living: True to read files again that a broker may be writing to.
        epochs_not_fetched: see :func:`kidx.verify.verify_partition`; only for files that are not living.
    """
    options: dict[str, Any] = {"release": release, "index_interval_bytes": index_interval_bytes}
    try:
        if living:
            verify_one = partial(guarded_segment, records=records, **options)
            return verify_living(partition, verdicts, verify_one=verify_one, **options)
        return verify_partition(partition, verdicts, epochs_not_fetched=epochs_not_fetched, **options)
    except Exception as error:  # noqa: BLE001 -- as above
        at = partition.topic, partition.partition, None
        why = f"the verifier failed: {_words(error)}"
        finding = Finding.about(partition.directory, at, Fault.UNREADABLE, "unreadable", why)
        return PartitionVerdict(
            partition.directory,
            partition.name,
            tuple(file for verdict in verdicts for file in verdict.files),
            (*(finding for verdict in verdicts for finding in verdict.findings), finding),
            len(verdicts),
            sum(verdict.batches for verdict in verdicts),
            sum(verdict.bytes_read for verdict in verdicts),
        )


def _words(error: Exception) -> str:
    where = traceback.extract_tb(error.__traceback__)[-1]
    return f"{type(error).__name__}: {error} ({Path(where.filename).name}:{where.lineno})"
