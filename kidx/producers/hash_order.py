"""The order of iteration of Kafka's hash tables of producers: it shows in the bytes of a snapshot.

Java's ``HashMap`` (from 3.5) and Scala's ``mutable.HashMap`` (before) walk their buckets upwards. A table has a power
of two of them, is doubled when it is three quarters full, and never shrinks; Scala keeps a bucket sorted by hash, Java
in order of arrival.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Final

from kidx.java_numbers import INT_MAX, INT_MIN, to_int

_SMALLEST: Final = 16
_LONG_BUCKET: Final = 8
_LONG_BUCKETS_FROM: Final = 64
"""Java makes a larger table rather than a bucket of more than eight, unless there are as many buckets already. A longer
one is a tree then, whose root comes first; that order is not followed here."""


def _hash(key: int, *, scala: bool) -> int:
    folded = key if scala and INT_MIN <= key <= INT_MAX else to_int((key ^ (key >> 32)) & 0xFFFF_FFFF)
    bits = folded & 0xFFFF_FFFF
    return to_int(bits ^ (bits >> 16))


def in_hash_order(calls: Iterable[int], *, scala: bool) -> list[int]:
    """The keys of a new table that was asked for each of ``calls`` and made what it lacked (``computeIfAbsent``).

    Java's table then puts the new key before the others of its bucket, and looks for room before it does, not after.
    """
    order, seen = HashOrder(scala=scala), list[int]()
    for key in calls:
        if not scala and len(seen) > order.room:
            order.buckets *= 2
        if key not in seen:
            order.arrive(key, seen, computed=not scala)
            seen.append(key)
    return order.sort(seen if scala else reversed(seen))


class HashOrder:
    """The size of one table, which follows what has ever been in it.

    Args:
        scala: Scala's table, not Java's.
    """

    def __init__(self, *, scala: bool) -> None:
        self.scala = scala
        self.buckets = _SMALLEST

    @property
    def room(self) -> int:
        """How many keys may be in a table of this size."""
        return self.buckets * 3 // 4

    def arrive(self, key: int, others: Collection[int], *, computed: bool = False) -> None:
        """A key comes to the others; the table may have to be larger."""
        if not self.scala and self.buckets < _LONG_BUCKETS_FROM:
            bucket = self._bucket(key)
            if sum(self._bucket(other) == bucket for other in others) >= _LONG_BUCKET - computed:
                self.buckets *= 2
        if len(others) + (2 if self.scala else 1) > self.room and not computed:
            self.buckets *= 2

    def _bucket(self, key: int) -> int:
        return _hash(key, scala=self.scala) & (self.buckets - 1)

    def sort(self, keys: Iterable[int]) -> list[int]:
        """Keys, given in order of arrival, in the table's order of iteration."""
        hashes = {key: _hash(key, scala=self.scala) for key in keys}
        mask = self.buckets - 1
        if self.scala:
            return sorted(hashes, key=lambda key: (hashes[key] & mask, hashes[key]))
        return sorted(hashes, key=lambda key: hashes[key] & mask)
