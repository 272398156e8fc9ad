"""How a segment refuses, beyond what indexes, batches and producers refuse themselves."""

from __future__ import annotations

from kidx.errors import KidxError


class SegmentOffsetOverflowError(KidxError, OverflowError):
    """An offset is not within 2**31 of the segment's base (``LogSegmentOffsetOverflowException``; SEG-2)."""

    kind = "offset_overflow"
