"""``.snapshot`` files: a broker's state of the producers of a partition (``ProducerStateManager``).

The file has a header, then one entry per producer in the order of the broker's hash table. It contains only the last
batch of each producer, and nothing about completed transactions.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Final, NamedTuple

import google_crc32c

from kidx.producers.entry import BatchMetadata, ProducerEntry
from kidx.producers.errors import CorruptSnapshotError

if TYPE_CHECKING:
    from kidx.dialect import Dialect

# fmt: off
HEAD: Final = struct.Struct(
    ">h"  # version, 1
    "I"   # CRC-32C of the bytes after it
    "i"   # number of producers
)
PRODUCER: Final = struct.Struct(
    ">q"  # producer id
    "h"   # producer epoch
    "i"   # last sequence
    "q"   # last offset
    "i"   # offset delta: last offset - first offset of the last batch
    "q"   # timestamp of the last batch or marker, milliseconds
    "i"   # coordinator epoch
    "q"   # first offset of the open transaction, -1 for none
)
# fmt: on
CHECKSUMMED_FROM: Final = 6  # the checksum covers the bytes from here on
VERSION: Final = 1


class SnapshotEntry(NamedTuple):
    """Fields of a producer in their order in the file; :data:`PRODUCER` explains them."""

    producer_id: int
    producer_epoch: int
    last_sequence: int
    last_offset: int
    offset_delta: int
    timestamp: int
    coordinator_epoch: int
    current_txn_first_offset: int


def problem_of(data: bytes) -> str:
    """Return the reason why a snapshot is invalid, with Kafka's message if it has one; empty if it is valid."""
    if len(data) < HEAD.size:
        return f"Snapshot failed schema validation: it has {len(data)} bytes"
    version, crc, count = HEAD.unpack_from(data)
    if version != VERSION:
        return f"Snapshot contained an unknown file version {version}"
    computed = google_crc32c.value(data[CHECKSUMMED_FROM:])
    if computed != crc:
        return f"Snapshot is corrupt (CRC is no longer valid). Stored crc: {crc}. Computed crc: {computed}"
    if count < 0 or len(data) < HEAD.size + count * PRODUCER.size:
        return f"Snapshot failed schema validation: it ends before its {count} producers"
    return ""


def entries_of(data: bytes) -> Iterable[SnapshotEntry]:
    """Yield the entries of a snapshot for which :func:`problem_of` returns no problem."""
    for slot in range(HEAD.unpack_from(data)[2]):
        yield SnapshotEntry(*PRODUCER.unpack_from(data, HEAD.size + slot * PRODUCER.size))


def decode(data: bytes, dialect: Dialect) -> dict[int, ProducerEntry]:
    """Return the producers of a snapshot by id, in the order of the file.

    Raises:
        CorruptSnapshotError: version, checksum or length is wrong.
    """
    problem = problem_of(data)
    if problem:
        raise CorruptSnapshotError(problem)
    producers = {}
    for found in entries_of(data):
        open_since = found.current_txn_first_offset
        entry = ProducerEntry(
            found.producer_epoch, found.coordinator_epoch, found.timestamp, None if open_since < 0 else open_since
        )
        if found.last_offset >= 0 or dialect.snapshots_always_have_a_batch:
            entry.batches.append(
                BatchMetadata(found.last_sequence, found.last_offset, found.offset_delta, found.timestamp)
            )
        producers[found.producer_id] = entry
    return producers


def encode(producers: Mapping[int, ProducerEntry], timestamps: Mapping[int, int]) -> bytes:
    """Return the bytes of a snapshot.

    Args:
        producers: the producers by id, in the order of the file.
        timestamps: last timestamp of each producer, in milliseconds.
    """
    body = struct.pack(">i", len(producers)) + b"".join(
        PRODUCER.pack(
            producer,
            entry.producer_epoch,
            entry.last_sequence,
            entry.last_offset,
            entry.last_offset_delta,
            timestamps[producer],
            entry.coordinator_epoch,
            -1 if entry.current_txn_first_offset is None else entry.current_txn_first_offset,
        )
        for producer, entry in producers.items()
    )
    return struct.pack(">hI", VERSION, google_crc32c.value(body)) + body
