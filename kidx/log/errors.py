"""Errors that a log raises in addition to the errors of segments, indexes and batches."""

from __future__ import annotations

from kidx.errors import KidxError
from kidx.records import InvalidRecordError


class OffsetOutOfRangeError(KidxError, ValueError):
    """Log start beyond the high watermark (``o.a.k.common.errors.OffsetOutOfRangeException``)."""

    kind = "out_of_range"


class OffsetsOutOfOrderError(KidxError, ValueError):
    """Batches from a leader that do not follow one another (``OffsetsOutOfOrderException``)."""

    kind = "out_of_order"


class UnexpectedAppendOffsetError(KidxError, ValueError):
    """Batches from a leader that begin below the log end (``UnexpectedAppendOffsetException``)."""

    kind = "unexpected_offset"


class RecordTooLargeError(KidxError, ValueError):
    """Batch above ``max.message.bytes``, or call above ``segment.bytes`` (``Record(Batch)TooLargeException``)."""

    kind = "too_large"


class InvalidTimestampError(KidxError, ValueError):
    """Timestamp that is too far from the clock, or claims to be a broker's (``InvalidTimestampException``).

    Attributes:
        records: the numbers of all rejected records in their batch, whatever the reason.
    """

    kind = "invalid_timestamp"
    records: tuple[int, ...] = ()


class RecordValidationError(InvalidRecordError):
    """Records of a batch that do not satisfy the topic (``RecordValidationException``).

    Attributes:
        records: the numbers of the rejected records in the batch, counted from 0.
    """

    kind = "refused_records"
    records: tuple[int, ...] = ()


class CleaningAbortedError(KidxError, RuntimeError):
    """Round of compaction that ended before its group was replaced (``LogCleaningAbortedException``)."""

    kind = "cleaning_aborted"


class SkippedRecordError(KidxError, RuntimeError):
    """Batch that must be rebuilt, although its keys and values were skipped (``UnsupportedOperationException``)."""

    kind = "unsupported_operation"


class LogError(KidxError, RuntimeError):
    """New segment whose base offset is in use, or below the active segment (``o.a.k.common.KafkaException``)."""

    kind = "kafka"


class FailedLogError(OSError):
    """Log whose files were closed because its disk has failed (``KafkaStorageException``)."""


class OffsetNotAvailableError(KidxError, RuntimeError):
    """Leader whose high watermark is still below the start of its epoch (``OffsetNotAvailableException``; LO-12)."""

    kind = "offset_not_available"


class UnsupportedTargetError(KidxError, ValueError):
    """Special timestamp that the broker does not support (``UNSUPPORTED_VERSION``; LO-15)."""

    kind = "unsupported_version"
