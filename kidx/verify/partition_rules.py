"""What only all segments of a partition together tell: gaps, overlaps, checkpoints, files without a segment."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kidx.findings import Finding, Verdict
from kidx.log.epochs import EpochEntry, read_epochs
from kidx.verify.verdicts import FileVerdict, SegmentVerdict

if TYPE_CHECKING:
    from kidx.discovery import Partition


class PartitionReporter:
    """Collects the findings about a partition's files other than those of its segments."""

    def __init__(self, partition: Partition, release: str | None) -> None:
        self.partition, self.release = partition, release
        self.findings: list[Finding] = []
        self.files: list[FileVerdict] = []

    def add(
        self, path: Path, clause: str, verdict: Verdict, message: str, base: int | None = None, **place: Any
    ) -> None:
        """Notes a finding; ``base``: of the segment."""
        where = self.partition
        self.findings.append(
            Finding(
                str(path),
                where.topic,
                where.partition,
                base,
                path.name,
                clause,
                verdict,
                message=message,
                release=self.release,
                **place,
            )
        )


def check_neighbours(verdicts: Sequence[SegmentVerdict], reporter: PartitionReporter) -> dict[str, Verdict]:
    """Offsets between segments; returns the verdicts on the logs concerned, by path.

    A gap is a lost segment, unless compaction is at work in this partition: then it is what that leaves.
    """
    compacted = any(verdict.compacted for verdict in verdicts)
    changed: dict[str, Verdict] = {}
    for one, other in pairwise(verdicts):
        if not (one.readable and other.readable):
            continue
        log, base = other.segment.log, other.segment.base_offset
        ended = one.last_offset + 1 if one.batches else one.segment.base_offset
        if ended > base:
            reporter.add(
                log,
                "SEG-12",
                "broken",
                f"the segment before it reaches offset {ended - 1}, beyond this one's base offset {base}: "
                f"a consumer never gets those from {base} on that are there",
                base,
                offset=base,
            )
            changed[str(log)] = "broken"
        elif ended < base:
            verdict: Verdict = "sound" if compacted else "broken"
            effect = "compaction leaves such gaps" if compacted else "a segment is missing, and its records are lost"
            reporter.add(
                log,
                "LG-5",
                verdict,
                f"offsets {ended} to {base - 1} are in no segment: {effect}",
                base,
                offset=ended,
                expected=f"a segment that begins with offset {ended}",
                actual=f"one that begins with {base}",
            )
            changed[str(log)] = verdict
    return changed


def check_strays(partition: Partition, reporter: PartitionReporter) -> None:
    """Index files without a log, and files that a broker has renamed but not deleted or swapped in yet."""
    for path in partition.orphans:
        base = int(path.name.partition(".")[0])
        verdict: Verdict = "sound"
        reporter.add(
            path,
            "SEG-35",
            verdict,
            f"there is no {base:020d}.log beside it: a broker deletes it when it starts, and if there were records, "
            "they are lost",
            base,
        )
        reporter.files.append(FileVerdict(str(path), verdict, why="orphaned"))
    for leftover in partition.leftovers:
        effect = {
            ".deleted": "a broker deletes it after file.delete.delay.ms, or when it starts",
            ".cleaned": "compaction did not finish; a broker deletes it when it starts",
            ".swap": "compaction did not finish; a broker completes it when it starts, and reads neither before",
        }[leftover.mark]
        reporter.add(leftover.path, "SEG-23", "sound", f"a leftover: {effect}")


