"""Batches built anew, where format, codec or offsets are not as the topic wants them (``MemoryRecordsBuilder``)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kidx.errors import IllegalStateError, InvalidArgumentError
from kidx.log.errors import SkippedRecordError
from kidx.log.validation.batches import check_batch, ensure_single
from kidx.log.validation.partial import PartialRecord
from kidx.log.validation.records import Refusals, accepts
from kidx.producers.cut_records import records_of
from kidx.producers.errors import MissingBytesError
from kidx.records import Codec, SimpleRecord, TimestampType, build_batch
from kidx.records.record import NO_TIMESTAMP

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from kidx.log.validation.records import Seen
    from kidx.log.validation.terms import Terms
    from kidx.records import RecordBatch


def converted(batches: Sequence[RecordBatch], terms: Terms) -> bytes:
    """Uncompressed messages of the old formats as one batch of v2 (``convertAndAssignOffsetsNonCompressed``).

    Raises:
        InvalidRecordError, InvalidTimestampError: a batch, or its record, is refused.
        KidxError: a record cannot be read.
    """
    _reckon_room(batches, terms)
    ensure_single(batches, Codec.NONE)
    taken: list[Seen] = []
    for batch in batches:
        check_batch(batch, batches[0], terms)
        refusals = Refusals(terms.dialect)
        for number, record in enumerate(records_of(batch, terms.dialect)):
            if accepts(batch, record, number, terms, refusals) and not refusals:
                _ensure_writable(record.timestamp)
                taken.append(record)
        refusals.ensure_none()
    return rebuilt(batches[0], taken, Codec.NONE, terms)


def _reckon_room(batches: Sequence[RecordBatch], terms: Terms) -> None:
    """Reads every key and value, as Kafka does for the size of the new batch before anything is checked.

    Raises:
        IllegalStateError: a record that is longer than its batch, before 3.0: an iterator takes null for no answer.
        KidxError: a record cannot be read.
    """
    try:
        for batch in batches:
            for record in records_of(batch, terms.dialect):
                _ = record.key, record.value
    except MissingBytesError as error:
        raise IllegalStateError("Expected item but none found.") from error


def _ensure_writable(timestamp: int) -> None:
    """Refuses at once what the builder would refuse.

    Raises:
        InvalidArgumentError: the timestamp is negative and not -1.
    """
    if timestamp < NO_TIMESTAMP:
        raise InvalidArgumentError(f"Invalid negative timestamp {timestamp}")


def rebuilt(first: RecordBatch, records: Iterable[Seen], codec: Codec, terms: Terms) -> bytes:
    """A batch of v2 with these records, one offset after another, and what the first batch said of its producer.

    Raises:
        SkippedRecordError: the records came without keys and values.
        InvalidArgumentError: what the builder refuses.
        KidxError: a key or value cannot be read.
    """
    plain = [_whole(record) for record in records]
    stamp = terms.log_append_time
    return build_batch(
        plain,
        base_offset=terms.first_offset,
        codec=codec,
        timestamp_type=TimestampType.CREATE_TIME if stamp is None else TimestampType.LOG_APPEND_TIME,
        log_append_time=NO_TIMESTAMP if stamp is None else stamp,
        producer_id=first.producer_id,
        producer_epoch=first.producer_epoch,
        base_sequence=first.base_sequence,
        is_transactional=first.is_transactional,
        partition_leader_epoch=terms.leader_epoch,
        compressor=terms.dialect.compressor,
    )


def _whole(record: Seen) -> SimpleRecord:
    if isinstance(record, PartialRecord):
        raise SkippedRecordError(f"the key of the record at offset {record.offset} was passed over", None)
    return SimpleRecord(record.timestamp, record.key, record.value, record.headers)
