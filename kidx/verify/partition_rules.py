"""Rules for all segments of a partition together: gaps, overlaps, checkpoints, files without a segment.

Undamaged partitions that answer badly get remarks: to lookups and retention by time, and to ``read_committed``.
Everything is known from the segments' batches already; a log is only read again to name the record in a remark.
"""

from __future__ import annotations

import contextlib
import time
from itertools import pairwise
from typing import TYPE_CHECKING, Final

from kidx.discovery import FUTURE, HIGH_WATERMARKS, LOG, METADATA_TOPIC, RECOVERY_POINTS, START_OFFSETS, SWAP
from kidx.errors import KidxError
from kidx.files import read_range
from kidx.findings import Fault, Verdict
from kidx.layout import ATTRIBUTE_CONTROL
from kidx.printable import dated, looks_like_seconds, shortened
from kidx.records import iter_batches
from kidx.scan.blocks import LogBlocks
from kidx.verify.verdicts import FileVerdict, SegmentVerdict

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from kidx.discovery import Partition, Segment
    from kidx.discovery.model import Leftover
    from kidx.records import RecordBatch
    from kidx.verify.reporter import Reporter
    from kidx.verify.transactions import OpenTransactions

_ENTRY_BYTES: Final = 34
"""Bytes of the largest entry of an index file."""
_NAMED: Final = 3
"""Maximum number of files that a message names."""


def check_neighbours(verdicts: Sequence[SegmentVerdict], reporter: Reporter[Partition]) -> dict[str, Verdict]:
    """Report gaps and overlaps between segments; return the verdicts on the logs concerned, by path.

    A gap is a lost segment, except in a compacted partition, in which compaction leaves gaps. The batches show whether
    a partition is compacted; if only the last records of a segment were removed, the cleaner's checkpoint shows it,
    which is written after a round: during the round, new segments and the logs that they replace lie in the directory.
    If that checkpoint is empty, KRaft's metadata show it.
    """
    partition = reporter.where
    compacted = any(verdict.compacted for verdict in verdicts) or _was_cleaned(partition) or partition.may_have_gaps
    cleaned_to = partition.cleaned_to or 0
    changed: dict[str, Verdict] = {}
    for one, other in pairwise(verdicts):
        if not (one.readable and other.readable):
            continue
        log, base = other.segment.log, other.segment.base_offset
        ended = one.end_offset
        if ended > base:
            reporter.add(
                log,
                Fault.SEGMENTS_OVERLAP,
                "broken",
                f"the previous segment reaches offset {ended - 1}, beyond the base offset {base} of this segment: "
                f"a consumer never gets the previous segment's records from {base} on",
                base,
                offset=base,
            )
            changed[str(log)] = "broken"
        elif ended < base and (compacted or base <= cleaned_to):
            message = f"offsets {ended} to {base - 1} are in no segment: compaction leaves such gaps"
            reporter.add(log, Fault.LOST_OFFSETS, "sound", message, base, offset=ended)
            changed[str(log)] = "sound"
        elif ended < base:
            _report_gap(one, ended, base, reporter, changed)
    return changed


def _was_cleaned(partition: Partition) -> bool:
    """Return True if a segment replaces another of the same base offset, as compaction does and retention does not."""
    bases = {segment.base_offset for segment in partition.segments if segment.next_base_offset is not None}
    return bool(swaps_of(partition)) or any(
        leftover.path.name.endswith(f"{LOG}.deleted") and _base(leftover) in bases for leftover in partition.leftovers
    )


def _report_gap(
    one: SegmentVerdict, ended: int, base: int, reporter: Reporter[Partition], changed: dict[str, Verdict]
) -> None:
    """Report lost records as a finding about the segment that had them, even if its log is missing."""
    lost = f"offsets {ended} to {base - 1} are in no segment, and their records are lost"
    place = {"offset": ended, "expected": f"offsets {ended} to {base - 1}", "actual": "none of them"}
    is_damaged = any(finding.kind == Fault.TAIL and finding.verdict == "broken" for finding in one.findings)
    if is_damaged or ended == one.segment.base_offset:
        log = one.segment.log
        why = "it cannot be read to its end" if is_damaged else "the segment is empty"
        reporter.add(
            log, Fault.LOST_OFFSETS, "broken", f"{why}: {lost}{_beside(log)}", one.segment.base_offset, **place
        )
        changed[str(log)] = "broken"
        return
    orphans = [int(path.name.partition(".")[0]) for path in reporter.where.orphans]
    first = min((orphan for orphan in orphans if ended <= orphan < base), default=ended)
    log = reporter.where.directory / f"{first:020d}{LOG}"
    cut = "" if first in orphans else f", unless {one.segment.log.name} has lost its end"
    reporter.add(
        log, Fault.LOST_OFFSETS, "missing", f"the segment is missing{cut}: {lost}{_beside(log)}", first, **place
    )
    reporter.files.append(FileVerdict(str(log), "missing"))


