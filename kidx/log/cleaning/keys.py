"""The newest offset of each key, as far as they fit (``SkimpyOffsetMap``)."""

from __future__ import annotations

from typing import Final

LOAD_FACTOR: Final = 0.9
"""``log.cleaner.io.buffer.load.factor``: how much of the table is filled."""


class KeyOffsets:
    """The newest offset of each key.

    Args:
        slots: of the table.

    Attributes:
        latest: up to and including this offset all is known; -1 at first.
    """

    def __init__(self, slots: int) -> None:
        self._most = int(slots * LOAD_FACTOR)
        self._offsets: dict[bytes, int] = {}
        self.latest = -1

    @property
    def is_full(self) -> bool:
        """Nothing more is taken, not even a key that is known (CL-3)."""
        return len(self._offsets) >= self._most

    def put(self, key: bytes, offset: int) -> None:
        """Notes that a key has a record at ``offset``, which is the newest so far."""
        self._offsets[key] = offset
        self.latest = offset

    def get(self, key: bytes) -> int:
        """The newest offset of a key; -1 if it was not seen."""
        return self._offsets.get(key, -1)
