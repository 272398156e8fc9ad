"""Cache of the last results of ListOffsets, which is valid until a value on which they depend changes.

A log is queried for the same thirty targets after every step, and most steps change no result: a rejected append, a
moved high watermark, the clock. All values on which the results depend are read before each query, and compared with
the values before the last query. These include the bytes of the indexes, so that a change by another process is
noticed. The content of a log is represented by the number of writes to it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from kidx.index.lazy import LazyIndex
    from kidx.index.time import TimestampOffset
    from kidx.log import UnifiedLog
    from kidx.log.epochs import EpochEntry
    from kidx.segment import FileRecords, LogSegment

Answers = TypeVar("Answers")


class SegmentCacheKey(NamedTuple):
    """Everything on which a segment's results depend.

    Attributes:
        log: The object that reads the log file; a new object has read the file again.
        writes: The number of changes of the file through that object.
        maximum: The largest timestamp and its offset, or None if they have not been read.
        last_modified: The modification time of the log file, which replaces a missing largest timestamp.
        offset_index: The number of entries and the bytes of the offset index, or None if it is not open.
        time_index: The number of entries and the bytes of the time index, or None if it is not open.
    """

    log: FileRecords
    writes: int
    maximum: TimestampOffset | None
    last_modified: int | None
    offset_index: tuple[int, bytes | None] | None
    time_index: tuple[int, bytes | None] | None


class LogCacheKey(NamedTuple):
    """Everything on which a log's results for timestamps and special targets depend.

    ``search_start`` is the offset at which the log begins to search for timestamps.
    """

    start_offset: int
    search_start: int
    end_offset: int
    epochs: tuple[EpochEntry, ...]
    segments: tuple[SegmentCacheKey, ...]


def segment_cache_key(segment: LogSegment) -> SegmentCacheKey:
    """Return the key of a segment; this opens and changes nothing."""
    maximum = segment.maximum
    return SegmentCacheKey(
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


class ListOffsetsCache:
    """Results of the last query."""

    def __init__(self) -> None:
        self._key: tuple[Any, ...] = ()
        self._answers: Any = None

    def answers(self, log: UnifiedLog, targets: Sequence[int], also: Any, answer: Callable[[], Answers]) -> Answers:
        """Return the cached results if the query and all values on which they depend are the same, or new results.

        A query that has opened an index is never the same again: it has changed what the results depend on.

        Args:
            log: The log.
            targets: The targets.
            also: Further values on which the results depend.
            answer: A function that queries the log.

        Raises:
            KidxError, OSError: As ``answer``; then nothing is cached.
        """
        key = also, tuple(targets), self.cache_key(log)
        if key != self._key:
            self._key = ()
            self._answers = answer()
            self._key = key
        answers: Answers = self._answers
        return answers

    def cache_key(self, log: UnifiedLog) -> LogCacheKey:
        """Return the key of a log; this opens and changes nothing."""
        segments = tuple([segment_cache_key(segment) for segment in log.segments])
        return LogCacheKey(log.start_offset, log.search_start, log.end_offset, tuple(log.epochs.entries), segments)