def check_lost_logs(partition: Partition, verdicts: Sequence[SegmentVerdict], reporter: Reporter[Partition]) -> None:
    """Report a ``.log`` that is missing although its index files exist.

    When a broker deletes a segment, it renames the log first, and deletes the files after it has renamed all of them.
    A directory with only index files, and without a checkpoint of leader epochs, is a copy that no broker has written.
    """
    if not verdicts and partition.epochs is None:
        return
    covered = [(verdict.segment.base_offset, verdict.last_offset) for verdict in verdicts]
    deleted = {leftover.path.name.partition(".")[0] for leftover in partition.leftovers}
    known = {file.path for file in reporter.files}
    names: dict[int, list[Path]] = {}
    for path in partition.orphans:
        names.setdefault(int(path.name.partition(".")[0]), []).append(path)
    for base, paths in names.items():
        log = partition.directory / f"{base:020d}{LOG}"
        is_gone = base < (partition.start_offset or 0) or log.stem in deleted or str(log) in known
        if is_gone or any(first <= base <= last for first, last in covered) or not any(map(_has_entries, paths)):
            continue
        others = ", ".join(path.suffix for path in paths)
        message = f"there is no such file, though there are its {others}: its records are lost{_beside(log)}"
        reporter.add(log, Fault.LOST_OFFSETS, "missing", message, base, offset=base)
        reporter.files.append(FileVerdict(str(log), "missing"))


def _has_entries(path: Path) -> bool:
    try:
        return any(read_range(path, 0, _ENTRY_BYTES))
    except OSError:
        return False


def _beside(log: Path) -> str:
    """Return the names of files that may be the log under another name, for the end of a sentence."""
    try:
        names = sorted(each.name for each in log.parent.iterdir() if each.name.startswith(f"{log.name}."))
    except OSError:
        return ""
    return f"; see {', '.join(map(shortened, names[:_NAMED]))} next to it" if names else ""


def check_strays(partition: Partition, reporter: Reporter[Partition]) -> None:
    """Report index files without a log, and files that a broker has renamed but not deleted or swapped in yet."""
    for path in partition.orphans:
        base = int(path.name.partition(".")[0])
        verdict: Verdict = "sound"
        reporter.add(
            path,
            Fault.ORPHAN,
            verdict,
            f"there is no {base:020d}.log next to it: a broker deletes it when it starts. If that log had records, "
            "they are lost",
            base,
        )
        reporter.files.append(FileVerdict(str(path), verdict, why="orphaned"))
    unfinished = _unfinished_from(partition)
    for leftover in partition.leftovers:
        is_dropped = leftover.mark == SWAP and unfinished is not None and _base(leftover) >= unfinished
        effect = {
            ".deleted": "a broker deletes it after file.delete.delay.ms, or when it starts",
            ".cleaned": "compaction did not finish; a broker deletes it when it starts",
            SWAP: "compaction did not finish; a broker completes it when it starts, and does not read it before",
        }[".cleaned" if is_dropped else leftover.mark]
        reporter.add(leftover.path, Fault.LEFTOVER, "sound", f"a leftover: {effect}")


