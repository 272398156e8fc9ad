"""Range of a log that can be cleaned (``LogCleanerManager.cleanableOffsets``, ``LogToClean``; CL-1, CL-2, CL-22)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from kidx.errors import InvalidArgumentError

if TYPE_CHECKING:
    from kidx.dialect import Dialect
    from kidx.log.config import LogConfig
    from kidx.log.segments import Segments
    from kidx.segment import Clock, LogSegment


class CleanableLog(Protocol):
    """Attributes of a log that this module needs; :class:`~kidx.log.UnifiedLog` describes them."""

    dialect: Dialect
    config: LogConfig
    clock: Clock
    segments: Segments
    start_offset: int
    end_offset: int
    first_unstable_offset: int | None

    @property
    def last_stable_offset(self) -> int:
        """See :class:`~kidx.log.UnifiedLog`."""


def cleanable_range(log: CleanableLog, checkpoint: int | None) -> tuple[int, int] | None:
    """Return the first dirty offset and the base offset of the first segment that is not cleaned.

    The result is None if no dirty bytes can be cleaned.

    Args:
        log: the log to clean.
        checkpoint: offset at which the last round ended, or None; an offset outside the log is ignored.

    Raises:
        InvalidArgumentError: See :func:`segments_between`.
        KidxError, OSError: as :attr:`LogSegment.largest_timestamp`, for segments that may be too young.
    """
    known = checkpoint is not None and log.start_offset <= checkpoint <= log.end_offset
    first_dirty = checkpoint if known and checkpoint is not None else log.start_offset
    active = log.segments.active.base_offset
    young = _first_young(log, first_dirty, active)
    stop = max(first_dirty, min(young, log.last_stable_offset))
    first_open = max(first_dirty, young if log.first_unstable_offset is None else min(young, log.first_unstable_offset))
    if stop != first_open and not log.dialect.cleans_only_below_lso:
        stop = first_open
    remaining = [] if stop > active else segments_between(log, stop, active)
    upper = remaining[0].base_offset if remaining else active
    dirty = segments_between(log, first_dirty, max(first_dirty, upper))
    return (first_dirty, upper) if sum(segment.size for segment in dirty) > 0 else None


def _first_young(log: CleanableLog, first_dirty: int, active: int) -> int:
    """Return the base offset of the first dirty segment with a record that is too young, or of the active segment."""
    lag = log.config.min_compaction_lag_ms
    if lag <= 0 or first_dirty > active:
        return active
    newest = log.clock() - lag
    young = (s.base_offset for s in segments_between(log, first_dirty, active) if s.largest_timestamp > newest)
    return next(young, active)


def segments_between(log: CleanableLog, start: int, end: int) -> list[LogSegment]:
    """Return the segments with offsets from ``start`` up to, but excluding, ``end``.

    Raises:
        InvalidArgumentError: ``end`` is below ``start``; in 2.4 only if it is below the segment of ``start``.
    """
    found = log.segments.values_between(start, end)
    if start < end or (start == end and not found):
        return found
    floor = log.segments.floor(start)
    if (floor is None or end >= floor.base_offset) and not log.dialect.empty_ranges_hold_no_segment:
        return found
    if start == end:
        return []
    raise InvalidArgumentError(f"Invalid log segment range: from offset {start} to offset {end}")
