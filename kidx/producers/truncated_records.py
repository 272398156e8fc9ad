"""Corrupt records, with the errors that each release raises for them (``DefaultRecord.readFrom``)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, TypeVar

from kidx.errors import InvalidArgumentError, KidxError, OutOfBoundsError
from kidx.producers.errors import MissingBytesError
from kidx.records import (
    InvalidRecordError,
    RecordError,
    RecordSizeError,
    TruncatedHeaderError,
    TruncatedRecordError,
    TruncatedStreamError,
)
from kidx.records.record import MAX_RECORD_BODY_SIZE

if TYPE_CHECKING:
    from kidx.dialect import Dialect

Item = TypeVar("Item")


def largest_record(configured: int, dialect: Dialect) -> int:
    """Return the maximum size of a decompressed record: ``max.decompressed.message.bytes``, which only 4.4 applies."""
    # A behaviour is only queried if it matters: a lockstep then runs one reference for releases that do not differ.
    if configured < MAX_RECORD_BODY_SIZE and dialect.limits_decompressed_size:
        return configured
    return MAX_RECORD_BODY_SIZE


def records_of(records: Iterable[Item], dialect: Dialect) -> Iterator[Item]:
    """Yield the records of a batch, or values read from them.

    Raises:
        InvalidArgumentError: the size of a compressed record is negative or does not end, before 3.6 (SEG-48).
        InvalidRecordError: a compressed stream ends inside a record, before 3.6 (SEG-49).
        OutOfBoundsError: the key of a header ends past the batch, before 2.7 (SEG-47).
        MissingBytesError: a record claims more bytes than are present, and was null up to 3.0.0 (SEG-46).
        KidxError: any other error of reading records.
    """
    try:
        yield from records
    except RecordError as error:
        raised = _as_raised(error, dialect)
        if raised is error:
            raise
        raise raised from error


def _as_raised(error: RecordError, dialect: Dialect) -> KidxError:
    if isinstance(error, TruncatedHeaderError) and dialect.truncated_headers_are_out_of_bounds:
        return OutOfBoundsError("a header whose key is longer than the rest of its batch", None)
    if isinstance(error, TruncatedRecordError) and error.was_null and dialect.truncated_records_are_null:
        return MissingBytesError("a record that is longer than the rest of its batch", None)
    if isinstance(error, RecordSizeError) and dialect.leaks_illegal_argument_for_size:
        return InvalidArgumentError(error.escaped)
    if isinstance(error, TruncatedStreamError) and error.in_record and dialect.truncated_streams_are_invalid:
        return InvalidRecordError("Incorrect declared batch size, premature EOF reached")
    return error
