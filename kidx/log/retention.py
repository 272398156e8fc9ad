"""Which segments are old enough to go (``deleteOldSegments``)."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from kidx.segment import LogSegment

if TYPE_CHECKING:
    from kidx.log.unified_log import UnifiedLog

Predicate = Callable[[LogSegment, LogSegment | None], bool]
"""Whether a segment may go, given the one behind it."""


def delete_old_segments(log: UnifiedLog) -> int:
    """Deletes what retention by start offset, size and time allows; returns how many segments. From 4.0 in this order.

    Raises:
        KidxError, OSError: as :meth:`UnifiedLog.remove_oldest`.
    """
    rules = [_before_start, _by_size, _by_time]
    if not log.dialect.retention_starts_with_start_offset:
        rules.reverse()
    return sum(rule(log) for rule in rules)


def _before_start(log: UnifiedLog) -> int:
    return _delete(log, lambda _, following: following is not None and following.base_offset <= log.start_offset)


def _by_size(log: UnifiedLog) -> int:
    limit = log.config.retention_bytes
    if limit < 0 or log.size < limit:
        return 0
    surplus = log.size - limit

    def exceeds(segment: LogSegment, _: LogSegment | None) -> bool:
        nonlocal surplus
        if surplus < segment.size:
            return False
        surplus -= segment.size
        return True

    return _delete(log, exceeds)


def _by_time(log: UnifiedLog) -> int:
    limit = log.config.retention_ms
    if limit < 0:
        return 0
    now = log.clock()
    return _delete(log, lambda segment, _: now - segment.largest_timestamp > limit)


def _delete(log: UnifiedLog, predicate: Predicate) -> int:
    """Deletes the oldest segments while the predicate holds, none at or beyond the high watermark, no empty last."""
    segments = list(log.segments)
    chosen: list[LogSegment] = []
    for segment, following in zip(segments, [*segments[1:], None], strict=True):
        upper = log.end_offset if following is None else following.base_offset
        if log.high_watermark < upper or not predicate(segment, following):
            break
        if following is None and segment.size == 0:
            break
        chosen.append(segment)
    if chosen:
        log.remove_oldest(chosen)
    return len(chosen)
