"""Rules for the records in a log's batches: they can be read, and their offsets and times match the batch headers.

A checksum covers the bytes as they were written, so a wrong batch from a faulty program has a right checksum. A broker
validates the records that producers send, but not the records that it copies, recovers or serves. These checks read
and decompress all records, and therefore run only on request.
"""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Final

import numpy as np

from kidx.errors import KidxError
from kidx.findings import Fault
from kidx.records import RecordBatch, file_batches
from kidx.records.errors import LargeBatchError
from kidx.scan.records import decode_batch

if TYPE_CHECKING:
    from pathlib import Path

    from kidx.discovery import Segment
    from kidx.verify.reporter import Reporter

_Longs = np.ndarray[tuple[int], np.dtype[np.int64]]
_DECODED_FAST: Final = 2
"""The record format whose batches :func:`decode_batch` decodes as a whole."""


def check_records(log: Path, reporter: Reporter[Segment]) -> None:
    """Report batches with a right checksum whose records cannot be read, or have other offsets or times.

    Args:
        log: path of a log whose batches :mod:`kidx.verify.log_rules` has checked.
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
