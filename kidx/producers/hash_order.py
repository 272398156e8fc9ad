"""The order of iteration of Kafka's hash tables of producers: it shows in the bytes of a snapshot.

Java's ``HashMap`` (from 3.5) and Scala's ``mutable.HashMap`` (before) walk their buckets upwards. A table has a power
of two of them, is doubled when it is three quarters full, and never shrinks; Scala keeps a bucket sorted by hash, Java
in order of arrival. Most tables are small, and both orders are the same: which one it is, is asked where it matters.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from typing import Final

from kidx.java_numbers import INT_MAX, INT_MIN, to_int

_SMALLEST: Final = 16
_LONG_BUCKET: Final = 8
_LONG_BUCKETS_FROM: Final = 64
"""Java makes a larger table rather than a bucket of more than eight, unless there are as many buckets already. A longer
one is a tree then, whose root comes first; that order is not followed here."""

Asked = Callable[[], bool]
"""Says whether a table is Scala's, not Java's."""


def _hash(key: int, *, scala: bool) -> int:
    folded = key if scala and INT_MIN <= key <= INT_MAX else to_int((key ^ (key >> 32)) & 0xFFFF_FFFF)
    bits = folded & 0xFFFF_FFFF
    return to_int(bits ^ (bits >> 16))


def _sorted(keys: Iterable[int], buckets: int, *, scala: bool) -> list[int]:
    """Keys, given in order of arrival, in the order of iteration of a table with so many buckets."""
    hashes = {key: _hash(key, scala=scala) for key in keys}
    mask = buckets - 1
    if scala:
        return sorted(hashes, key=lambda key: (hashes[key] & mask, hashes[key]))
    return sorted(hashes, key=lambda key: hashes[key] & mask)


def in_hash_order(calls: Iterable[int], is_scala: Asked) -> list[int]:
    """The keys of a new table that was asked for each of ``calls`` and made what it lacked (``computeIfAbsent``).

    Args:
        calls: the keys.
        is_scala: see :data:`Asked`.
    """
    given = list(calls)
    if len(set(given)) < 2:
        return given[:1]
    java, scala = _in_order(given, scala=False), _in_order(given, scala=True)
    return java if java == scala or not is_scala() else scala


def _in_order(calls: Iterable[int], *, scala: bool) -> list[int]:
    """Java's table puts a new key before the others of its bucket, and looks for room before it does, not after."""
    order, seen = HashOrder(lambda: scala), list[int]()
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
        is_scala: see :data:`Asked`.
    """

    def __init__(self, is_scala: Asked) -> None:
        self._is_scala = is_scala
        self.buckets = _SMALLEST

    @property
    def room(self) -> int:
        """How many keys may be in a table of this size."""
        return self.buckets * 3 // 4

    def arrive(self, key: int, others: Collection[int], *, computed: bool = False) -> None:
        """A key comes to the others; the table may have to be larger."""
        if len(others) < _LONG_BUCKET - 1:
            return
        scala = self._is_scala()
        if not scala and self.buckets < _LONG_BUCKETS_FROM:
            buckets = [_hash(other, scala=False) & (self.buckets - 1) for other in (key, *others)]
            if buckets.count(buckets[0]) - 1 >= _LONG_BUCKET - computed:
                self.buckets *= 2
        if len(others) + (2 if scala else 1) > self.room and not computed:
            self.buckets *= 2

    def sort(self, keys: Iterable[int]) -> list[int]:
        """Keys, given in order of arrival, in the table's order of iteration."""
        given = list(keys)
        java, scala = (_sorted(given, self.buckets, scala=scala) for scala in (False, True))
        return java if java == scala or not self._is_scala() else scala