def check_start(partition: Partition, verdicts: Sequence[SegmentVerdict], reporter: PartitionReporter) -> None:
    """The log start and recovery point of the log directory's checkpoints, where they limit what is visible."""
    read = [verdict for verdict in verdicts if verdict.readable]
    if not read:
        return
    first, last = read[0].segment, read[-1]
    end = last.last_offset + 1 if last.batches else last.segment.base_offset
    start = partition.start_offset
    path = partition.directory.parent / "log-start-offset-checkpoint"
    if start is not None and start > end:
        reporter.add(
            path,
            "LG-17",
            "broken",
            f"the log start of {partition.name} is {start}, behind the end of its log, {end}: "
            "a broker deletes the whole log when it starts",
            offset=start,
            expected=f"at most {end}",
            actual=str(start),
        )
        reporter.files.append(FileVerdict(str(path), "broken"))
    elif start is not None and start > first.base_offset:
        reporter.add(
            path,
            "LG-12",
            "sound",
            f"records of {partition.name} below offset {start} are hidden: the log start is behind its first segment's",
            offset=start,
        )
    point = partition.recovery_point
    if point is not None and point > end:
        reporter.add(
            partition.directory.parent / "recovery-point-offset-checkpoint",
            "LG-16",
            "sound" if not first.clean else "broken",
            f"{partition.name} is flushed up to {point}, but its log ends at {end}: records were lost",
            offset=point,
            expected=f"at most {end}",
            actual=str(point),
        )


def check_epochs(partition: Partition, verdicts: Sequence[SegmentVerdict], reporter: PartitionReporter) -> None:
    """The leader-epoch checkpoint against the epochs of the batches.

    An epoch that is missing, or begins at another offset, makes brokers and consumers that ask where it ended truncate
    at the wrong offset. The first one may begin earlier than the log does.
    """
    path = partition.epochs
    logged = [pair for verdict in verdicts for pair in verdict.epochs]
    if path is None:
        if logged and partition.complete:
            missing = partition.directory / "leader-epoch-checkpoint"
            reporter.add(missing, "LG-4", "missing", "there is none, though batches have leader epochs")
            reporter.files.append(FileVerdict(str(missing), "missing"))
        return
    try:
        entries = read_epochs(path)
    except OSError as error:
        reason = error.strerror or str(error)
        reporter.add(path, "LG-4", "unreadable", f"cannot be read: {reason}")
        reporter.files.append(FileVerdict(str(path), "unreadable", why=reason))
        return
    before = len(reporter.findings)
    _compare_epochs(path, entries, logged, verdicts, reporter)
    broken = any(finding.verdict == "broken" for finding in reporter.findings[before:])
    reporter.files.append(FileVerdict(str(path), "broken" if broken else "exact", entries=len(entries)))


def _compare_epochs(
    path: Path,
    entries: Sequence[EpochEntry],
    logged: Sequence[tuple[int, int]],
    verdicts: Sequence[SegmentVerdict],
    reporter: PartitionReporter,
) -> None:
    for slot, (one, other) in enumerate(pairwise(entries), 1):
        if other.epoch <= one.epoch or other.start_offset <= one.start_offset:
            reporter.add(
                path,
                "LG-4",
                "broken",
                f"epoch {other.epoch} from {other.start_offset} follows epoch {one.epoch} from {one.start_offset}",
                slot=slot,
                offset=other.start_offset,
            )
    starts = {entry.epoch: entry.start_offset for entry in entries}
    log_start = min((verdict.segment.base_offset for verdict in verdicts), default=0)
    compacted = any(verdict.compacted for verdict in verdicts)
    first: dict[int, int] = {}
    for epoch, offset in logged:
        first.setdefault(epoch, offset)
    for number, (epoch, offset) in enumerate(first.items()):
        start = starts.get(epoch)
        if start is None:
            reporter.add(
                path,
                "LG-4",
                "broken",
                f"leader epoch {epoch}, from offset {offset} on, is not in the checkpoint: a follower that asks where "
                "it ended gets another epoch's end, and truncates wrongly",
                offset=offset,
                expected=f"epoch {epoch} from {offset}",
            )
        elif start > offset and start > log_start and not (number == 0 and start == reporter.partition.start_offset):
            reporter.add(
                path,
                "LG-4",
                "broken",
                f"leader epoch {epoch} begins at offset {start}, but batches from {offset} on have it",
                offset=offset,
                expected=str(offset),
                actual=str(start),
            )
        elif start < offset and number and not compacted:
            reporter.add(
                path,
                "LG-4",
                "sound",
                f"leader epoch {epoch} begins at offset {start}, and its first batch at {offset}",
                offset=offset,
                expected=str(offset),
                actual=str(start),
            )
