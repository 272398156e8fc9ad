"""What a segment answers with: plain, immutable values."""

from __future__ import annotations

from typing import NamedTuple


class LogOffsetPosition(NamedTuple):
    """The batch that holds an offset: its last offset (its base offset from 4.0), byte position and size (SEG-50)."""

    offset: int
    position: int
    size: int


class TimestampAndOffset(NamedTuple):
    """The answer of a search by timestamp; the epoch is None where the batch has none (FR-1)."""

    timestamp: int
    offset: int
    leader_epoch: int | None


class FetchDataInfo(NamedTuple):
    """What a read would send: ``size`` bytes of the log from ``position``.

    ``message_offset`` is the offset asked for, from 4.0 the base offset of the first batch (SEG-50).
    """

    message_offset: int
    position: int
    size: int
    first_entry_incomplete: bool
