"""Scanner of record batches, transaction indexes and leader epochs; it shares no code with kidx or Kafka."""

from __future__ import annotations

import re
import struct
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Final, NamedTuple

from conformance.oracle import records_of

if TYPE_CHECKING:
    from conformance.operations.log import LogState

_LOG_FILE: Final = re.compile(r"\d{20}\.log")
_HEADER: Final = struct.Struct(">qiibIhi")
"""Base offset, length, leader epoch, magic, checksum, attributes, last offset delta."""
_SMALLEST: Final = 61
"""Size in bytes of the header of a batch."""
_MAGIC: Final = 2
_CONTROL: Final = 1 << 5
_PRODUCER: Final = struct.Struct(">q")
_PRODUCER_AT: Final = 43
_CONTROL_TYPE: Final = _SMALLEST + 7
_ATTRIBUTES_AT: Final = 21
_TRANSACTIONAL_OR_COMPRESSED: Final = 1 << 4 | 7
_TRANSACTION: Final = struct.Struct(">hqqqq")
"""Entry of a transaction index: version, producer, first and last offset, last stable offset."""


class Batch(NamedTuple):
    """Batch of a log.

    Attributes:
        base: first offset.
        last: last offset.
        epoch: leader epoch.
        producer: producer id, or -1.
        is_control: True for the marker of a transaction.
        is_abort: True for the marker of an aborted transaction.
    """

    base: int
    last: int
    epoch: int
    producer: int
    is_control: bool
    is_abort: bool
    data: bytes


class KeyedRecord(NamedTuple):
    """Record with a key, of a batch that is neither transactional nor compressed; a tombstone has the value None."""

    offset: int
    key: bytes
    value: bytes | None


def keyed_records(batches: Iterable[Batch]) -> Iterator[KeyedRecord]:
    """Yield the records with a key in batches that are neither transactional nor compressed."""
    for batch in batches:
        (attributes,) = struct.unpack_from(">h", batch.data, _ATTRIBUTES_AT)
        at = _SMALLEST
        while at < len(batch.data) and not attributes & _TRANSACTIONAL_OR_COMPRESSED:
            length, at = _varint(batch.data, at)
            _, then = _varint(batch.data, at + 1)  # timestamp delta, after the attributes
            delta, then = _varint(batch.data, then)
            key, then = _octets(batch.data, then)
            value, _ = _octets(batch.data, then)
            at += length
            if key is not None:
                yield KeyedRecord(batch.base + delta, key, value)


def _octets(data: bytes, at: int) -> tuple[bytes | None, int]:
    """Return bytes that follow their length, and the position after them; None if the length is negative."""
    length, at = _varint(data, at)
    return (None, at) if length < 0 else (data[at : at + length], at + length)


def _varint(data: bytes, at: int) -> tuple[int, int]:
    """Return a zigzag-encoded number, and the position after it."""
    value = shift = 0
    while True:
        value |= (data[at] & 127) << shift
        at, shift = at + 1, shift + 7
        if data[at - 1] < 128:
            return (value >> 1) ^ -(value & 1), at


def batches_of_log(files: Mapping[str, bytes]) -> list[Batch]:
    """Return the batches in the segments of a directory, in the order of the segments."""
    names = sorted(name for name in files if _LOG_FILE.fullmatch(name))
    return [batch for name in names for batch in _batches(files[name])]


def _batches(data: bytes) -> Iterator[Batch]:
    at = 0
    while at + _SMALLEST <= len(data):
        base, length, epoch, magic, _, attributes, delta = _HEADER.unpack_from(data, at)
        end = at + 12 + length
        if magic != _MAGIC or end > len(data) or end < at + _SMALLEST:
            return
        # The key of a control record follows the headers of batch and record: version, then 0 for an abort.
        is_control = bool(attributes & _CONTROL)
        is_abort = is_control and data[at + _CONTROL_TYPE : at + _CONTROL_TYPE + 2] == b"\0\0"
        (producer,) = _PRODUCER.unpack_from(data, at + _PRODUCER_AT)
        yield Batch(base, base + delta, epoch, producer, is_control, is_abort, data[at:end])
        at = end


def inside(batches: list[Batch], state: LogState) -> list[Batch]:
    """Return the batches between the start and the end that a log reports."""
    return [batch for batch in batches if batch.last >= state.start_offset and batch.base < state.end_offset]


def timestamps_of(batches: list[Batch]) -> list[tuple[int, int]]:
    """Return offset and timestamp of each record."""
    return [(record.offset, record.timestamp) for batch in batches for record in records_of(batch.data)]


def targets_of(batches: list[Batch]) -> list[int]:
    """Return the timestamps to look up: the timestamp of every record, and one between it and the next."""
    known = {timestamp for _, timestamp in timestamps_of(batches)}
    return sorted(known | {timestamp + 1 for timestamp in known})


def aborted_in(files: Mapping[str, bytes]) -> set[int]:
    """Return the last offsets of the transactions in the transaction indexes of a directory."""
    entries = (
        _TRANSACTION.unpack_from(data, at)
        for name, data in files.items()
        if name.endswith(".txnindex")
        for at in range(0, len(data) - _TRANSACTION.size + 1, _TRANSACTION.size)
    )
    return {last for _, _, _, last, _ in entries}


def epochs_in(files: Mapping[str, bytes]) -> list[tuple[int, int]]:
    """Return epoch and first offset of each line of the checkpoint of leader epochs, in order."""
    lines = files.get("leader-epoch-checkpoint", b"").decode(errors="replace").split("\n")[2:]
    pairs = [line.split() for line in lines if line.strip()]
    return sorted((int(epoch), int(offset)) for epoch, offset in pairs)
