"""Largest timestamp of a segment, and the offset that belongs to it (SEG-6)."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final, Protocol

from kidx.index.entries import TimestampOffset
from kidx.records.record import NO_TIMESTAMP

if TYPE_CHECKING:
    from kidx.dialect import Dialect

_UNKNOWN: Final = TimestampOffset(NO_TIMESTAMP, -1)


class HasLastEntry(Protocol):
    """Operations of a time index that this module needs."""

    @property
    def last_entry(self) -> TimestampOffset:
        """Last entry, or ``(-1, base)`` if the index is empty."""


class MaxTimestamp:
    """Largest timestamp and its offset, read from the last entry of the time index on first use.

    Args:
        time_index: function that opens the time index.
        dialect: rules of a release. Up to 2.8, timestamp and offset are read separately. In 3.0–3.6, a pair (-1, -1),
            which only a corrupt index contains, counts as not read.
    """

    __slots__ = ("_dialect", "_offset", "_time_index", "_timestamp")

    def __init__(self, time_index: Callable[[], HasLastEntry], dialect: Dialect) -> None:
        self._time_index = time_index
        self._dialect = dialect
        self._timestamp: int | None = None
        self._offset: int | None = None

    @property
    def is_known(self) -> bool:
        """True if the pair, or one half of it, has been read or set."""
        return self._timestamp is not None or self._offset is not None

    @property
    def timestamp(self) -> int:
        """Timestamp in milliseconds; -1 if the time index is empty. Opens the time index."""
        if self._timestamp is not None:
            return self._timestamp
        last = self._time_index().last_entry
        if self._dialect.max_timestamp_in_two_fields:
            self._timestamp = last.timestamp
        else:
            self.set(last)
        return last.timestamp

    @property
    def offset(self) -> int:
        """Offset that belongs to the timestamp; the base offset if the time index is empty. Opens the time index."""
        if self._offset is not None:
            return self._offset
        last = self._time_index().last_entry
        if self._dialect.max_timestamp_in_two_fields:
            self._offset = last.offset
        else:
            self.set(last)
        return last.offset

    @property
    def known_timestamp(self) -> int:
        """Timestamp if it has been read, otherwise -1. Opens nothing."""
        return NO_TIMESTAMP if self._timestamp is None else self._timestamp

    def cached(self) -> TimestampOffset | None:
        """Return the cached pair, or None while the timestamp is unknown; an unknown offset is read from the index."""
        if self._timestamp is None:
            return None
        offset = self._time_index().last_entry.offset if self._offset is None else self._offset
        return TimestampOffset(self._timestamp, offset)

    def set(self, entry: TimestampOffset) -> None:
        """Set both values."""
        if entry == _UNKNOWN and self._dialect.max_timestamp_may_look_unread:
            self._timestamp = self._offset = None
        else:
            self._timestamp, self._offset = entry

    def forget(self) -> None:
        """Reset as ``recover`` does: the pair is read again on the next use; up to 2.8, the timestamp becomes -1."""
        two_fields = self._dialect.max_timestamp_in_two_fields
        self._timestamp = NO_TIMESTAMP if two_fields else None
        if not two_fields:
            self._offset = None
