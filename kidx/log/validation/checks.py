"""Checks of batches and records by a leader (``analyzeAndValidateRecords``, ``validateBatch``, ``validateRecord``)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from kidx.java_values import INT_MAX, LONG_MAX, LONG_MIN, to_long
from kidx.log.errors import InvalidTimestampError, RecordTooLargeError, RecordValidationError
from kidx.log.validation.partial_record import PartialRecord
from kidx.producers.append_info import largest_record
from kidx.records import (
    Codec,
    CorruptRecordError,
    InvalidRecordError,
    LegacyRecord,
    Record,
    RecordBatch,
    TimestampType,
    iter_memory_batches,
)
from kidx.records.record import NO_TIMESTAMP

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from kidx.dialect import Decompressor, Dialect
    from kidx.log.config import LogConfig
    from kidx.records import Buffer

ReadRecord = Record | PartialRecord
"""Whole record, or a record whose key and value were skipped."""


@dataclass(frozen=True, slots=True)
class ValidationContext:
    """Topic, clock, and log end of a validation.

    Attributes:
        dialect: rules of a release.
        config: settings of the topic.
        first_offset: offset of the first record.
        now: the clock in milliseconds.
        from_client: True if a producer sent the batches, False for a transaction coordinator.
        limits: milliseconds by which a timestamp may be older, and newer, than the clock.
    """

    dialect: Dialect
    config: LogConfig
    first_offset: int
    leader_epoch: int
    now: int
    from_client: bool = True
    limits: tuple[int, int] = field(init=False, default=(LONG_MAX, LONG_MAX))

    def __post_init__(self) -> None:
        if not self.config.takes_any_timestamp:  # otherwise the dialect does not matter
            object.__setattr__(self, "limits", self.config.timestamp_limits(self.dialect))

    @property
    def log_append_time(self) -> int | None:
        """Timestamp of all records if the topic uses LogAppendTime, otherwise None."""
        return self.now if self.config.log_append_time else None

    @property
    def max_record_body_size(self) -> int:
        """Maximum size in bytes of a compressed record."""
        return largest_record(self.config.max_record_body_size, self.dialect)

    def target_of(self, source: Codec) -> Codec:
        """Return the codec to which batches with a codec are to be compressed."""
        return source if self.config.compression is None else self.config.compression


def checked_batches(
    records: Buffer,
    name: str,
    max_message_bytes: int,
    *,
    from_client: bool = False,
    highest_epoch: int = INT_MAX,
    skips_newer: Callable[[], bool] = lambda: True,
    checks_size: Callable[[], bool] = lambda: True,
    decompressor: Decompressor | None = None,
) -> list[RecordBatch]:
    """Return the batches of an append that passed the checks, up to the first batch of a newer leader epoch.

    Args:
        records: the bytes of the append; a truncated last batch is ignored.
        name: name of the log's directory.
        max_message_bytes: maximum size of a batch, set by the topic.
        from_client: True if a producer sent the batches, which must begin at offset 0 then.
        highest_epoch: highest leader epoch of accepted batches.
        skips_newer: function that returns True if batches of a newer epoch are skipped; called if one exists.
        checks_size: function that returns True if a batch can be rejected for its size; called if one is too large.
        decompressor: codec libraries that read the records later on; kidx's libraries by default.

    Raises:
        InvalidRecordError: a producer's batch has another first offset.
        RecordTooLargeError: a batch is larger than the topic allows.
        CorruptRecordError: a checksum, a length or a magic is wrong.
        InvalidArgumentError, OutOfBoundsError: the codec is unknown; a batch ends within its header.
    """
    batches: list[RecordBatch] = []
    for batch in iter_memory_batches(records, decompressor=decompressor):
        if from_client and batch.magic >= 2 and batch.base_offset != 0:
            raise InvalidRecordError(
                f"The baseOffset of the record batch in the append to {name} should be 0, but it is {batch.base_offset}"
            )
        if batch.partition_leader_epoch > highest_epoch and skips_newer():
            break
        _ = batch.last_offset  # raises for a batch that is shorter than its header
        if batch.size_in_bytes > max_message_bytes and checks_size():
            ensure_allowed_size((batch,), max_message_bytes)
        if not batch.is_valid:
            raise CorruptRecordError(f"Record is corrupt in topic partition {name}")
        _ = batch.codec
        batches.append(batch)
    return batches


def ensure_allowed_size(batches: Iterable[RecordBatch], max_message_bytes: int) -> None:
    """Check that no batch is larger than the topic allows; batches that a leader has built are checked again.

    Raises:
        RecordTooLargeError: a batch is larger.
    """
    for batch in batches:
        if batch.size_in_bytes > max_message_bytes:
            raise RecordTooLargeError(
                f"a batch of {batch.size_in_bytes} bytes exceeds the maximum of {max_message_bytes}"
            )


def ensure_single(batches: Sequence[RecordBatch], source: Codec) -> None:
    """Check that several batches are only sent as uncompressed messages of the old formats.

    Raises:
        InvalidRecordError: there are several batches, and the first is of v2 or any is compressed.
    """
    if len(batches) > 1 and (batches[0].magic >= 2 or source is not Codec.NONE):
        raise InvalidRecordError("Compressed outer record has more than one batch")


def check_batch(batch: RecordBatch, first: RecordBatch, context: ValidationContext) -> None:
    """Check that a header does not contradict itself.

    Raises:
        InvalidRecordError: the batch has another magic than the first batch. Or a batch of a client has offsets that
            do not match its number of records, control records, or a producer without a sequence number.
    """
    if batch.magic != first.magic:
        raise InvalidRecordError(f"Batch magic {batch.magic} is not the same as the first batch's {first.magic}")
    if not context.from_client or batch.magic < 2:
        return
    count = batch.count or 0
    from_offsets = batch.last_offset - batch.base_offset + 1
    if from_offsets <= 0:
        raise InvalidRecordError(f"Batch has an invalid offset range: [{batch.base_offset}, {batch.last_offset}]")
    if count <= 0:
        raise InvalidRecordError(f"Invalid reported count for record batch: {count}")
    if from_offsets != count:
        raise InvalidRecordError(f"Inconsistent batch: {from_offsets} offsets and {count} records")
    if batch.is_control:
        raise InvalidRecordError("Clients are not allowed to write control records")
    if batch.producer_id >= 0 and batch.base_sequence < 0:
        raise InvalidRecordError(
            f"Invalid sequence number {batch.base_sequence} in record batch with producerId {batch.producer_id}"
        )


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
