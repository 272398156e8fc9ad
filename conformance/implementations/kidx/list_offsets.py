"""Results of ListOffsets in the reference: for several dialects, and cached until a value on which they depend changes.

If one reference executes for several dialects, the log is shared, but results differ. The special targets that a
release has, and the meaning of the largest timestamp, affect results but no file. One log therefore computes the
results for all dialects, as long as a query opens no index that only some of them would open.

A log is queried for the same thirty targets after every step, and most steps change no result: a rejected append, a
moved high watermark, the clock. All values on which the results depend are read before each query, and compared with
the values before the last query. These include the bytes of the indexes, so that a change by another process is
noticed. The content of a log is represented by the number of writes to it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from conformance.operations import Outcome
from kidx.errors import KidxError
from kidx.log.lookup import MAX_TIMESTAMP

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from conformance.implementations.kidx.shared_dialect import SharedDialect
    from kidx.dialect import Dialect
    from kidx.index.lazy import LazyIndex
    from kidx.index.time import TimestampOffset
    from kidx.log import UnifiedLog
    from kidx.log.epochs import EpochEntry
    from kidx.segment import FileRecords, LogSegment

ResultT = TypeVar("ResultT")
Answers = dict[str, Outcome]
"""Outcomes of the releases that differ from the outcome of the newest release, by release."""


def results_per_dialect(
    log: UnifiedLog, dialect: SharedDialect, targets: Sequence[int], answer: Callable[[int], Any]
) -> tuple[tuple[Any, ...], Answers]:
    """Return the results of the newest dialect, and by release the outcomes that differ.

    Args:
        dialect: The shared dialect of the log; members that need a separate log are split off.
        answer: A function that queries the log.

    Raises:
        KidxError, OSError: ``answer`` raises it for all remaining members.
    """
    own: list[Any] = []
    different: dict[str, dict[int, Any]] = {}
    for number, target in enumerate(targets):
        if target < 0 and not _opens(log):
            mine, theirs = _special(log, dialect, target, answer)
            own.append(mine)
            for release, value in theirs.items():
                different.setdefault(release, {})[number] = value
        else:
            own.append(answer(target))
    there = {member.release for member in dialect.members}
    outcomes: dict[tuple[Any, ...], Outcome] = {}
    answers: Answers = {}
    for release, changed in different.items():
        values = tuple([changed.get(number, mine) for number, mine in enumerate(own)])
        if release in there:
            answers[release] = outcomes.setdefault(values, Outcome(None, values))
    return tuple(own), answers


def _special(
    log: UnifiedLog, dialect: SharedDialect, target: int, answer: Callable[[int], Any]
) -> tuple[Any, dict[str, Any]]:
    """Return the newest dialect's result for a special target, and by release the other members' results.

    If the query fails for one group of members, these members are split off.
    """
    (_, fields_of_newest), *others = _parts(dialect, target)
    theirs: dict[str, Any] = {}
    for members, changed in others:
        opened = _opened(log)
        try:
            with dialect.overriding(changed):
                value = answer(target)
        except (KidxError, OSError):
            dialect.leave(members)
            continue
        if _opened(log) != opened:
            raise AssertionError(f"target {target} has opened an index of {log}, which must not happen")
        theirs.update(dict.fromkeys((member.release for member in members), value))
    try:
        with dialect.overriding(fields_of_newest):
            return answer(target), theirs
    except (KidxError, OSError):
        for members, _ in others:
            dialect.leave(members)
        raise


def _parts(dialect: SharedDialect, target: int) -> list[tuple[list[Dialect], dict[str, Any]]]:
    """Return the members, grouped by their meaning of a target, with the differing fields; the newest group first."""
    parts: dict[Any, list[Dialect]] = {}
    for member in reversed(dialect.members):
        special = member.lowest_target <= target
        parts.setdefault((special, member.max_lookup if special and target == MAX_TIMESTAMP else ""), []).append(member)
    return [
        (members, {name: getattr(members[0], name) for name in ("lowest_target", "max_lookup")})
        for members in parts.values()
    ]


def _opens(log: UnifiedLog) -> bool:
    """Return True if a special target may open an index, or read a segment's largest timestamp for the first time."""
    segments = list(log.segments)
    if not all(segment.maximum.is_known for segment in segments):
        return True
    latest = max(segments, key=lambda segment: segment.maximum.timestamp)
    return not all(s.lazy_offset_index.is_loaded and s.lazy_time_index.is_loaded for s in (segments[0], latest))


def _opened(log: UnifiedLog) -> list[tuple[bool, ...]]:
    """Return everything that a query may change in a log."""
    return [(s.lazy_offset_index.is_loaded, s.lazy_time_index.is_loaded, s.maximum.is_known) for s in log.segments]


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

    def answers(self, log: UnifiedLog, targets: Sequence[int], also: Any, answer: Callable[[], ResultT]) -> ResultT:
        """Return the cached results if the query and all values on which they depend are the same, or new results.

        A query that has opened an index is never the same again: it has changed what the results depend on.

        Args:
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
        answers: ResultT = self._answers
        return answers

    def cache_key(self, log: UnifiedLog) -> LogCacheKey:
        """Return the key of a log; this opens and changes nothing."""
        segments = tuple([segment_cache_key(segment) for segment in log.segments])
        return LogCacheKey(log.start_offset, log.search_start, log.end_offset, tuple(log.epochs.entries), segments)
