"""Immutable results of queries on a segment."""

from __future__ import annotations

from typing import NamedTuple


class LogOffsetPosition(NamedTuple):
    """Batch that contains an offset (SEG-50)."""

    offset: int  # its last offset; from 4.0 on, its base offset
    position: int  # byte position in the log
    size: int  # bytes


class TimestampAndOffset(NamedTuple):
    """Result of a search by timestamp; the epoch is ``None`` if the batch states no epoch (FR-1)."""

    timestamp: int  # milliseconds
    offset: int  # of the record that was found
    leader_epoch: int | None


class FetchDataInfo(NamedTuple):
    """Result of a read: ``size`` bytes of the log from ``position``.

    ``message_offset`` is the requested offset; from 4.0 on, the base offset of the first batch (SEG-50).
    ``first_entry_incomplete`` is True if the first batch is larger than the requested size.
    """

    message_offset: int
    position: int
    size: int
    first_entry_incomplete: bool
