"""Checks of records by a leader (``validateRecord``), and the errors of rejected records."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kidx.java_numbers import LONG_MAX, LONG_MIN, to_long
from kidx.log.errors import InvalidTimestampError, RecordValidationError
from kidx.log.validation.partial_record import PartialRecord
from kidx.records import CorruptRecordError, LegacyRecord, Record, TimestampType
from kidx.records.record import NO_TIMESTAMP

if TYPE_CHECKING:
    from kidx.dialect import Dialect
    from kidx.log.validation.context import ValidationContext
    from kidx.records import RecordBatch

ReadRecord = Record | PartialRecord
"""Whole record, or a record whose key and value were skipped."""


class RecordErrors:
    """Errors of the rejected records of one batch.

    Args:
        dialect: rules of a release, which checks all records before it rejects the batch, or stops at the first error.
    """

    def __init__(self, dialect: Dialect) -> None:
        self._dialect = dialect
        self._errors: list[tuple[int, str, bool]] = []  # index of the record, reason, True if it is the timestamp

    def __bool__(self) -> bool:
        return bool(self._errors)

    def add(self, number: int, message: str, *, of_time: bool = False) -> None:
        """Add the error of a record.

        Args:
            number: index of the record in its batch.
            message: reason of the rejection.
            of_time: True if the reason is the timestamp. The client gets this error if it applies to any record.

        Raises:
            InvalidTimestampError, RecordValidationError: as :meth:`ensure_none`, if the first error ends the check.
        """
        self._errors.append((number, message, of_time))
        if not self._dialect.record_errors_are_collected:
            self.ensure_none()

    def ensure_none(self) -> None:
        """Reject the batch if any of its records is rejected.

        Raises:
            InvalidTimestampError: a record is rejected for its timestamp.
            RecordValidationError: records are rejected, and all of them for other reasons.
        """
        if not self._errors:
            return
        message = "; ".join(f"record {number}: {reason}" for number, reason, _ in self._errors[:3])
        of_time = any(of_time for _, _, of_time in self._errors)
        error = (InvalidTimestampError if of_time else RecordValidationError)(
            f"{len(self._errors)} rejected: {message}"
        )
        error.records = tuple(number for number, _, _ in self._errors)
        raise error


def accepts(
    batch: RecordBatch, record: ReadRecord, number: int, context: ValidationContext, errors: RecordErrors
) -> bool:
    """Return True if a record of a batch may be appended; otherwise add its error to ``errors``.

    ``number`` is the index of the record in the batch.

    Raises:
        CorruptRecordError: an inner message has a wrong checksum.
        InvalidTimestampError, RecordValidationError: as :meth:`RecordErrors.add`.
    """
    if isinstance(record, LegacyRecord):
        if record.message.magic != batch.magic:
            errors.add(
                number, f"{describe_record(record)}'s magic does not match the magic of its batch, {batch.magic}"
            )
            return False
        if batch.is_compressed and not record.message.is_valid:
            raise CorruptRecordError(f"Record is corrupt (stored crc = {record.message.crc})")
    if context.config.compacts and not has_key(record):
        errors.add(number, "Compacted topic cannot accept message without key")
        return False
    problem = _timestamp_problem(batch, record, context)
    if problem is not None:
        errors.add(number, problem, of_time=True)
    return problem is None


def describe_record(record: ReadRecord) -> str:
    """Return a description of a record; for a v0 or v1 message it includes the sizes of key and value.

    Raises:
        InvalidArgumentError, OutOfBoundsError: codec or sizes of an old message are corrupt.
    """
    if isinstance(record, LegacyRecord):
        message = record.message
        sizes = f"{len(message.key or b'')} and {len(message.value or b'')} bytes"
        return f"Record {record.offset} ({message.codec.label}, {sizes})"
    return f"Record {record.offset}"


def has_key(record: ReadRecord) -> bool:
    """Return True if the record has a key."""
    if isinstance(record, PartialRecord):
        return record.has_key
    return record.message.has_key if isinstance(record, LegacyRecord) else record.key is not None


def _timestamp_problem(batch: RecordBatch, record: ReadRecord, context: ValidationContext) -> str | None:
    """Return the problem of a timestamp, or None (``validateTimestamp``)."""
    is_checked = not context.config.log_append_time and record.timestamp != NO_TIMESTAMP
    if is_checked and is_too_far(record.timestamp, context):
        return f"Timestamp {record.timestamp} of message with offset {record.offset} is out of range"
    if batch.timestamp_type is not TimestampType.LOG_APPEND_TIME or (
        is_checked and context.dialect.accepts_log_append_time_from_clients
    ):
        return None
    return f"{describe_record(record)}: Producer should not set timestamp type to LogAppendTime"


def is_too_far(timestamp: int, context: ValidationContext) -> bool:
    """Return True if a timestamp is further from the clock than the topic allows, computed with Java longs."""
    before, after = context.limits
    if before == after == LONG_MAX:
        return False  # under the rules of any dialect
    if not context.dialect.timestamps_have_two_limits:
        distance = to_long(timestamp - context.now)
        return (distance if distance == LONG_MIN else abs(distance)) > before
    age = to_long(context.now - timestamp)
    return age > before or to_long(-age) > after
