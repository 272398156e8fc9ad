"""Segments with an offset that is too far from the base offset, which loading splits."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from kidx.errors import IllegalStateError, InvalidArgumentError, KidxError
from kidx.log.segments import CLEANED, SWAP
from kidx.segment.errors import SegmentOffsetOverflowError

if TYPE_CHECKING:
    from kidx.log.segments import Segments
    from kidx.segment import LogSegment


class OverflowedSegmentError(SegmentOffsetOverflowError):
    """Segment whose last offset is out of range.

    Attributes:
        segment: the segment.
    """

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
        segment: the segment.
        segments: the loaded segments.
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
