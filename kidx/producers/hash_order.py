"""Iteration order of Kafka's hash tables of producers, which shows in the bytes of a snapshot.

Java's ``HashMap`` (from 3.5) and Scala's ``mutable.HashMap`` (before) iterate over their buckets upwards. The number of
buckets is a power of two; a table doubles when it is three quarters full, and never shrinks. Scala keeps a bucket
sorted by hash, Java in insertion order. Most tables are small and have the same order in both, so the release is only
queried for its kind of table if the orders differ.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from typing import Final

from kidx.java_numbers import INT_MAX, INT_MIN, to_int

_SMALLEST: Final = 16
_LONG_BUCKET: Final = 8
_LONG_BUCKETS_FROM: Final = 64
"""Java enlarges a table instead of making a bucket of more than eight keys, unless there are this many buckets already.

Then a longer bucket becomes a tree, whose root comes first; that order is not modelled here.
"""

IsScala = Callable[[], bool]
"""Function that returns True for a Scala table, and False for a Java table."""


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
            key: the new key.
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
