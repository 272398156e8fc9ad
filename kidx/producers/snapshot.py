"""``.snapshot`` files: a broker's state of the producers of a partition (``ProducerStateManager``)."""

from __future__ import annotations

import struct
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import TYPE_CHECKING, Final, NamedTuple

import google_crc32c

from kidx.java_values import INT_MAX, INT_MIN, to_int
from kidx.producers.entry import BatchMetadata, ProducerEntry
from kidx.producers.errors import CorruptSnapshotError

if TYPE_CHECKING:
    from kidx.dialect import Dialect

_SMALLEST: Final = 16
_LONG_BUCKET: Final = 8
_LONG_BUCKETS_FROM: Final = 64
"""Java enlarges a table instead of making a bucket of more than eight keys, unless there are this many buckets already.

Then a longer bucket becomes a tree, whose root comes first; that order is not modelled here.
"""

IsScala = Callable[[], bool]
"""Function that returns True for a Scala table, and False for a Java table."""

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


def _hash(key: int, *, scala: bool) -> int:
    folded = key if scala and INT_MIN <= key <= INT_MAX else to_int((key ^ (key >> 32)) & 0xFFFF_FFFF)
    bits = folded & 0xFFFF_FFFF
    return to_int(bits ^ (bits >> 16))


def _sorted(keys: Iterable[int], buckets: int, *, scala: bool) -> list[int]:
    """Return the keys in the iteration order of a table with this many buckets; they are given in insertion order."""
    hashes = {key: _hash(key, scala=scala) for key in keys}
    mask = buckets - 1
    if scala:
        return sorted(hashes, key=lambda key: (hashes[key] & mask, hashes[key]))
    return sorted(hashes, key=lambda key: hashes[key] & mask)


def in_hash_order(keys: Iterable[int], is_scala: IsScala) -> list[int]:
    """Return the keys of a new table in its iteration order, after each was added by ``computeIfAbsent``.

    Args:
        keys: the keys in the order of the calls; some may repeat.
        is_scala: see :data:`IsScala`.
    """
    given = list(keys)
    if len(set(given)) < 2:
        return given[:1]
    java, scala = _in_order(given, scala=False), _in_order(given, scala=True)
    return java if java == scala or not is_scala() else scala


def _in_order(keys: Iterable[int], *, scala: bool) -> list[int]:
    """Return the keys in the iteration order of one kind of table.

    ``computeIfAbsent`` of Java's table puts a new key before the others of its bucket, and checks the capacity before
    the insertion, not after it.
    """
    order, seen = HashOrder(lambda: scala), list[int]()
    for key in keys:
        if not scala and len(seen) > order.capacity:
            order.buckets *= 2
        if key not in seen:
            order.insert(key, seen, computed=not scala)
            seen.append(key)
    return order.sort(seen if scala else reversed(seen))


class HashOrder:
    """Size of one table, which depends on all keys that it ever contained.

    Args:
        is_scala: see :data:`IsScala`.

    Attributes:
        buckets: number of buckets of the table.
    """

    def __init__(self, is_scala: IsScala) -> None:
        self._is_scala = is_scala
        self.buckets = _SMALLEST

    @property
    def capacity(self) -> int:
        """Maximum number of keys in a table of this size."""
        return self.buckets * 3 // 4

    def insert(self, key: int, others: Collection[int], *, computed: bool = False) -> None:
        """Enlarge the table if a new key requires it.

        Args:
            others: the keys of the table.
            computed: True if Java inserts with ``computeIfAbsent``, which checks the capacity at another time.
        """
        if len(others) < _LONG_BUCKET - 1:
            return
        scala = self._is_scala()
        if not scala and self.buckets < _LONG_BUCKETS_FROM:
            buckets = [_hash(other, scala=False) & (self.buckets - 1) for other in (key, *others)]
            if buckets.count(buckets[0]) - 1 >= _LONG_BUCKET - computed:
                self.buckets *= 2
        if len(others) + (2 if scala else 1) > self.capacity and not computed:
            self.buckets *= 2

    def sort(self, keys: Iterable[int]) -> list[int]:
        """Return the keys, which are given in insertion order, in the table's iteration order."""
        given = list(keys)
        java, scala = (_sorted(given, self.buckets, scala=scala) for scala in (False, True))
        return java if java == scala or not self._is_scala() else scala


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
