"""The largest timestamp that a segment has seen, and the offset that goes with it (SEG-6)."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final, Protocol

from kidx.index.entries import TimestampOffset
from kidx.records.record import NO_TIMESTAMP

if TYPE_CHECKING:
    from kidx.dialect import Dialect

_UNKNOWN: Final = TimestampOffset(NO_TIMESTAMP, -1)


class LastEntry(Protocol):
    """What is needed of a time index."""

    @property
    def last_entry(self) -> TimestampOffset:
        """The last entry; ``(-1, base)`` if there is none."""


class MaxTimestamp:
    """Read from the last entry of the time index when it is first asked for.

    Args:
        time_index: opens the time index.
        dialect: decides whether timestamp and offset are read apart (up to 2.8), and whether a pair of -1 and -1, which
            only a damaged index holds, counts as not read (3.0–3.6).
    """

    __slots__ = ("_dialect", "_offset", "_time_index", "_timestamp")

    def __init__(self, time_index: Callable[[], LastEntry], dialect: Dialect) -> None:
        self._time_index = time_index
        self._dialect = dialect
        self._timestamp: int | None = None
        self._offset: int | None = None

    @property
    def is_known(self) -> bool:
        """Whether it, or one half of it, has been read or set."""
        return self._timestamp is not None or self._offset is not None

    @property
    def timestamp(self) -> int:
        """Milliseconds; -1 if the time index is empty. Opens the time index."""
        if self._timestamp is not None:
            return self._timestamp
        last = self._time_index().last_entry
        if self._dialect.maximum_is_two_fields:
            self._timestamp = last.timestamp
        else:
            self.set(last)
        return last.timestamp

    @property
    def offset(self) -> int:
        """The offset that goes with it; the base offset if the time index is empty. Opens the time index."""
        if self._offset is not None:
            return self._offset
        last = self._time_index().last_entry
        if self._dialect.maximum_is_two_fields:
            self._offset = last.offset
        else:
            self.set(last)
        return last.offset

    @property
    def known_timestamp(self) -> int:
        """The timestamp as far as it has been read: -1 if it has not. Opens nothing."""
        return NO_TIMESTAMP if self._timestamp is None else self._timestamp

    def peek(self) -> TimestampOffset | None:
        """Both, without reading; None while the timestamp is unknown. Where only the offset is, the index's own."""
        if self._timestamp is None:
            return None
        offset = self._time_index().last_entry.offset if self._offset is None else self._offset
        return TimestampOffset(self._timestamp, offset)

    def set(self, entry: TimestampOffset) -> None:
        """Both are known now."""
        if entry == _UNKNOWN and self._dialect.maximum_may_look_unknown:
            self._timestamp = self._offset = None
        else:
            self._timestamp, self._offset = entry

    def forget(self) -> None:
        """``recover`` starts anew: a pair is read again, of two fields only the timestamp is set, to -1."""
        two_fields = self._dialect.maximum_is_two_fields
        self._timestamp = NO_TIMESTAMP if two_fields else None
        if not two_fields:
            self._offset = None
