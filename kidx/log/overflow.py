"""Error for a segment that Kafka would split because one of its offsets is too far from the base offset."""

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
    """Convert an overflow error inside the block to the error of Kafka's split (``splitOverflowedSegment``).

    Raises:
        InvalidArgumentError: an offset is below the base and the last offset is in range, so Kafka does not split.
        SegmentOffsetOverflowError: the last offset is out of range; Kafka splits such a segment.
    """
    try:
        yield
    except SegmentOffsetOverflowError as error:
        if segment.has_overflow:
            raise
        message = "Split operation is only permitted for segments with overflow, and the problem path is"
        raise InvalidArgumentError(f"{message} {segment.log.path}") from error
