"""Dumps of ``.snapshot`` files: a broker's state of the producers of a partition."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Final

import google_crc32c

from kidx.dump.entry import Entry, java_optional, named
from kidx.files import CHUNK, FileChangedError, regular
from kidx.java_numbers import INT_MAX
from kidx.producers.snapshot import HEAD, PRODUCER

if TYPE_CHECKING:
    from kidx.dump.wording import Wording

_CHECKSUMMED_FROM: Final = 6
"""Position of the first byte that the checksum of a snapshot covers."""


def dump_producer_snapshot(path: Path, wording: Wording) -> Iterator[Entry]:
    """Yield the producers of a snapshot (``ProducerStateManager.readSnapshot``), or its error.

    Raises:
        OSError: the file cannot be read.
    """
    with regular(path) as descriptor:
        problem = _problem(path, descriptor)
        if problem:
            yield Entry("corrupt", {"message": problem}, problem)
            return
        count = HEAD.unpack(os.pread(descriptor, HEAD.size, 0))[2]
        for slot in range(count):
            entry = os.pread(descriptor, PRODUCER.size, HEAD.size + slot * PRODUCER.size)
            if len(entry) < PRODUCER.size:
                raise FileChangedError(errno.EIO, "Became shorter while it was read", str(path))
            yield _entry(PRODUCER.unpack(entry), wording)


def _problem(path: Path, descriptor: int) -> str:
    head, size = os.pread(descriptor, HEAD.size, 0), os.fstat(descriptor).st_size
    if len(head) < HEAD.size:
        return f"Snapshot file {path} is corrupted: it has {len(head)} bytes"
    version, crc, count = HEAD.unpack(head)
    if version != 1:
        return f"Snapshot contained an unknown file version {version}"
    computed, position = 0, _CHECKSUMMED_FROM
    while data := os.pread(descriptor, CHUNK, position):
        computed = google_crc32c.extend(computed, data)
        position += len(data)
    if computed != crc:
        return f"Snapshot is corrupt (CRC is no longer valid). Stored crc: {crc}. Computed crc: {computed}"
    if size < HEAD.size + count * PRODUCER.size:
        return f"Snapshot file {path} is corrupted: it ends before its {count} producers"
    return ""


def _entry(producer: tuple[int, ...], wording: Wording) -> Entry:
    producer_id, epoch, last_sequence, last_offset, offset_delta, timestamp, coordinator_epoch, first_offset = producer
    open_since = None if first_offset < 0 else first_offset
    fields = {
        "producerId": producer_id,
        "producerEpoch": epoch,
        "coordinatorEpoch": coordinator_epoch,
        "currentTxnFirstOffset": _optional(open_since, java=wording.optional_is_java),
    }
    if wording.last_timestamp:
        fields["lastTimestamp"] = timestamp
    has_batch = last_offset >= 0 or wording.missing_batch_shown
    if has_batch:
        fields |= {
            "firstSequence": _decrement(last_sequence, offset_delta),
            "lastSequence": last_sequence,
            "lastOffset": last_offset,
            "offsetDelta": offset_delta,
            "timestamp": timestamp,
        }
    return Entry("producer", fields, named(fields) + ("" if has_batch else wording.trailing_space))


def _decrement(sequence: int, decrement: int) -> int:
    """Return the sequence number ``decrement`` records earlier (``decrementSequence``); 0 follows 2**31 - 1."""
    return sequence - decrement if sequence >= decrement else INT_MAX - (decrement - sequence) + 1


def _optional(value: int | None, *, java: bool) -> str:
    if java:
        return java_optional(value)
    return "None" if value is None else f"Some({value})"
