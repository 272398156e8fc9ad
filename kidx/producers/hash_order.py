"""In which order Kafka's hash tables hand out producers: it shows in the bytes of a snapshot.

Java's ``HashMap`` (from 3.5) and Scala's ``mutable.HashMap`` (before) walk their buckets upwards. A table has a power
of two of them, is doubled when it is three quarters full, and never shrinks; Scala keeps a bucket sorted by hash, Java
in order of arrival.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from kidx.java_numbers import INT_MAX, INT_MIN, to_int

_SMALLEST: Final = 16


def _hash(key: int, *, scala: bool) -> int:
    folded = key if scala and INT_MIN <= key <= INT_MAX else to_int((key ^ (key >> 32)) & 0xFFFF_FFFF)
    bits = folded & 0xFFFF_FFFF
    return to_int(bits ^ (bits >> 16))


class HashOrder:
    """The size of one table, which follows what has ever been in it.

    Args:
        scala: Scala's table, not Java's.
    """

    def __init__(self, *, scala: bool) -> None:
        self.scala = scala
        self.buckets = _SMALLEST

    def grow(self, count: int) -> None:
        """The table holds ``count`` keys; it may have to be larger."""
        while count + (1 if self.scala else 0) > self.buckets * 3 // 4:
            self.buckets *= 2

    def sort(self, keys: Iterable[int]) -> list[int]:
        """Keys, given in order of arrival, as the table hands them out."""
        hashes = {key: _hash(key, scala=self.scala) for key in keys}
        mask = self.buckets - 1
        if self.scala:
            return sorted(hashes, key=lambda key: (hashes[key] & mask, hashes[key]))
        return sorted(hashes, key=lambda key: hashes[key] & mask)