def check_unfinished_compaction(
    partition: Partition, verdicts: Sequence[SegmentVerdict], reporter: Reporter[Partition]
) -> None:
    """Report new segments and index files of a compaction whose renames a power failure has lost in part (PF-16).

    A start deletes a new segment as unfinished, although the segment that it replaces is gone; or it replaces an index
    file of a segment that it keeps.
    """
    unfinished = _unfinished_from(partition)
    covered = [(verdict.segment.base_offset, verdict.last_offset) for verdict in verdicts]
    for leftover in partition.leftovers:
        base = _base(leftover)
        if unfinished is None or base < unfinished or not _has_records(leftover):
            continue
        if any(first <= base <= max(first, last) for first, last in covered):
            continue
        log = partition.directory / f"{base:020d}{LOG}"
        said = (
            f"there is no such file, and a broker that starts deletes {leftover.path.name}, which replaces it, as the "
            "rest of an unfinished compaction: a power failure lost some renames. While the broker is stopped, type "
            f"mv {leftover.path.name} {log.name} in this directory, remove the other .cleaned and .swap files of this "
            "segment, and verify again"
        )
        reporter.add(log, Fault.UNFINISHED_COMPACTION, "missing", said, base, offset=base)
        reporter.files.append(FileVerdict(str(log), "missing"))
    _check_swapped_index(partition, reporter)


def _check_swapped_index(partition: Partition, reporter: Reporter[Partition]) -> None:
    """Report an index file that a start swaps in, although it keeps the log that the swapped log would replace."""
    names, unfinished = {leftover.path.name for leftover in partition.leftovers}, _unfinished_from(partition)
    for segment in partition.segments:
        for path in segment.paths:
            swap = f"{path.name}{SWAP}"
            is_deleted = unfinished is not None and segment.base_offset >= unfinished
            if swap not in names or f"{segment.log.name}{SWAP}" in names or is_deleted or not path.exists():
                continue
            said = (
                f"a broker that starts replaces {path.name} with it, but keeps {segment.log.name}, whose replacement "
                "is gone: a power failure lost some renames of a compaction. Lookups then miss records. While the "
                f"broker is stopped, type rm {swap} in this directory"
            )
            file = partition.directory / swap
            reporter.add(file, Fault.UNFINISHED_COMPACTION, "broken", said, segment.base_offset)
            reporter.files.append(FileVerdict(str(file), "broken"))


def _unfinished_from(partition: Partition) -> int | None:
    """Return the offset from which a start deletes new segments, because their compaction did not finish."""
    return min((_base(leftover) for leftover in partition.leftovers if leftover.mark == ".cleaned"), default=None)


def swaps_of(partition: Partition) -> list[Segment]:
    """Return the new segments whose replacement of others the next start completes."""
    unfinished = _unfinished_from(partition)
    return [swap for swap in partition.swaps if unfinished is None or swap.base_offset < unfinished]


def _base(leftover: Leftover) -> int:
    return int(leftover.path.name.partition(".")[0])


def _has_records(leftover: Leftover) -> bool:
    """Return True for a new segment's log that is not empty."""
    name = leftover.path.name
    return name.endswith((f"{LOG}.cleaned", f"{LOG}{SWAP}")) and _has_entries(leftover.path)


def check_start(partition: Partition, verdicts: Sequence[SegmentVerdict], reporter: Reporter[Partition]) -> None:
    """Report checkpointed offsets that limit the visible records, or show that records were lost."""
    read = [verdict for verdict in verdicts if verdict.readable]
    if not read:
        return
    first, last = read[0].segment, read[-1]
    end = last.end_offset
    start = partition.start_offset
    path = partition.directory.parent / START_OFFSETS
    if partition.topic == METADATA_TOPIC:
        if start is not None and start > first.base_offset:
            message = f"the log starts at {start}, with its oldest snapshot: a broker does not read earlier records"
            reporter.add(first.log, Fault.LOG_START, "sound", message, first.base_offset, offset=start)
    elif start is not None and start > end:
        reporter.add(
            path,
            Fault.LOG_START_PAST_END,
            "broken",
            f"the log start of {partition.name} is {start}, past the end of its log, {end}: "
            "a broker deletes the whole log when it starts",
            offset=start,
            expected=f"at most {end}",
            actual=str(start),
        )
        reporter.files.append(FileVerdict(str(path), "broken"))
    elif start is not None and start > first.base_offset:
        reporter.add(
            path,
            Fault.LOG_START,
            "sound",
            f"consumers cannot read records of {partition.name} below offset {start}: the log starts there, after the "
            "base offset of its first segment",
            offset=start,
        )
    for name, offset in partition.earlier:
        message = (
            f"the offset {offset} of {partition.name} is of an earlier topic of this name: {name} was written before "
            "the topic was created, and says nothing about its records"
        )
        reporter.add(partition.directory.parent / name, Fault.EARLIER_TOPIC, "sound", message, offset=offset)
    if partition.state != FUTURE:  # a copy that is being moved may end anywhere
        _check_end(partition, end, reporter, is_clean=first.clean)


