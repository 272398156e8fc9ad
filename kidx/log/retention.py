"""Selection of the segments that are old enough to be deleted (``deleteOldSegments``)."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Literal, Protocol

from kidx.segment import LogSegment

if TYPE_CHECKING:
    from kidx.dialect import Dialect
    from kidx.log.config import LogConfig


class RetentionLog(Protocol):
    """Attributes of a log that retention needs; :class:`~kidx.log.UnifiedLog` describes them."""

    dialect: Dialect
    clock: Callable[[], int]
    start_offset: int
    high_watermark: int

    @property
    def config(self) -> LogConfig:
        """Settings of the topic."""

    @property
    def segments(self) -> Iterable[LogSegment]:
        """Segments in the order of their base offsets."""

    @property
    def size(self) -> int:
        """Size of all segments in bytes."""

    @property
    def end_offset(self) -> int:
        """Offset of the next record."""

    def remove_oldest(self, segments: list[LogSegment]) -> None:
        """Remove these first segments of the log; create an empty segment if no other remains."""


Rule = Literal["start", "size", "time"]
"""Rule of retention: by the log start offset, by the size of the log, by the age of a segment."""
Predicate = Callable[[LogSegment, LogSegment | None], bool]
"""Function that returns True if a segment may be deleted, given the segment after it."""


def delete_old_segments(log: RetentionLog) -> int:
    """Delete the segments that retention by start offset, size and time allows, and return their number.

    Raises:
        KidxError, OSError: as :meth:`kidx.UnifiedLog.remove_oldest`.
    """
    return sum(map(len, delete_by_rule(log).values()))


def delete_by_rule(log: RetentionLog) -> dict[Rule, list[LogSegment]]:
    """Delete the segments that retention allows, and return them by the rule that allows it.

    From 3.0 on the rules are applied in this order; earlier releases apply them in the opposite order.

    Raises:
        KidxError, OSError: as :meth:`kidx.UnifiedLog.remove_oldest`.
    """
    rules: dict[Rule, Callable[[RetentionLog], Predicate]] = {"start": _before_start}
    if log.config.deletes:
        rules |= {"size": _by_total_size, "time": _by_age}
    if not any(_selected(log, rule(log)) for rule in rules.values()):
        return {}
    names = list(rules)
    if not log.dialect.retention_starts_with_start_offset:
        names.reverse()
    return {name: _delete(log, rules[name](log)) for name in names}


def delete_segments_before_start(log: RetentionLog) -> int:
    """Delete the segments below the log start, and return their number.

    Raises:
        KidxError, OSError: as :meth:`kidx.UnifiedLog.remove_oldest`.
    """
    return len(_delete(log, _before_start(log)))


def _before_start(log: RetentionLog) -> Predicate:
    return lambda _, following: following is not None and following.base_offset <= log.start_offset


def _by_total_size(log: RetentionLog) -> Predicate:
    return by_size(log, log.config.retention_bytes)


def _by_age(log: RetentionLog) -> Predicate:
    return by_time(log, log.config.retention_ms)


def by_size(log: RetentionLog, limit: int) -> Predicate:
    """Return a predicate for segments without which the log still has ``limit`` bytes; a negative limit has none."""
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


def by_time(log: RetentionLog, limit: int) -> Predicate:
    """Return a predicate for segments older than ``limit`` milliseconds; a negative limit has none."""
    if limit < 0:
        return _never
    now = log.clock()
    return lambda segment, _: now - segment.largest_timestamp > limit


def _never(_: LogSegment, __: LogSegment | None) -> bool:
    return False


def _selected(log: RetentionLog, predicate: Predicate) -> list[LogSegment]:
    """Return the oldest segments below the high watermark, up to the first for which the predicate is False.

    An empty active segment is not selected.
    """
    segments = list(log.segments)
    selected: list[LogSegment] = []
    for segment, following in zip(segments, [*segments[1:], None], strict=True):
        upper = log.end_offset if following is None else following.base_offset
        if log.high_watermark < upper or not predicate(segment, following):
            break
        if following is None and segment.size == 0:
            break
        selected.append(segment)
    return selected


def _delete(log: RetentionLog, predicate: Predicate) -> list[LogSegment]:
    selected = _selected(log, predicate)
    if selected:
        log.remove_oldest(selected)
    return selected
