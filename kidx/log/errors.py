"""How a log refuses, beyond what segments, indexes and batches refuse themselves."""

from __future__ import annotations

from kidx.errors import KidxError
from kidx.records import InvalidRecordError


class OffsetOutOfRangeError(KidxError, ValueError):
    """The log start cannot move beyond the high watermark (``o.a.k.common.errors.OffsetOutOfRangeException``)."""

    kind = "out_of_range"


class OffsetsOutOfOrderError(KidxError, ValueError):
    """Batches from a leader do not follow one another (``OffsetsOutOfOrderException``)."""

    kind = "out_of_order"


class UnexpectedAppendOffsetError(KidxError, ValueError):
    """Batches from a leader begin before the log's end (``UnexpectedAppendOffsetException``)."""

    kind = "unexpected_offset"


class RecordTooLargeError(KidxError, ValueError):
    """A batch exceeds ``max.message.bytes``, or a call ``segment.bytes`` (``Record(Batch)TooLargeException``)."""

    kind = "too_large"


class InvalidTimestampError(KidxError, ValueError):
    """A timestamp is too far from the clock, or claims to be a broker's (``InvalidTimestampException``).

    Attributes:
        records: the numbers of all refused records in their batch, whatever they are refused for.
    """

    kind = "invalid_timestamp"
    records: tuple[int, ...] = ()


class RefusedRecordsError(InvalidRecordError):
    """Records of a batch are not what the topic takes (``RecordValidationException``).

    Attributes:
        records: their numbers in the batch, counted from 0.
    """

    kind = "refused_records"
    records: tuple[int, ...] = ()


class SkippedRecordError(KidxError, RuntimeError):
    """A batch has to be built anew, but its keys and values were passed over (``UnsupportedOperationException``)."""

    kind = "unsupported_operation"


class LogError(KidxError, RuntimeError):
    """Two segments of one name, or one before another (``o.a.k.common.KafkaException``)."""

    kind = "kafka"


class OffsetNotAvailableError(KidxError, RuntimeError):
    """The leader does not know yet how far its followers are (``OffsetNotAvailableException``; LO-12, LO-13)."""

    kind = "offset_not_available"


class UnsupportedTargetError(KidxError, ValueError):
    """The broker has no such special timestamp (``UNSUPPORTED_VERSION``; LO-15)."""

    kind = "unsupported_version"
