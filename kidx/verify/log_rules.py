"""Rules for a ``.log``: checksums, offsets, gaps, the end of the file, and the records in its batches.

A checksum covers the bytes as they were written, so a wrong batch from a faulty program has a right checksum. A broker
validates the records that producers send, but not the records that it copies, recovers or serves. :func:`check_records`
reads and decompresses all records, and therefore runs only on request.
"""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Final

import numpy as np

from kidx.errors import KidxError
from kidx.findings import Fault
from kidx.printable import counted
from kidx.records import RecordBatch, file_batches
from kidx.records.errors import LargeBatchError
from kidx.scan.records import decode_batch

if TYPE_CHECKING:
    from pathlib import Path

    from kidx.discovery import Segment
    from kidx.findings import Verdict
    from kidx.scan.blocks import LogTail
    from kidx.verify.facts import LogFacts
    from kidx.verify.reporter import Reporter


def check_batches(facts: LogFacts, reporter: Reporter[Segment]) -> None:
    """Report corrupt batches and offsets out of order; gaps are a remark, because compaction leaves them."""
    log = reporter.where.log
    for kind, troubles in facts.troubles.items():
        fault, words = _KINDS[kind]
        verdict: Verdict = "sound" if fault == Fault.GAP else "broken"
        left = facts.counts[kind] - len(troubles)
        for trouble in troubles:
            is_foreign = kind == "overlap" and trouble.base_offset < facts.base_offset
            numbers = {"next": trouble.last_offset + 1, "expected": trouble.before + 1, "segment": facts.base_offset}
            reporter.add(
                log,
                fault,
                verdict,
                (_FOREIGN if is_foreign else words).format(**trouble._asdict(), **numbers),
                position=trouble.position,
                offset=trouble.base_offset,
            )
        if left:
            reporter.add(log, fault, verdict, f"{left} more batches like these")


_FOREIGN: Final = (
    "the batch at {position} begins with offset {base_offset}, below the segment's base offset {segment}: the file is "
    "of another segment or partition, or was renamed"
)
# For each kind of trouble: the fault, and the message about a batch.
_KINDS: Final = {
    "crc": (
        Fault.CHECKSUM,
        (
            "the batch of {size} bytes at {position} fails its checksum: a consumer gets an error at offset "
            "{base_offset}, and cannot read offsets {base_offset} to {last_offset}"
        ),
    ),
    "overlap": (
        Fault.BATCH_ORDER,
        (
            "the batch at {position} begins with offset {base_offset}, though {before} is before it: lookups by "
            "offset find one of the two, and a recovery of this segment keeps both, or empties it and deletes all "
            "later ones where an index entry falls on it"
        ),
    ),
    "reversed": (
        Fault.BATCH_OFFSETS,
        "the batch at {position} ends with offset {last_offset}, before it begins, with {base_offset}",
    ),
    "magic": (
        Fault.FORMAT,
        (
            "the batch at {position} has format {magic}, which no release knows: a consumer at offset {base_offset} "
            "gets an error"
        ),
    ),
    "count": (
        Fault.BATCH_OFFSETS,
        (
            "the batch at {position} counts more records than there are offsets from {base_offset} to {last_offset}: a "
            "consumer gets an error at offset {base_offset}, or an offset twice"
        ),
    ),
    "range": (
        Fault.OFFSET_RANGE,
        "offset {last_offset} is more than 2147483647 above the base offset: no index entry can hold it",
    ),
    "marker": (
        Fault.MARKER,
        (
            "the control batch at {position} is no transaction marker: a start that reads it to rebuild the state of "
            "producers, or a consumer of committed records, fails"
        ),
    ),
    "outside": (
        Fault.OUTSIDE_TRANSACTION,
        (
            "the batch at {position} belongs to no transaction, though its producer's transaction is open: a start "
            "that reads it to rebuild the state of producers fails"
        ),
    ),
    "gap": (
        Fault.GAP,
        "offsets {expected} to {base_offset} (exclusive) are not in the log: compaction leaves such gaps",
    ),
}


