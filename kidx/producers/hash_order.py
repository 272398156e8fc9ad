"""In which order Kafka's hash tables hand out producers: it shows in the bytes of a snapshot.

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


def in_hash_order(keys: Iterable[int], *, scala: bool) -> list[int]:
    """Keys, given in order of arrival, as a new table hands them out that is asked for each before it has it.

    What Java's table computes itself (``computeIfAbsent``) comes first in its bucket.
    """
    order, seen = HashOrder(scala=scala), list[int]()
    for key in keys:
        order.arrive(key, seen)
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

    def arrive(self, key: int, others: Collection[int]) -> None:
        """A key comes to the others; the table may have to be larger."""
        if not self.scala and self.buckets < _LONG_BUCKETS_FROM:
            bucket = self._bucket(key)
            if sum(self._bucket(other) == bucket for other in others) >= _LONG_BUCKET:
                self.buckets *= 2
        if len(others) + (2 if self.scala else 1) > self.buckets * 3 // 4:
            self.buckets *= 2

    def _bucket(self, key: int) -> int:
        return _hash(key, scala=self.scala) & (self.buckets - 1)

    def sort(self, keys: Iterable[int]) -> list[int]:
        """Keys, given in order of arrival, as the table hands them out."""
        hashes = {key: _hash(key, scala=self.scala) for key in keys}
        mask = self.buckets - 1
        if self.scala:
            return sorted(hashes, key=lambda key: (hashes[key] & mask, hashes[key]))
        return sorted(hashes, key=lambda key: hashes[key] & mask)
