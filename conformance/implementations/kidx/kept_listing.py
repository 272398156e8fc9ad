"""The last answers to ListOffsets, given again as long as nothing has changed that they depend on.

A log is asked for the same thirty targets after every step, and most steps change nothing that could be answered
otherwise: a refused append, a moved high watermark, the clock. What answers depend on is looked at before each question
and compared with what it was before the last one. The bytes of the indexes are part of it, so that a file that another
process has changed is noticed; of a log's content, its object says how often it has written.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from kidx.index.entries import TimestampOffset
    from kidx.index.lazy import LazyIndex
    from kidx.log import UnifiedLog
    from kidx.log.epochs import EpochEntry
    from kidx.segment import FileRecords, LogSegment

Answers = TypeVar("Answers")


class SegmentGrounds(NamedTuple):
    """What a segment's answers depend on.

    Attributes:
        log: the object of its log; another one has read the file anew.
        writes: how often that has changed the file.
        maximum: the largest timestamp and its offset; None if not read yet.
        last_modified: of the log, which stands for the largest timestamp where there is none.
        offset_index: entries and bytes of the index; None if it is not open, as of the time index.
    """

    log: FileRecords
    writes: int
    maximum: TimestampOffset | None
    last_modified: int | None
    offset_index: tuple[int, bytes | None] | None
    time_index: tuple[int, bytes | None] | None


class LogGrounds(NamedTuple):
    """What a log's answers depend on, to a timestamp or to a special target."""

    start_offset: int
    search_start: int
    end_offset: int
    epochs: tuple[EpochEntry, ...]
    segments: tuple[SegmentGrounds, ...]


def grounds_of_segment(segment: LogSegment) -> SegmentGrounds:
    """As they are now; looking at them opens and changes nothing."""
    maximum = segment.maximum
    return SegmentGrounds(
        segment.log,
        segment.log.writes,
        maximum.cached(),
        segment.last_modified if maximum.known_timestamp < 0 else None,
        _content(segment.lazy_offset_index),
        _content(segment.lazy_time_index),
    )


def _content(lazy: LazyIndex[Any]) -> tuple[int, bytes | None] | None:
    if not lazy.is_loaded:
        return None
    index = lazy.get()
    return index.entries, index.stored


class KeptListing:
    """The answers to the last question."""

    def __init__(self) -> None:
        self._grounds: tuple[Any, ...] = ()
        self._answers: Any = None

    def answers(self, log: UnifiedLog, targets: Sequence[int], also: Any, answer: Callable[[], Answers]) -> Answers:
        """The answers of the last question if it was the same and would be answered alike, or those to this one.

        A question that has opened an index is not the same again: its grounds were others.

        Args:
            log: that is asked.
            targets: what for.
            also: what else the answers depend on; equal if and only if it is the same.
            answer: asks the log.

        Raises:
            KidxError, OSError: as ``answer``; then nothing is kept.
        """
        grounds = also, tuple(targets), self.grounds_of(log)
        if grounds != self._grounds:
            self._grounds = ()
            self._answers = answer()
            self._grounds = grounds
        answers: Answers = self._answers
        return answers

    def grounds_of(self, log: UnifiedLog) -> LogGrounds:
        """As they are now; looking at them opens and changes nothing."""
        segments = tuple([grounds_of_segment(segment) for segment in log.segments])
        return LogGrounds(log.start_offset, log.search_start, log.end_offset, tuple(log.epochs.entries), segments)
