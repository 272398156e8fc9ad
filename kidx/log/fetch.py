"""Reads of a log as fetches make them: up to a limit, with places in files and aborted transactions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, NamedTuple, Protocol

from kidx.index.offset import OffsetPosition
from kidx.log.errors import LogError, OffsetOutOfRangeError

if TYPE_CHECKING:
    from kidx.dialect import Dialect
    from kidx.index.transaction import AbortedTxn
    from kidx.log.segments import Segments
    from kidx.segment import LogSegment

Isolation = Literal["log_end", "high_watermark", "txn_committed"]
"""The limit of a fetch: the end of the log for a follower; high watermark or last stable offset for a consumer."""

Place = tuple[int, int]
"""Base offset of a segment, and a position in its ``.log`` file."""


class OffsetMetadata(NamedTuple):
    """Offset with its place in the files of a log (``LogOffsetMetadata``).

    Attributes:
        offset: the offset.
        segment: base offset of the segment; -1 if the place is unknown.
        position: position in the ``.log`` file of the segment; -1 if the place is unknown.
    """

    offset: int
    segment: int = -1
    position: int = -1

    @property
    def place(self) -> Place | None:
        """The place, or None."""
        return None if (self.segment, self.position) == (-1, -1) else (self.segment, self.position)

    def is_on_older_segment(self, other: OffsetMetadata) -> bool:
        """Return True if both places are known, and the segment of the other offset is newer."""
        return None not in (self.place, other.place) and self.segment < other.segment

    def bytes_from(self, other: OffsetMetadata) -> int:
        """Return the number of bytes from another offset of the same segment to this one (``positionDiff``).

        Raises:
            LogError: a place is unknown, or they are in different segments.
        """
        if None in (self.place, other.place) or self.segment != other.segment:
            raise LogError(f"{self} and {other} are not known to be on the same segment")
        return self.position - other.position


class Fetched(NamedTuple):
    """Result of a read (``FetchDataInfo``).

    Attributes:
        start: the offset of the read and its place; from 4.0 on, the base offset of the first batch.
        size: number of bytes.
        is_incomplete: True if the first batch is larger than the requested size.
        aborted: aborted transactions whose records a consumer has to skip; None if they were not requested, or if the
            read reached the log end without finding a batch.
    """

    start: OffsetMetadata
    size: int = 0
    is_incomplete: bool = False
    aborted: tuple[AbortedTxn, ...] | None = None


class FetchedLog(Protocol):
    """Operations of a log that a read needs; :class:`~kidx.log.UnifiedLog` describes them."""

    dialect: Dialect
    segments: Segments
    start_offset: int

    @property
    def end_metadata(self) -> OffsetMetadata:
        """The log end offset and its place."""

    def watermark_metadata(self) -> OffsetMetadata:
        """Return the high watermark and its place."""

    def last_stable_metadata(self) -> OffsetMetadata:
        """Return the last stable offset and its place."""


def fetch(log: FetchedLog, offset: int, max_bytes: int, isolation: Isolation, *, whole_batch: bool) -> Fetched:
    """Return what a fetch gets; see :meth:`kidx.log.UnifiedLog.fetch`."""
    lists_aborted = isolation == "txn_committed"
    if log.dialect.reads_end_below_start and offset == log.end_metadata.offset:
        return _nothing(log.end_metadata, lists_aborted=lists_aborted)
    if offset < log.start_offset:
        raise OffsetOutOfRangeError(f"offset {offset} is below the log start offset {log.start_offset}")
    if log.dialect.fetch_checks_end_first:
        _check_end(log, offset)
    if isolation == "log_end":
        limit = log.end_metadata
    else:
        limit = log.watermark_metadata() if isolation == "high_watermark" else log.last_stable_metadata()
    return read(log, offset, max_bytes, limit, whole_batch=whole_batch, lists_aborted=lists_aborted)


def read(
    log: FetchedLog,
    offset: int,
    max_bytes: int,
    limit: OffsetMetadata,
    *,
    whole_batch: bool = False,
    lists_aborted: bool = False,
) -> Fetched:
    """Return the first batches from an offset on, up to a limit (``LocalLog.read``).

    Raises:
        OffsetOutOfRangeError: the log has no segment for the offset, or ends before it.
        InvalidArgumentError: ``max_bytes`` is negative, or the place of the limit is before the batch.
        KidxError, OSError: an index or a log cannot be read.
    """
    _check_end(log, offset)
    if offset == limit.offset and (offset == log.end_metadata.offset or not log.dialect.reads_end_below_start):
        return _nothing(limit, lists_aborted=lists_aborted)
    if offset > limit.offset:
        return _nothing(read(log, offset, 1, log.end_metadata).start, lists_aborted=lists_aborted)
    for segment in log.segments.values_from(offset):
        stop = _stop(log, segment, limit)
        if stop is None:
            data = segment.read(offset, min(max_bytes, 0))
        else:
            data = segment.read(offset, max_bytes, stop, whole_batch)
        if data is not None:
            start = OffsetMetadata(data.message_offset, segment.base_offset, data.position)
            aborted = _aborted(log, segment, offset, start, data.size) if lists_aborted else None
            return Fetched(start, data.size, data.first_entry_incomplete, aborted)
    return Fetched(log.end_metadata)


def _check_end(log: FetchedLog, offset: int) -> None:
    end = log.end_metadata.offset
    if offset > end or log.segments.floor(offset) is None:
        raise OffsetOutOfRangeError(f"offset {offset} is not in {log.segments.first.base_offset}..{end}")


def _nothing(at: OffsetMetadata, *, lists_aborted: bool) -> Fetched:
    return Fetched(at, aborted=() if lists_aborted else None)


def _stop(log: FetchedLog, segment: LogSegment, limit: OffsetMetadata) -> int | None:
    """Return the position at which a read of a segment stops; None if it returns nothing (LG-101)."""
    if limit.place is not None and segment.base_offset == limit.segment:
        return limit.position
    if segment.base_offset > limit.segment and log.dialect.fetch_ends_with_limits_segment:
        return None
    return segment.size


def _aborted(
    log: FetchedLog, segment: LogSegment, offset: int, start: OffsetMetadata, size: int
) -> tuple[AbortedTxn, ...]:
    """Return the aborted transactions of a read, also those whose markers are in later segments (LG-102)."""
    upper = segment.fetch_upper_bound_offset(OffsetPosition(start.offset, start.position), size)
    if upper is None:
        following = log.segments.higher(segment.base_offset)
        upper = log.end_metadata.offset if following is None else following.base_offset
    found: list[AbortedTxn] = []
    for each in log.segments.values_from(segment.base_offset):
        result = each.collect_aborted_txns(offset, upper)
        found += result.aborted_transactions
        if result.is_complete:
            break
    return tuple(found)
