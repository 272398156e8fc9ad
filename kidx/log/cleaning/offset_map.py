"""Newest offset of each key, for as many keys as fit (``SkimpyOffsetMap``)."""

from __future__ import annotations

from typing import Final

LOAD_FACTOR: Final = 0.9
"""``log.cleaner.io.buffer.load.factor``: fraction of the map that is filled."""


class OffsetMap:
    """Map from key to its newest offset.

    Args:
        slots: number of slots of the map.

    Attributes:
        latest: offset up to which the records are mapped; -1 at first.
    """

    def __init__(self, slots: int) -> None:
        self._max_entries = int(slots * LOAD_FACTOR)
        self._offsets: dict[bytes, int] = {}
        self.latest = -1

    @property
    def is_full(self) -> bool:
        """True if the map accepts no further entry, not even for a known key (CL-3)."""
        return len(self._offsets) >= self._max_entries

    def put(self, key: bytes, offset: int) -> None:
        """Map a key to ``offset``, which is its newest so far."""
        self._offsets[key] = offset
        self.latest = offset

    def get(self, key: bytes) -> int:
        """Return the newest offset of a key, or -1 if it is not mapped."""
        return self._offsets.get(key, -1)
