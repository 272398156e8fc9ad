"""Validation of batches that are or become compressed (``validateMessagesAndAssignOffsetsCompressed``)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING

from kidx.log.validation.batches import check_batch, ensure_single
from kidx.log.validation.in_place import final_batch
from kidx.log.validation.partial_record import read_before_3_6, read_since_3_6
from kidx.log.validation.records import ReadRecord, RecordErrors, accepts, describe_record
from kidx.log.validation.rewritten import rewritten
from kidx.producers.truncated_records import records_of
from kidx.records import Codec, DefaultRecordBatch
from kidx.records.codecs import ReadMode
from kidx.records.record import NO_TIMESTAMP

if TYPE_CHECKING:
    from kidx.log.validation.context import ValidationContext
    from kidx.records import RecordBatch


class CompressedBatches:
    """Batches of one append call, at least one of which is or becomes compressed.

    Args:
        batches: batches that have passed all checks except :meth:`validate`.
        source: codec of the last compressed batch.
        context: context of the leader.

    Attributes:
        in_place: True if the records may remain unchanged; final after :meth:`validate`, which may set it to False.
    """

    def __init__(self, batches: Sequence[RecordBatch], source: Codec, context: ValidationContext) -> None:
        self._batches = batches
        self._source = source
        self._context = context
        first = batches[0]
        same = source is context.target_of(source) and first.magic >= 2
        self.in_place = same or (source is Codec.NONE and first.is_control)
        self._accepted: list[ReadRecord] = []
        self._largest = NO_TIMESTAMP

    def validate(self) -> bytes:
        """Return the batch to append.

        Raises:
            InvalidRecordError, InvalidTimestampError: a batch, or its records, are rejected.
            SkippedRecordError: records whose keys and values were skipped must be rebuilt (LG-55).
            KidxError: the records cannot be read or written.
        """
        ensure_single(self._batches, self._source)
        for batch in self._batches:
            check_batch(batch, self._batches[0], self._context)
            self._check_records(batch)
        if self.in_place:
            return final_batch(self._batches[0], self._context, len(self._accepted), self._largest)
        return rewritten(self._batches[0], self._accepted, self._context.target_of(self._source), self._context)

    def _check_records(self, batch: RecordBatch) -> None:
        errors = RecordErrors(self._context.dialect)
        expected = len(self._accepted)
        for number, record in enumerate(self._records(batch)):
            if accepts(batch, record, number, self._context, errors) and self._fits(
                batch, record, expected + number, number, errors
            ):
                self._accepted.append(record)
        errors.ensure_none()

    def _fits(self, batch: RecordBatch, record: ReadRecord, expected: int, number: int, errors: RecordErrors) -> bool:
        """Return True if the offset equals the record's index; otherwise add an error, or have the batch rebuilt."""
        if batch.magic == 0:
            return True
        if record.offset != expected and self._context.dialect.rejects_wrong_inner_offsets:
            errors.add(number, f"{describe_record(record)} does not have offset {expected}")
            return False
        self._largest = max(self._largest, record.timestamp)
        self.in_place = self.in_place and record.offset == expected
        return True

    def _records(self, batch: RecordBatch) -> Iterator[ReadRecord]:
        rules = self._context.dialect
        if not batch.is_compressed or not rules.validation_skips_keys:
            return records_of(batch, rules)
        largest = self._context.max_record_body_size
        if not self.in_place or not isinstance(batch, DefaultRecordBatch):
            return records_of(batch.streaming_iterator(largest), rules)
        if not rules.validation_ignores_record_sizes:
            return records_of(batch.read_decompressed(read_before_3_6, ReadMode.PIECES), rules)
        limit = largest if rules.limits_decompressed_size else None
        return records_of(batch.read_decompressed(partial(read_since_3_6, largest=limit), ReadMode.FIELDS), rules)
