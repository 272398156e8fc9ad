"""Dumps of index files, each compared with its log as Kafka does (DL-3 to DL-7), and of ``.snapshot`` files.

A ``.snapshot`` has a broker's state of the producers of a partition.
"""

from __future__ import annotations

import errno
import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import google_crc32c

from kidx.dump.entry import Entry, java_optional, named, wording_of
from kidx.errors import InvalidArgumentError
from kidx.files import CHUNK, FileChangedError, regular
from kidx.index.offset import OffsetIndex
from kidx.index.time import TimeIndex
from kidx.index.transaction import TransactionIndex
from kidx.java_values import INT_MAX
from kidx.producers.snapshot import HEAD, PRODUCER
from kidx.rebuild import base_offset_of
from kidx.records import NO_TIMESTAMP
from kidx.segment import FileRecords
from kidx.segment.files import LOG_SUFFIX, OFFSET_INDEX_SUFFIX

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from kidx.dialect import Dialect
    from kidx.dump.entry import Mismatches, Wording


@dataclass(frozen=True, slots=True)
class IndexOptions:
    """Options for an index.

    Attributes:
        sanity_only: True for only the checks of a starting broker (``--index-sanity-check``).
        verify_only: True to omit the lines for the entries (``--verify-index-only``).
        max_message_size: number of bytes of the log that are read from an entry's position.
    """

    sanity_only: bool = False
    verify_only: bool = False
    max_message_size: int = 5 << 20


def dump_offset_index(
    path: Path, shown: str, options: IndexOptions, mismatches: Mismatches, dialect: Dialect
) -> Iterator[Entry]:
    """Yield the entries of an ``.index``, up to the first after slot 0 whose offset is the base offset (DL-4).

    Args:
        path: the file; its log must be in the same directory.
        shown: name of the file as the user gave it.
        options: options of the dump.
        mismatches: collection that gets every entry whose batch does not end at its offset.
        dialect: rules of a release.

    Raises:
        KidxError: the sanity check fails, or an entry's position has no batch.
        OSError: index or log cannot be read.
    """
    base_offset = base_offset_of(path)
    with (
        _log_of(path, dialect) as log,
        OffsetIndex(path, base_offset, writable=False, dialect=dialect) as index,
    ):
        if index.entries == 0 and wording_of(dialect).empty_before_sanity:
            yield Entry("verdict", {"verdict": "empty"}, f"{shown} is empty.")
            return
        if options.sanity_only:
            index.sanity_check()
            yield _passed(shown)
            return
        for slot in range(index.entries):
            entry = index.entry(slot)
            if entry.offset == base_offset and slot > 0:
                return
            last = _last_offset_at(log, entry.position, options.max_message_size, shown)
            if last != entry.offset:
                mismatches.add("index_mismatch", str(path.absolute()), entry.offset, last)
            if not options.verify_only:
                yield Entry("offset", {"offset": entry.offset, "position": entry.position})


def dump_time_index(
    path: Path, shown: str, options: IndexOptions, mismatches: Mismatches, dialect: Dialect
) -> Iterator[Entry]:
    """Yield the entries of a ``.timeindex``; ``.log`` and ``.index`` must be in its directory.

    Arguments and errors are as in :func:`dump_offset_index`. Mismatches are timestamps that are not the largest of
    their batch, timestamps that do not increase, and offsets at which no batch ends.
    """
    base_offset = base_offset_of(path)
    index_path = _sibling(path, OFFSET_INDEX_SUFFIX)
    if not index_path.exists():  # Kafka would create it, and fail nevertheless
        raise FileNotFoundError(
            f"{index_path} is missing: a time index is checked with the offset index in its directory"
        )
    with (
        _log_of(path, dialect) as log,
        OffsetIndex(index_path, base_offset, writable=False, dialect=dialect) as index,
        TimeIndex(path, base_offset, writable=False, dialect=dialect) as time_index,
    ):
        if options.sanity_only:
            time_index.sanity_check()
            yield _passed(shown)
            return
        previous = NO_TIMESTAMP
        for slot in range(time_index.entries):
            entry = time_index.entry(slot)
            if entry.offset == base_offset and slot > 0:
                return
            position = index.lookup(entry.offset).position
            _check_timestamp(log, position, entry, previous, mismatches, str(path.absolute()))
            if not options.verify_only:
                yield Entry("timestamp", {"timestamp": entry.timestamp, "offset": entry.offset})
            previous = entry.timestamp


def _check_timestamp(
    log: FileRecords, position: int, entry: tuple[int, int], previous: int, mismatches: Mismatches, path: str
) -> None:
    timestamp, offset = entry
    log.available_bytes(position, INT_MAX)
    batch = next((batch for batch in log.batches(position) if batch.last_offset >= offset), None)
    if batch is None or batch.last_offset != offset:
        mismatches.add("offset_not_found", path, offset, -1 if batch is None else batch.last_offset)
        return
    largest = max((record.timestamp for record in batch.offset_timestamps()), default=NO_TIMESTAMP)
    largest = max(largest, NO_TIMESTAMP)
    if largest != timestamp:
        mismatches.add("timestamp_mismatch", path, timestamp, largest)
    if previous >= timestamp:
        mismatches.add("timestamp_out_of_order", path, timestamp, previous)


def dump_transaction_index(path: Path, dialect: Dialect) -> Iterator[Entry]:
    """Yield the transactions of a ``.txnindex``.

    Raises:
        UnsupportedVersionError: a record has a version that the release does not read.
        OSError: the file cannot be read.
    """
    with TransactionIndex(base_offset_of(path), path, writable=False, dialect=dialect) as index:
        for _ in index.stored_records():  # Kafka reads all of them before it prints one
            pass
        for _, version, txn in index.stored_records():
            yield Entry(
                "transaction",
                {
                    "version": version,
                    "producerId": txn.producer_id,
                    "firstOffset": txn.first_offset,
                    "lastOffset": txn.last_offset,
                    "lastStableOffset": txn.last_stable_offset,
                },
            )


def _sibling(path: Path, suffix: str) -> Path:
    return path.with_name(path.name.partition(".")[0] + suffix)


class _log_of:  # noqa: N801 -- used as a function
    """Log of an index, closed at the end without changes."""

    def __init__(self, path: Path, dialect: Dialect) -> None:
        log = _sibling(path, LOG_SUFFIX)
        if not log.exists():
            raise FileNotFoundError(f"{log} is missing: {path.name} is checked against the log in its directory")
        self._log = FileRecords(log, writable=False, dialect=dialect)

    def __enter__(self) -> FileRecords:
        return self._log

    def __exit__(self, *exception: object) -> None:
        self._log.close_handlers()


def _passed(shown: str) -> Entry:
    return Entry("verdict", {"verdict": "sane"}, f"{shown} passed sanity check.")


def _last_offset_at(log: FileRecords, position: int, size: int, shown: str) -> int:
    end = position + log.available_bytes(position, size)
    for batch in log.batches(position, end):
        return batch.last_offset
    raise InvalidArgumentError(f"{shown}: an entry points at byte {position}, where {log.path} has no complete batch")


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