def _check_end(partition: Partition, end: int, reporter: Reporter[Partition], *, is_clean: bool) -> None:
    """Report checkpointed offsets that are past the end of a log."""
    point, committed = partition.recovery_point, partition.high_watermark
    if (doubted := _doubted(partition, end, is_clean=is_clean)) is not None:
        name, offset, message = doubted
        reporter.add(partition.directory.parent / name, Fault.END_TRUNCATED, "sound", message, offset=offset)
        return
    if point is not None and point > end:
        is_doubtful = committed is not None and committed <= end and not partition.is_replicated
        doubt = f" (or the recovery point is wrong: the high watermark is {committed})" if is_doubtful else ""
        reporter.add(
            partition.directory.parent / RECOVERY_POINTS,
            Fault.END_BELOW_RECOVERY_POINT,
            "broken" if is_clean else "sound",
            f"{partition.name} is flushed up to {point}, but its log ends at {end}: records were lost{doubt}, and if "
            "this broker becomes the leader, the other replicas truncate theirs",
            offset=point,
            expected=f"at most {end}",
            actual=str(point),
        )
        return
    if committed is not None and committed > end:
        reporter.add(
            partition.directory.parent / HIGH_WATERMARKS,
            Fault.END_BELOW_HIGH_WATERMARK,
            "sound",
            f"{partition.name} has the high watermark {committed}, but its log ends at {end}: records were lost, or it "
            "is an older copy, and if this broker becomes the leader, the other replicas truncate theirs",
            offset=committed,
            expected=f"at most {end}",
            actual=str(committed),
        )


def _doubted(partition: Partition, end: int, *, is_clean: bool) -> tuple[str, int, str] | None:
    """Return a checkpoint whose offset is past the end of a log although another checkpoint contradicts it.

    Returns:
        The file, the offset, and what may have happened; None if the checkpoints agree that records were lost.
    """
    point, committed = partition.recovery_point, partition.high_watermark
    if point is None or committed is None:
        return None
    if committed <= end < point and is_clean and not partition.is_replicated:
        reason = (
            f"{partition.name} is flushed up to {point} according to its recovery point, but its log ends at {end}, "
            f"at or after the high watermark {committed}, which the same stop of the broker wrote: the recovery point "
            "is wrong; or, if other brokers have the partition, records were lost that were not committed"
        )
        return RECOVERY_POINTS, point, reason
    if committed <= end < point and not is_clean and partition.is_replicated:
        reason = (
            f"{partition.name} was flushed up to {point}, and its log ends at {end}, at or after the high watermark "
            f"{committed}: a leader had later records removed, and the broker was killed before it wrote that; or "
            "records were lost that were not committed when the high watermark was written"
        )
        return RECOVERY_POINTS, point, reason
    if is_clean and point == end < committed:
        reason = (
            f"{partition.name} has the high watermark {committed}, but its log ends at {end}, where it ended according "
            "to its recovery point when the broker was stopped: the high watermark is wrong; or both are of an older "
            "copy"
        )
        return HIGH_WATERMARKS, committed, reason
    return None


_DAY_MS: Final = 24 * 3_600_000
_LONGEST_TRANSACTION_MS: Final = 15 * 60_000
"""``transaction.max.timeout.ms`` by default: the coordinator ends an older transaction."""


def check_answers(
    verdicts: Sequence[SegmentVerdict], transactions: OpenTransactions, reporter: Reporter[Partition]
) -> None:
    """Report, as remarks, what makes lookups, retention by time or consumers useless though no file is wrong.

    Args:
        verdicts: verdicts on the segments that a broker loads, in order.
        transactions: transactions that are open at the end of the last one.
        reporter: receives the findings.
    """
    _check_lookups(verdicts, reporter)
    _check_retention(verdicts, reporter)
    _check_transactions(verdicts, transactions, reporter)


