"""Segments of a log by their base offsets, and the files of removed and of overflowed segments (``LogSegments``)."""

from __future__ import annotations

from bisect import bisect_right, insort
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from kidx.discovery import DELETED, SWAP
from kidx.errors import IllegalStateError, InvalidArgumentError, KidxError
from kidx.segment.segment import SegmentOffsetOverflowError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from kidx.segment import LogSegment

CLEANED: Final = ".cleaned"
"""Suffix of the files of a segment while the cleaner writes them."""


class Segments:
    """Ordered map from base offset to segment; the last one is the active one."""

    def __init__(self) -> None:
        self._by_base: dict[int, LogSegment] = {}
        self._bases: list[int] = []  # the keys of _by_base, in ascending order
        self._ordered: list[LogSegment] | None = None  # the segments by base offset; None until they are iterated
        self._removed: list[LogSegment] = []  # detached segments, whose files delete_detached deletes
        self._replaced: list[LogSegment] = []  # the same for segments that a cleaned segment has replaced

    def __len__(self) -> int:
        return len(self._bases)

    def __iter__(self) -> Iterator[LogSegment]:
        if self._ordered is None:
            self._ordered = [self._by_base[base] for base in self._bases]
        return iter(self._ordered)

    def __contains__(self, base_offset: int) -> bool:
        return base_offset in self._by_base

    @property
    def first(self) -> LogSegment:
        """Segment with the smallest base offset."""
        return self._by_base[self._bases[0]]

    @property
    def active(self) -> LogSegment:
        """Segment that is appended to."""
        return self._by_base[self._bases[-1]]

    def add(self, segment: LogSegment) -> None:
        """Add a segment; it replaces a segment with the same base offset."""
        if segment.base_offset not in self._by_base:
            insort(self._bases, segment.base_offset)
        self._by_base[segment.base_offset] = segment
        self._ordered = None

    def higher(self, base_offset: int) -> LogSegment | None:
        """Return the first segment above a base offset, or None."""
        at = bisect_right(self._bases, base_offset)
        return self._by_base[self._bases[at]] if at < len(self._bases) else None

    def values_from(self, offset: int) -> list[LogSegment]:
        """Return the segment that contains ``offset``, and all after it."""
        at = max(0, bisect_right(self._bases, offset) - 1)
        return [self._by_base[base] for base in self._bases[at:]]

    def floor(self, offset: int) -> LogSegment | None:
        """Return the segment that contains ``offset``, or None if it is below all of them."""
        at = bisect_right(self._bases, offset)
        return self._by_base[self._bases[at - 1]] if at else None

    def values_between(self, start: int, end: int) -> list[LogSegment]:
        """Return the segments with offsets from ``start`` up to, but excluding, ``end``."""
        return [segment for segment in self.values_from(start) if segment.base_offset < end]

    @property
    def last_two_bases(self) -> list[int]:
        """Base offsets of the last two segments, fewer if the log has fewer."""
        return self._bases[-2:]

    def clear(self) -> None:
        """Remove all segments without touching their files."""
        self._by_base.clear()
        self._bases.clear()
        self._ordered = None

    def detach(self, segments: Iterable[LogSegment]) -> None:
        """Remove segments from the map and rename their files; :meth:`delete_detached` deletes the files.

        Raises:
            OSError: a file cannot be renamed.
        """
        removed = list(segments)
        for segment in removed:
            if self._by_base.get(segment.base_offset) is segment:
                del self._by_base[segment.base_offset]
                self._bases.remove(segment.base_offset)
        self._ordered = None
        for segment in removed:
            if not segment.has_suffix(DELETED):
                segment.change_file_suffixes("", DELETED)
        self._removed += removed

    def detach_replaced(self, old: LogSegment, new: LogSegment) -> None:
        """Rename the files of a segment whose records are in ``new``, which has been added.

        Raises:
            OSError: a file cannot be renamed.
        """
        if old.base_offset != new.base_offset:
            self.detach([old])
            return
        if not old.has_suffix(DELETED):
            old.change_file_suffixes("", DELETED)
        self._replaced.append(old)

    def delete_detached(self) -> list[LogSegment]:
        """Delete the files of detached segments, as Kafka does after ``file.delete.delay.ms``.

        Returns:
            The removed segments, without those that a segment of the same base offset has replaced.
        """
        removed, self._removed = self._removed, []
        replaced, self._replaced = self._replaced, []
        for segment in (*replaced, *removed):
            segment.delete_if_exists()
        return removed


class OverflowedSegmentError(SegmentOffsetOverflowError):
    """Segment whose last offset is out of range."""

    def __init__(self, segment: LogSegment, message: str) -> None:
        super().__init__(message)
        self.segment = segment


@contextmanager
def overflow_as_split_error(segment: LogSegment) -> Iterator[None]:
    """Convert an overflow error inside the block to the error of Kafka's split (``splitOverflowedSegment``).

    Raises:
        InvalidArgumentError: an offset is below the base and the last offset is in range, so Kafka does not split.
        OverflowedSegmentError: the last offset is out of range; Kafka splits such a segment.
    """
    try:
        yield
    except SegmentOffsetOverflowError as error:
        if segment.has_overflow:
            raise OverflowedSegmentError(segment, str(error)) from error
        message = "Split operation is only permitted for segments with overflow, and the problem path is"
        raise InvalidArgumentError(f"{message} {segment.log.path}") from error


def split_overflowed(
    segment: LogSegment, segments: Segments, open_cleaned: Callable[[int], LogSegment]
) -> list[LogSegment]:
    """Replace a segment by segments with the same batches and with offsets in range (``splitOverflowedSegment``).

    A segment that is not loaded yet is not removed: its files are overwritten, if its first batch has its base offset.

    Args:
        open_cleaned: function that creates a segment with a base offset, whose files have the suffix ``.cleaned``.

    Returns:
        The segments that replace it.

    Raises:
        IllegalStateError: a batch fits no segment.
        KidxError: the log ends with bytes that are no batch, or a batch cannot be read.
        OSError: a file cannot be written.
    """
    pieces: list[LogSegment] = []
    try:
        _copy(segment, open_cleaned, pieces)
    except BaseException:
        for piece in pieces:
            piece.close()
            piece.delete_if_exists()
        raise
    is_loaded = segment.base_offset in segments
    for piece in reversed(pieces):
        piece.change_file_suffixes(CLEANED, SWAP)
        segments.add(piece)
    if is_loaded:
        segments.detach_replaced(segment, pieces[0])
    else:
        segment.release_handles()
    for piece in pieces:
        piece.change_file_suffixes(SWAP, "")
    return pieces


def _copy(segment: LogSegment, open_cleaned: Callable[[int], LogSegment], pieces: list[LogSegment]) -> None:
    """Copy the batches of a segment to new ones, which are added to ``pieces``."""
    position = 0
    while position < segment.size:
        first = next(segment.batches(position), None)
        if first is None:
            raise KidxError(f"{segment.log.path} has no batch at {position}, so that it cannot be split", None)
        pieces.append(open_cleaned(first.base_offset))
        appended = pieces[-1].append_from_file(segment.log, position)
        if not appended:
            raise IllegalStateError(f"Failed to append records from position {position} in {segment.kafka_text()}")
        position += appended
    for piece in pieces:
        piece.on_become_inactive_segment()
        piece.flush()
        piece.set_last_modified(segment.last_modified)
