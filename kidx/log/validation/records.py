"""What a leader asks of records (``validateRecord``), and how it refuses them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kidx.java_numbers import LONG_MAX, LONG_MIN, to_long
from kidx.log.errors import InvalidTimestampError, RefusedRecordsError
from kidx.log.validation.partial import PartialRecord
from kidx.records import CorruptRecordError, LegacyRecord, Record, TimestampType
from kidx.records.record import NO_TIMESTAMP

if TYPE_CHECKING:
    from kidx.dialect import Dialect
    from kidx.log.validation.terms import Terms
    from kidx.records import RecordBatch

Seen = Record | PartialRecord
"""A record, or one whose key and value were passed over."""


class Refusals:
    """The records of one batch that are refused.

    Args:
        dialect: says whether all are looked at before the batch is refused; else the first one ends it.
    """

    def __init__(self, dialect: Dialect) -> None:
        self._dialect = dialect
        self._said: list[tuple[int, str, bool]] = []

    def __bool__(self) -> bool:
        return bool(self._said)

    def add(self, number: int, message: str, *, of_time: bool = False) -> None:
        """Notes that a record is refused.

        Args:
            number: in its batch.
            message: why.
            of_time: for its timestamp, which is what the client is told if any record is.

        Raises:
            InvalidTimestampError, RefusedRecordsError: as :meth:`ensure_none`, where the first one ends it.
        """
        self._said.append((number, message, of_time))
        if not self._dialect.record_errors_are_collected:
            self.ensure_none()

    def ensure_none(self) -> None:
        """Refuses the batch if any of its records is.

        Raises:
            InvalidTimestampError: one of them for its timestamp.
            RefusedRecordsError: all for something else.
        """
        if not self._said:
            return
        message = "; ".join(f"record {number}: {said}" for number, said, _ in self._said[:3])
        of_time = any(of_time for _, _, of_time in self._said)
        error = (InvalidTimestampError if of_time else RefusedRecordsError)(f"{len(self._said)} refused: {message}")
        error.records = tuple(number for number, _, _ in self._said)
        raise error


def accepts(batch: RecordBatch, record: Seen, number: int, terms: Terms, refusals: Refusals) -> bool:
    """Whether a record of a batch may be appended; notes it if it may not.

    Raises:
        CorruptRecordError: a message inside another has a wrong checksum.
        InvalidTimestampError, RefusedRecordsError: as :meth:`Refusals.add`.
    """
    if isinstance(record, LegacyRecord):
        if record.message.magic != batch.magic:
            refusals.add(number, f"{told(record)}'s magic does not match that of its batch, {batch.magic}")
            return False
        if batch.is_compressed and not record.message.is_valid:
            raise CorruptRecordError(f"Record is corrupt (stored crc = {record.message.crc})")
    if terms.config.compacts and not has_key(record):
        refusals.add(number, "Compacted topic cannot accept message without key")
        return False
    said = _wrong_time(batch, record, terms)
    if said is not None:
        refusals.add(number, said, of_time=True)
    return said is None


def told(record: Seen) -> str:
    """A record in words; those of an old message tell its sizes, for which they are read.

    Raises:
        InvalidArgumentError, OutOfBoundsError: codec or sizes of an old message are damaged.
    """
    if isinstance(record, LegacyRecord):
        message = record.message
        sizes = f"{len(message.key or b'')} and {len(message.value or b'')} bytes"
        return f"Record {record.offset} ({message.codec.label}, {sizes})"
    return f"Record {record.offset}"


def has_key(record: Seen) -> bool:
    """Whether the record has a key."""
    if isinstance(record, PartialRecord):
        return record.has_key
    return record.message.has_key if isinstance(record, LegacyRecord) else record.key is not None


def _wrong_time(batch: RecordBatch, record: Seen, terms: Terms) -> str | None:
    """What is wrong with a timestamp (``validateTimestamp``)."""
    looked_at = not terms.config.log_append_time and record.timestamp != NO_TIMESTAMP
    if looked_at and is_too_far(record.timestamp, terms):
        return f"Timestamp {record.timestamp} of message with offset {record.offset} is out of range"
    if batch.timestamp_type is not TimestampType.LOG_APPEND_TIME or (looked_at and terms.dialect.stamped_batches_pass):
        return None
    return f"{told(record)}: Producer should not set timestamp type to LogAppendTime"


def is_too_far(timestamp: int, terms: Terms) -> bool:
    """Whether a timestamp is further from the clock than the topic allows, reckoned with Java's longs."""
    before, after = terms.limits
    if before == after == LONG_MAX:
        return False  # whichever rules the dialect has
    if not terms.dialect.timestamps_have_two_limits:
        distance = to_long(timestamp - terms.now)
        return (distance if distance == LONG_MIN else abs(distance)) > before
    age = to_long(terms.now - timestamp)
    return age > before or to_long(-age) > after
