"""Comparison of a partition's ``leader-epoch-checkpoint`` with the epochs of its batches (LG-4)."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

from kidx.discovery import EPOCHS, FUTURE, LOG, METADATA_TOPIC
from kidx.findings import Fault
from kidx.log.epochs import EpochEntry, read_epochs
from kidx.verify.verdicts import FileVerdict, SegmentVerdict

if TYPE_CHECKING:
    from kidx.discovery import Partition
    from kidx.findings import Verdict
    from kidx.verify.reporter import Reporter


def epochs_of(verdicts: Sequence[SegmentVerdict]) -> list[EpochEntry]:
    """Return each epoch with the base offset of its first batch, in the order of the log."""
    first: dict[int, int] = {}
    for verdict in verdicts:
        for epoch, offset in verdict.epochs:
            first.setdefault(epoch, offset)
    return [EpochEntry(*each) for each in first.items()]


def check_epochs(
    partition: Partition, verdicts: Sequence[SegmentVerdict], reporter: Reporter[Partition], *, not_fetched: str = ""
) -> dict[str, Verdict]:
    """Report differences between checkpoint and batches; return the verdicts on logs with corrupt epochs, by path.

    A follower asks the leader for the end offset of an epoch. If the epoch is missing, or begins at another offset, the
    follower truncates its log at the wrong offset. The first epoch may begin earlier than the log.

    Args:
        not_fetched: why the checkpoint is not on this machine; empty if it is.
    """
    corrupt = _check_falls(verdicts, reporter)
    if not_fetched and partition.epochs is not None:
        _report_unreadable(partition.epochs, "cannot be fetched", not_fetched, reporter)
    else:
        _check_checkpoint(partition, verdicts, reporter, is_comparable=not corrupt)
    return corrupt


def _check_checkpoint(
    partition: Partition, verdicts: Sequence[SegmentVerdict], reporter: Reporter[Partition], *, is_comparable: bool
) -> None:
    path = partition.epochs
    logged = epochs_of(verdicts)
    if path is None:
        if logged and partition.complete:
            missing = partition.directory / EPOCHS
            reporter.add(missing, Fault.EPOCHS, "missing", "it is missing, although batches have leader epochs")
            reporter.files.append(FileVerdict(str(missing), "missing"))
        return
    try:
        entries = read_epochs(path)
    except OSError as error:
        _report_unreadable(path, "cannot be read", error.strerror or str(error), reporter)
        return
    if not is_comparable:
        why = "the checkpoint was not compared with the epochs of the log, which are corrupt"
        reporter.files.append(FileVerdict(str(path), "sound", why=why, entries=len(entries)))
        return
    _check_beginning(path, entries, verdicts, reporter)
    _check_order(path, entries, reporter)
    _check_later(path, entries, verdicts, reporter)
    hidden = _hidden(entries, logged)
    _compare(path, entries, logged[hidden:], verdicts, reporter)
    if hidden:
        _report_hidden(path, entries[0], logged[0], reporter)
    broken = reporter.verdict(path) == "broken"
    reporter.files.append(FileVerdict(str(path), "broken" if broken else "exact", entries=len(entries)))


def _report_unreadable(path: Path, what: str, reason: str, reporter: Reporter[Partition]) -> None:
    reporter.add(path, Fault.UNREADABLE, "unreadable", f"{what}: {reason}")
    reporter.files.append(FileVerdict(str(path), "unreadable", why=reason))


def _check_falls(verdicts: Sequence[SegmentVerdict], reporter: Reporter[Partition]) -> dict[str, Verdict]:
    """Report batches whose leader epoch is higher than a later one's; return the verdicts on their logs, by path.

    A checksum does not cover the epoch of a batch, so that a recovery would write a wrong epoch into the checkpoint.
    """
    changes = [(verdict.segment, EpochEntry(*each)) for verdict in verdicts for each in verdict.epochs]
    corrupt: dict[str, Verdict] = {}
    for (segment, one), (_, other) in pairwise(changes):
        if other.epoch < one.epoch and other.start_offset > one.start_offset:
            message = (
                f"the batch at offset {one.start_offset} has leader epoch {one.epoch}, and the one at "
                f"{other.start_offset} has {other.epoch}: an epoch never falls, so that one of them is corrupt, which "
                "no checksum shows"
            )
            reporter.add(segment.log, Fault.EPOCHS, "broken", message, segment.base_offset, offset=one.start_offset)
            corrupt[str(segment.log)] = "broken"
    return corrupt


def _check_beginning(
    path: Path, entries: Sequence[EpochEntry], verdicts: Sequence[SegmentVerdict], reporter: Reporter[Partition]
) -> None:
    """Report a log that begins after its first epoch: a broker that deletes segments updates the epoch, too.

    Partitions with a log start in the checkpoint, KRaft's own log and copies being moved are not checked. With remote
    storage, a broker writes that checkpoint within a minute of deleting the first local segment.
    """
    partition = reporter.where
    first = min((verdict.segment.base_offset for verdict in verdicts), default=0)
    is_checked = partition.topic != METADATA_TOPIC and partition.state != FUTURE
    if partition.start_offset is None and is_checked and entries:
        epoch, start = entries[0]
        if start < first:
            message = (
                f"epoch {epoch} of {partition.name} begins at offset {start}, but its log at {first}: the segments"
            )
            deleted = [
                int(each.path.name.partition(".")[0])
                for each in partition.leftovers
                if each.mark == ".deleted" and each.path.name.endswith(f"{LOG}{each.mark}")
            ]
            if min(deleted, default=first) <= start:
                effect = "before were deleted by retention, and the broker was killed before it wrote that"
                reporter.add(
                    path,
                    Fault.EXPLAINED_BEGINNING,
                    "sound",
                    f"{message} {effect}; see their .deleted files",
                    offset=start,
                )
            elif partition.is_tiered:
                effect = "before are in remote storage: KRaft's metadata say that the topic has it"
                reporter.add(path, Fault.EXPLAINED_BEGINNING, "sound", f"{message} {effect}", offset=start)
            elif partition.may_have_moved:
                effect = (
                    "before are missing. A move from another log directory may leave this file unchanged; if it was "
                    "not moved, their records are lost here"
                )
                reporter.add(path, Fault.EXPLAINED_BEGINNING, "sound", f"{message} {effect}", offset=start)
            else:
                effect = "before are missing; unless remote storage has them, their records are lost here"
                reporter.add(path, Fault.LOST_BEGINNING, "sound", f"{message} {effect}", offset=start)


def _check_order(path: Path, entries: Sequence[EpochEntry], reporter: Reporter[Partition]) -> None:
    for slot, (one, other) in enumerate(pairwise(entries), 1):
        if other.epoch <= one.epoch or other.start_offset <= one.start_offset:
            reporter.add(
                path,
                Fault.EPOCHS,
                "broken",
                f"epoch {other.epoch} from {other.start_offset} follows epoch {one.epoch} from {one.start_offset}",
                slot=slot,
                offset=other.start_offset,
            )


def _check_later(
    path: Path, entries: Sequence[EpochEntry], verdicts: Sequence[SegmentVerdict], reporter: Reporter[Partition]
) -> None:
    """Report the first entry after whose offset a batch of an earlier epoch follows.

    Each segment has the epoch of its first batch, and of each batch with a different epoch.
    """
    changes = [EpochEntry(*each) for verdict in verdicts for each in verdict.epochs]
    end = max((verdict.last_offset for verdict in verdicts), default=-1)
    if changes:
        changes.append(EpochEntry(changes[-1].epoch, end))
    for entry in entries:
        later = (each for each in changes if each.start_offset >= entry.start_offset)
        wrong = next((each for each in later if each.epoch < entry.epoch), None)
        if wrong is not None:
            message = (
                f"leader epoch {entry.epoch} begins at offset {entry.start_offset}, but offset {wrong.start_offset}"
            )
            effect = "the checkpoint belongs to another partition, or was changed, and followers truncate wrongly"
            reporter.add(
                path, Fault.EPOCHS, "broken", f"{message} has epoch {wrong.epoch}: {effect}", offset=entry.start_offset
            )
            return


def _hidden(entries: Sequence[EpochEntry], logged: Sequence[EpochEntry]) -> int:
    """Return the number of epochs in the log that begin before the checkpoint.

    After deleted records, or a snapshot of KRaft's metadata, the log starts later. A broker removes the epochs before
    the new log start from the checkpoint immediately. It writes the log start a minute later, or never if it is killed.
    """
    if not entries or not logged:
        return 0
    start = entries[0]
    ends = [*(each.start_offset for each in logged[1:]), None]
    hidden = 0
    for each, end in zip(logged, ends, strict=True):
        is_first = each.epoch == start.epoch and each.start_offset < start.start_offset
        is_before = each.epoch < start.epoch and end is not None and end <= start.start_offset
        if not (is_first or is_before):
            break
        hidden += 1
    return hidden


def _report_hidden(path: Path, start: EpochEntry, first: EpochEntry, reporter: Reporter[Partition]) -> None:
    reporter.add(
        path,
        Fault.EPOCHS,
        "sound",
        f"the checkpoint begins at offset {start.start_offset} and the batches at {first.start_offset}: the earlier "
        "records were deleted, or a snapshot has replaced them; a broker that is killed does not write the log start",
        offset=start.start_offset,
    )


def _compare(
    path: Path,
    entries: Sequence[EpochEntry],
    logged: Sequence[EpochEntry],
    verdicts: Sequence[SegmentVerdict],
    reporter: Reporter[Partition],
) -> None:
    starts = {entry.epoch: entry.start_offset for entry in entries}
    log_start = min((verdict.segment.base_offset for verdict in verdicts), default=0)
    compacted = any(verdict.compacted for verdict in verdicts)
    for number, (epoch, offset) in enumerate(logged):
        start = starts.get(epoch)
        if start is None:
            reporter.add(
                path,
                Fault.EPOCHS,
                "broken",
                f"leader epoch {epoch}, from offset {offset} on, is not in the checkpoint: a follower that asks for "
                "its end gets another epoch's end, and truncates wrongly",
                offset=offset,
                expected=f"epoch {epoch} from {offset}",
            )
        elif start > offset and start > log_start:
            reporter.add(
                path,
                Fault.EPOCHS,
                "broken",
                f"leader epoch {epoch} begins at offset {start}, but batches from {offset} on have it",
                offset=offset,
                expected=str(offset),
                actual=str(start),
            )
        elif start < offset and number and not compacted:
            reporter.add(
                path,
                Fault.EPOCHS,
                "sound",
                f"leader epoch {epoch} begins at offset {start}, and its first batch at {offset}",
                offset=offset,
                expected=str(offset),
                actual=str(start),
            )
