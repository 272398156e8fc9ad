"""Rules for the records in a log's batches: they can be read, and their offsets match the batch headers.

A checksum covers the bytes as they were written, so a wrong batch from a faulty program has a right checksum. A broker
validates the records that producers send, but not the records that it copies, recovers or serves. These checks read
and decompress all records, and therefore run only on request.
"""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Final

import numpy as np

from kidx.errors import KidxError
from kidx.records import RecordBatch, file_batches
from kidx.records.errors import LargeBatchError
from kidx.scan.records import decode_batch

if TYPE_CHECKING:
    from pathlib import Path

    from kidx.verify.reporter import Reporter

_SUFFIX: Final = ".log"
_DECODED_FAST: Final = 2
"""The record format whose batches :func:`decode_batch` decodes as a whole."""


def check_records(log: Path, reporter: Reporter) -> None:
    """Report batches with a right checksum whose records cannot be read, or have other offsets.

    Args:
        log: path of a log whose batches :mod:`kidx.verify.log_rules` has checked.
        reporter: receives the findings.

    Raises:
        OSError: the log cannot be read.
    """
    with contextlib.suppress(KidxError):
        for batch in file_batches(log):
            if _is_whole(batch) and (said := _wrong(batch)):
                reporter.add(
                    _SUFFIX,
                    "RB-2",
                    "broken",
                    f"the batch of {batch.size_in_bytes} bytes at {batch.position} has a right checksum, but {said}: a "
                    f"consumer at offset {batch.base_offset} gets an error, or other records",
                    position=batch.position,
                    offset=batch.base_offset,
                )


def _is_whole(batch: RecordBatch) -> bool:
    try:
        batch.ensure_valid()
    except KidxError:
        return False
    return True


def _wrong(batch: RecordBatch) -> str:
    """Return the fault in the records of a batch; empty if they are right."""
    try:
        offsets = _offsets(batch)
    except (KidxError, MemoryError) as error:
        return f"its records cannot be read: {error}"
    if not len(offsets):
        return ""
    first, last = int(offsets[0]), int(offsets[-1])
    if np.any(np.diff(offsets) <= 0):
        return f"the offsets of its records do not increase, from {first} to {last}"
    if first < batch.base_offset or last > batch.last_offset:
        return f"its records have offsets {first} to {last}, not {batch.base_offset} to {batch.last_offset}"
    return ""


def _offsets(batch: RecordBatch) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    if batch.magic == _DECODED_FAST:
        with contextlib.suppress(LargeBatchError):
            return np.asarray(decode_batch(batch).rows["offset"], np.int64)
    return np.fromiter((record.offset for record in batch), np.int64)
