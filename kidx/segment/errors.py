"""Errors that a segment raises in addition to the errors of indexes, batches and producers."""

from __future__ import annotations

from kidx.errors import KidxError


class SegmentOffsetOverflowError(KidxError, OverflowError):
    """Offset that is not within 2**31 of the segment's base (``LogSegmentOffsetOverflowException``; SEG-2)."""

    kind = "offset_overflow"