def _check_transactions(
    verdicts: Sequence[SegmentVerdict], transactions: OpenTransactions, reporter: Reporter[Partition]
) -> None:
    """Report the first transaction that is open for longer than its coordinator allows, by the records after it."""
    open_ = sorted(
        (first, producer) for producer, first in transactions.first.items() if first >= transactions.hidden_to
    )
    for first, producer in open_[:1]:
        segment = next((one.segment for one in reversed(verdicts) if one.segment.base_offset <= first), None)
        batch = segment and _batch(segment.log, "base_offset", first)
        if segment and batch and _latest(verdicts[-1].segment.log) - batch.max_timestamp > _LONGEST_TRANSACTION_MS:
            reporter.add(
                segment.log,
                Fault.OPEN_TRANSACTION,
                "sound",
                f"a transaction of producer {producer} is open from offset {first} on, since "
                f"{dated(batch.max_timestamp)}: consumers of committed records get nothing from there on until it "
                "ends; kafka-transactions.sh find-hanging finds a transaction that nothing ends, and abort ends it",
                segment.base_offset,
                offset=first,
            )


def _latest(log: Path) -> int:
    """Return the largest timestamp of a log's records; markers are not meant, which have a broker's time."""
    latest = -1
    with contextlib.suppress(OSError), LogBlocks(log, checked=False) as blocks:
        for rows in blocks:
            stamps = rows["max_timestamp"][rows["attributes"] & ATTRIBUTE_CONTROL == 0]
            latest = max(latest, int(stamps.max(initial=-1)))
    return latest


def _batch(log: Path, column: str, value: int) -> RecordBatch | None:
    """Return the first batch of a log whose header has a value; None if there is no such batch."""
    with contextlib.suppress(KidxError, OSError), LogBlocks(log, checked=False) as blocks:
        for rows in blocks:
            for row in rows[rows[column] == value][:1]:
                return next(iter_batches(read_range(log, int(row["position"]), int(row["size"]))), None)
    return None


def _record_at(log: Path, timestamp: int) -> str:
    """Return the offset of the first record with a log's largest timestamp, as text; empty if it cannot be read."""
    with contextlib.suppress(KidxError, MemoryError, OSError):
        batch = _batch(log, "max_timestamp", timestamp)
        records = batch.offset_timestamps() if batch is not None else ()
        return next((f" at offset {each.offset}" for each in records if each.timestamp == timestamp), "")
    return ""


def _check_lookups(verdicts: Sequence[SegmentVerdict], reporter: Reporter[Partition]) -> None:
    """Report the first segment without a timestamp at which searches for the times of later segments end."""
    largest = -1
    for number, one in enumerate(verdicts[:-1]):
        if one.max_timestamp >= 0 or not one.signature or one.signature[0] is None:
            largest = max(largest, one.max_timestamp)
            continue
        modified = one.signature[0][1] // 1_000_000
        if modified > largest and any(largest < later.max_timestamp for later in verdicts[number + 1 :]):
            what = "is empty" if not one.batches else "has no timestamp"
            after = f" after {dated(largest)}" if largest >= 0 else ""
            reporter.add(
                one.segment.log,
                Fault.LOOKUPS,
                "sound",
                f"the segment {what}, and counts as old as its file, {dated(modified)}: a search for any time{after} "
                "up to then ends in it and finds nothing, though later segments have records",
                one.segment.base_offset,
            )
            return


def _check_retention(verdicts: Sequence[SegmentVerdict], reporter: Reporter[Partition]) -> None:
    stamped = [one for one in verdicts if one.max_timestamp >= 0]
    limit = time.time() * 1000 + _DAY_MS
    late = next((one for one in stamped if one.max_timestamp > limit), None)
    if late is not None:
        reporter.add(
            late.segment.log,
            Fault.RETENTION,
            "sound",
            f"its largest timestamp{_record_at(late.segment.log, late.max_timestamp)} is in the future, "
            f"{dated(late.max_timestamp)}: until then, retention by time "
            "deletes neither this segment nor a later one",
            late.segment.base_offset,
        )
    if stamped and all(looks_like_seconds(one.max_timestamp) for one in stamped):
        reporter.add(
            stamped[0].segment.log,
            Fault.RETENTION,
            "sound",
            f"the timestamps are probably in seconds, such as {dated(stamped[0].max_timestamp)}: Kafka's are in "
            "milliseconds, so that retention by time takes the records for records of 1970",
            stamped[0].segment.base_offset,
        )