def check_tail(facts: LogFacts, tail: LogTail, reporter: Reporter[Segment], *, may_grow: bool) -> None:
    """Report bytes after the last whole batch.

    Args:
        facts: facts about the log.
        tail: end of the log.
        reporter: receives the findings.
        may_grow: True if a broker may be writing to the segment, or was killed. Then incomplete batches are no fault.
    """
    left, log = tail.file_size - tail.valid_bytes, reporter.where.log
    if tail.shrank_while_reading:
        reporter.add(
            log,
            Fault.SHRANK,
            "sound",
            f"the file became shorter while it was read, from {counted(tail.file_size, 'byte')}",
            position=tail.file_size,
        )
    if not left:
        return
    next_offset = facts.last_offset + 1 if facts.batches else facts.base_offset
    place = {"position": tail.valid_bytes, "offset": next_offset}
    if tail.kind == "corrupt":
        message = (
            f"the length of the batch at {tail.valid_bytes} is impossible, so {counted(left, 'byte')} from there on "
            "cannot be read"
        )
    elif tail.kind == "zeros":
        message = f"the file ends with {counted(left, 'byte')} of zeros"
    else:
        message = f"the file ends with {counted(left, 'byte')}, no whole batch"
    hidden = facts.hidden
    if hidden:
        first, last = hidden[0], hidden[-1]
        message += (
            f", though {counted(len(hidden), 'whole batch')} with offsets {first.base_offset} to {last.last_offset} "
            f"{'follows' if len(hidden) == 1 else 'follow'}, from byte {first.position} on"
        )
    if may_grow and tail.kind != "corrupt" and not hidden:
        reporter.add(
            log, Fault.TAIL, "sound", f"{message}: reserved space, or a batch that is not written completely", **place
        )
    elif may_grow:
        reporter.add(log, Fault.TAIL, "broken", f"{message}: a recovery would remove them", **place)
    else:
        effect = "a consumer gets an error" if tail.kind == "corrupt" else "the log ends too early"
        reporter.add(
            log,
            Fault.TAIL,
            "broken",
            f"{message}, in a segment that is finished: {effect} at offset {next_offset}",
            **place,
        )


_Longs = np.ndarray[tuple[int], np.dtype[np.int64]]
_DECODED_FAST: Final = 2
"""The record format whose batches :func:`decode_batch` decodes as a whole."""


def check_records(log: Path, reporter: Reporter[Segment]) -> None:
    """Report batches with a right checksum whose records cannot be read, or have other offsets or times.

    Args:
        log: path of a log whose batches :func:`check_batches` has checked.
        reporter: receives the findings.

    Raises:
        OSError: the log cannot be read.
    """
    with contextlib.suppress(KidxError):
        for batch in file_batches(log):
            if _is_whole(batch) and (wrong := _wrong(batch)):
                kind, said = wrong
                reporter.add(
                    log,
                    kind,
                    "broken",
                    f"the batch of {batch.size_in_bytes} bytes at {batch.position} has a right checksum, but {said}",
                    position=batch.position,
                    offset=batch.base_offset,
                )


def _is_whole(batch: RecordBatch) -> bool:
    try:
        batch.ensure_valid()
    except KidxError:
        return False
    return True


def _wrong(batch: RecordBatch) -> tuple[Fault, str] | None:
    """Return the kind of the fault in the records of a batch, and the fault in a sentence; None if they are right."""
    effect = f"a consumer at offset {batch.base_offset} gets an error, or other records"
    try:
        offsets, times = _offsets_and_times(batch)
    except (KidxError, MemoryError) as error:
        return Fault.RECORDS, f"its records cannot be read: {error}: {effect}"
    if not len(offsets):
        return None
    first, last = int(offsets[0]), int(offsets[-1])
    if np.any(np.diff(offsets) <= 0):
        return Fault.RECORDS, f"the offsets of its records do not increase, from {first} to {last}: {effect}"
    if first < batch.base_offset or last > batch.last_offset:
        header = f"{batch.base_offset} to {batch.last_offset}"
        return Fault.RECORDS, f"its records have offsets {first} to {last}, not {header}: {effect}"
    largest, stated = int(times.max()), batch.max_timestamp
    if stated == largest:
        return None
    effect = (
        f"a search for {stated + 1} to {largest} can miss its records, and retention by time takes them for older"
        if stated < largest
        else f"a search for {largest + 1} to {stated} can end here without a result, and retention keeps it longer"
    )
    return (
        Fault.BATCH_TIMESTAMP,
        f"its header states the largest timestamp {stated}, and its records have {largest}: {effect}",
    )


def _offsets_and_times(batch: RecordBatch) -> tuple[_Longs, _Longs]:
    if batch.magic == _DECODED_FAST:
        with contextlib.suppress(LargeBatchError):
            rows = decode_batch(batch).rows
            return np.asarray(rows["offset"], np.int64), np.asarray(rows["timestamp"], np.int64)
    found = np.fromiter(((record.offset, record.timestamp) for record in batch), np.dtype("i8,i8"))
    return found["f0"], found["f1"]
