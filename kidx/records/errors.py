"""Errors of reading records: one class for each exception that Kafka distinguishes.

Kafka lets some plain Java exceptions escape from corrupt records. They keep their kidx name here too:
``IllegalArgumentException`` is :class:`kidx.errors.InvalidArgumentError` (an unknown codec, a length varint that does
not end), ``IndexOutOfBoundsException`` is :class:`kidx.errors.OutOfBoundsError` (a field past the end of its batch).
"""

from __future__ import annotations

from kidx.errors import InvalidArgumentError, KidxError, OutOfBoundsError

__all__ = [
    "CorruptRecordError",
    "InvalidArgumentError",
    "InvalidRecordError",
    "LargeBatchError",
    "OutOfBoundsError",
    "RecordError",
    "RecordSizeError",
    "RecordStreamError",
    "TruncatedFileError",
    "TruncatedHeaderError",
    "TruncatedRecordError",
    "TruncatedStreamError",
    "UnsupportedCodecError",
]


class RecordError(KidxError):
    """Base class of errors that only record batches raise."""

    kind = "record"


class CorruptRecordError(RecordError, ValueError):
    """Corrupt size, magic or checksum of a batch (``o.a.k.common.errors.CorruptRecordException``; RB-4)."""

    kind = "corrupt_record"


class InvalidRecordError(RecordError, ValueError):
    """Malformed record inside a batch (``o.a.k.common.InvalidRecordException``)."""

    kind = "invalid_record"


class TruncatedRecordError(InvalidRecordError):
    """Record of an uncompressed batch that claims more bytes than remain in the batch.

    Up to 3.0.0 Kafka read such a record as null, and failed when it used the record. If bytes remained after the last
    record, Kafka rejected these bytes first.
    """

    was_null = False
    """True if Kafka up to 3.0.0 read the record as null."""


class TruncatedHeaderError(InvalidRecordError):
    """Record header whose key ends after the batch; before 2.7 an ``IndexOutOfBoundsException``."""


class RecordSizeError(InvalidRecordError):
    """Size of a compressed record that is negative or does not end.

    Before 3.6 an ``IllegalArgumentException`` escaped, whose message is ``escaped``.
    """

    def __init__(self, message: str, escaped: str) -> None:
        super().__init__(message)
        self.escaped = escaped


class UnsupportedCodecError(RecordError, InvalidArgumentError):
    """Codec in the attributes that Kafka does not have (``IllegalArgumentException`` of ``CompressionType.forId``)."""

    kind = "invalid_argument"


class RecordStreamError(RecordError, OSError):
    """Bytes that could not be read or decompressed (``KafkaException`` around an ``IOException``)."""

    kind = "io"


class StreamUnderflowError(RecordStreamError):
    """Lz4 frame that ends before the checksum that it claims to have (``BufferUnderflowException``; LG-75)."""

    kind = "buffer_underflow"


class TruncatedFileError(RecordStreamError):
    """File that became shorter while it was read, because its broker truncates it."""


class LargeBatchError(RecordError):
    """Batch whose records do not fit in memory together; iteration yields them one at a time."""


class TruncatedStreamError(RecordStreamError):
    """Compressed stream that ends before its codec states so; only gzip signals it, with an ``EOFException``."""

    in_record = False
    """True if the stream ends inside a record of a v2 batch, which was an ``InvalidRecordException`` before 3.6."""
