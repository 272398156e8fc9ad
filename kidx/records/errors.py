"""How reading records can fail: one class for each exception that Kafka tells apart.

Kafka lets some plain Java exceptions escape from corrupt records. They keep their kidx name here too:
``IllegalArgumentException`` is :class:`kidx.errors.InvalidArgumentError` (an unknown codec, a length varint without an
end), ``IndexOutOfBoundsException`` is :class:`kidx.errors.OutOfBoundsError` (a field past the end of its batch).
"""

from __future__ import annotations

from kidx.errors import InvalidArgumentError, KidxError, OutOfBoundsError

__all__ = [
    "CorruptRecordError",
    "FileCutError",
    "HeaderCutError",
    "InvalidArgumentError",
    "InvalidRecordError",
    "LargeBatchError",
    "OutOfBoundsError",
    "RecordCutError",
    "RecordError",
    "RecordSizeError",
    "RecordStreamError",
    "StreamCutError",
    "UnsupportedCodecError",
]


class RecordError(KidxError):
    """Base of what only record batches raise."""

    kind = "record"


class CorruptRecordError(RecordError, ValueError):
    """The batch is damaged: size, magic or checksum (``o.a.k.common.errors.CorruptRecordException``; RB-4)."""

    kind = "corrupt_record"


class InvalidRecordError(RecordError, ValueError):
    """A record inside a batch makes no sense (``o.a.k.common.InvalidRecordException``)."""

    kind = "invalid_record"


class RecordCutError(InvalidRecordError):
    """A record of an uncompressed batch claims more bytes than the batch has left.

    Before 3.0 Kafka took such a record for null, which went wrong where it was used, unless it was the batch's last one
    and bytes were left: those were noticed first.
    """

    was_null = False
    """Whether it was null before 3.0."""


class HeaderCutError(InvalidRecordError):
    """The key of a record's header ends behind the batch; before 2.7 an ``IndexOutOfBoundsException``."""


class RecordSizeError(InvalidRecordError):
    """The size of a compressed record is negative or has no end.

    Before 3.6 an ``IllegalArgumentException`` escaped, whose text is ``escaped``.
    """

    def __init__(self, message: str, escaped: str) -> None:
        super().__init__(message)
        self.escaped = escaped


class UnsupportedCodecError(RecordError, InvalidArgumentError):
    """Attributes name a codec that Kafka does not have (``IllegalArgumentException`` of ``CompressionType.forId``)."""

    kind = "invalid_argument"


class RecordStreamError(RecordError, OSError):
    """The bytes could not be read or decompressed (``KafkaException`` around an ``IOException``)."""

    kind = "io"


class StreamUnderflowError(RecordStreamError):
    """A frame of lz4 ends before the checksum that it claims to have (``BufferUnderflowException``; LG-75)."""

    kind = "buffer_underflow"


class FileCutError(RecordStreamError):
    """A file became shorter while it was read: its broker truncates it."""


class LargeBatchError(RecordError):
    """A batch whose records are too many bytes to be held at once; iterating over it gives one after another."""


class StreamCutError(RecordStreamError):
    """A compressed stream ends before its codec says so; only gzip's tells, with an ``EOFException``."""

    in_record = False
    """Whether it ends inside a record of a v2 batch, which was an ``InvalidRecordException`` before 3.6."""
