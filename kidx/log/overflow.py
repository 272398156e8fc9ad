"""Segments that Kafka would split because an offset in them is out of the range of their base offset."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from kidx.errors import InvalidArgumentError
from kidx.segment.errors import SegmentOffsetOverflowError

if TYPE_CHECKING:
    from kidx.segment import LogSegment


@contextmanager
def overflow_as_split_error(segment: LogSegment) -> Iterator[None]:
    """Convert an overflow of the segment inside the block to the error of splitting it (``splitOverflowedSegment``).

    Raises:
        InvalidArgumentError: the offset is below the base, and the last one is in range: nothing can be split.
        SegmentOffsetOverflowError: the last offset is out of range; Kafka splits such a segment.
    """
    try:
        yield
    except SegmentOffsetOverflowError as error:
        if segment.has_overflow:
            raise
        message = "Split operation is only permitted for segments with overflow, and the problem path is"
        raise InvalidArgumentError(f"{message} {segment.log.path}") from error
