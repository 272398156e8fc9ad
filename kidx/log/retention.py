"""Which segments are old enough to go (``deleteOldSegments``)."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Protocol

from kidx.segment import LogSegment

if TYPE_CHECKING:
    from kidx.dialect import Dialect
    from kidx.log.config import LogConfig


class Retained(Protocol):
    """What retention needs of a log."""

    dialect: Dialect
    config: LogConfig
    clock: Callable[[], int]
    start_offset: int
    high_watermark: int

    @property
    def segments(self) -> Iterable[LogSegment]:
        """In the order of their base offsets."""

    @property
    def size(self) -> int:
        """Bytes of all segments."""

    @property
    def end_offset(self) -> int:
        """The offset of the next record."""

    def remove_oldest(self, segments: list[LogSegment]) -> None:
        """Removes the first segments, and makes an empty one if that were all."""


Predicate = Callable[[LogSegment, LogSegment | None], bool]
"""Whether a segment may go, given the one behind it."""


def delete_old_segments(log: Retained) -> int:
    """Deletes what retention by start offset, size and time allows; returns how many segments. From 4.0 in this order.

    Raises:
        KidxError, OSError: as :meth:`kidx.UnifiedLog.remove_oldest`.
    """
    rules = [_before_start, _by_size, _by_time] if log.config.deletes else [_before_start]
    if not any(_chosen(log, rule(log)) for rule in rules):
        return 0
    if not log.dialect.retention_starts_with_start_offset:
        rules.reverse()
    return sum(_delete(log, rule(log)) for rule in rules)


def delete_segments_before_start(log: Retained) -> int:
    """Deletes the segments that lie before the log start; returns how many.

    Raises:
        KidxError, OSError: as :meth:`kidx.UnifiedLog.remove_oldest`.
    """
    return _delete(log, _before_start(log))


def _before_start(log: Retained) -> Predicate:
    return lambda _, following: following is not None and following.base_offset <= log.start_offset


def _by_size(log: Retained) -> Predicate:
    limit = log.config.retention_bytes
    if limit < 0 or log.size < limit:
        return _never
    surplus = log.size - limit

    def exceeds(segment: LogSegment, _: LogSegment | None) -> bool:
        nonlocal surplus
        if surplus < segment.size:
            return False
        surplus -= segment.size
        return True

    return exceeds


def _by_time(log: Retained) -> Predicate:
    limit = log.config.retention_ms
    if limit < 0:
        return _never
    now = log.clock()
    return lambda segment, _: now - segment.largest_timestamp > limit


def _never(_: LogSegment, __: LogSegment | None) -> bool:
    return False


def _chosen(log: Retained, predicate: Predicate) -> list[LogSegment]:
    """The oldest segments while the predicate holds, none at or beyond the high watermark, no empty last."""
    segments = list(log.segments)
    chosen: list[LogSegment] = []
    for segment, following in zip(segments, [*segments[1:], None], strict=True):
        upper = log.end_offset if following is None else following.base_offset
        if log.high_watermark < upper or not predicate(segment, following):
            break
        if following is None and segment.size == 0:
            break
        chosen.append(segment)
    return chosen


def _delete(log: Retained, predicate: Predicate) -> int:
    """Deletes what a rule chooses, and returns how many segments."""
    chosen = _chosen(log, predicate)
    if chosen:
        log.remove_oldest(chosen)
    return len(chosen)
