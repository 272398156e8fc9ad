"""Damaged records as each release refuses them (``DefaultRecord.readFrom``)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, TypeVar

from kidx.errors import InvalidArgumentError, KidxError, OutOfBoundsError
from kidx.producers.errors import MissingBytesError
from kidx.records import (
    HeaderCutError,
    InvalidRecordError,
    RecordCutError,
    RecordError,
    RecordSizeError,
    StreamCutError,
)
from kidx.records.record import MAX_RECORD_BODY_SIZE

if TYPE_CHECKING:
    from kidx.dialect import Dialect

Item = TypeVar("Item")


def largest_record(configured: int, dialect: Dialect) -> int:
    """Bytes that a decompressed record may have: ``max.decompressed.message.bytes``, which only 4.4 heeds."""
    # A dialect that is not asked tells no releases apart.
    if configured < MAX_RECORD_BODY_SIZE and dialect.decompressed_records_are_limited:
        return configured
    return MAX_RECORD_BODY_SIZE


def records_of(records: Iterable[Item], dialect: Dialect) -> Iterator[Item]:
    """The records of a batch, or what is read of them.

    Raises:
        InvalidArgumentError: the size of a compressed one is negative or has no end, before 3.6 (SEG-48).
        InvalidRecordError: a compressed stream ends inside one, before 3.6 (SEG-49).
        OutOfBoundsError: the key of a header ends behind the batch, before 2.7 (SEG-47).
        MissingBytesError: one claims more bytes than there are, and was null before 3.0 (SEG-46).
        KidxError: as reading records.
    """
    try:
        yield from records
    except RecordError as error:
        told = _as_told(error, dialect)
        if told is error:
            raise
        raise told from error


def _as_told(error: RecordError, dialect: Dialect) -> KidxError:
    if isinstance(error, HeaderCutError) and dialect.cut_headers_are_out_of_bounds:
        return OutOfBoundsError("a header whose key is longer than the rest of its batch", None)
    if isinstance(error, RecordCutError) and error.was_null and dialect.cut_records_are_null:
        return MissingBytesError("a record that is longer than the rest of its batch", None)
    if isinstance(error, RecordSizeError) and dialect.compressed_sizes_escape:
        return InvalidArgumentError(error.escaped)
    if isinstance(error, StreamCutError) and error.in_record and dialect.cut_streams_are_invalid:
        return InvalidRecordError("Incorrect declared batch size, premature EOF reached")
    return error
