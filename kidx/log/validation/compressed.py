"""Batches that come compressed, or are to be (``validateMessagesAndAssignOffsetsCompressed``)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING

from kidx.log.validation.batches import check_batch, ensure_single
from kidx.log.validation.in_place import final_batch
from kidx.log.validation.partial import read_ahead, read_on
from kidx.log.validation.rebuilt import rebuilt
from kidx.log.validation.records import Refusals, Seen, accepts, told
from kidx.producers.cut_records import records_of
from kidx.records import Codec, DefaultRecordBatch
from kidx.records.codecs import Reading
from kidx.records.record import NO_TIMESTAMP

if TYPE_CHECKING:
    from kidx.log.validation.terms import Terms
    from kidx.records import RecordBatch


class CompressedBatches:
    """The batches of one call.

    Args:
        batches: in which all is well but what :meth:`validate` looks at.
        source: the codec of the last one that is compressed.
        terms: of the leader.

    Attributes:
        in_place: the records may stay as they are; clear after :meth:`validate`, which may find that they may not.
    """

    def __init__(self, batches: Sequence[RecordBatch], source: Codec, terms: Terms) -> None:
        self._batches = batches
        self._source = source
        self._terms = terms
        first = batches[0]
        same = source is terms.target_of(source) and first.magic >= 2
        self.in_place = same or (source is Codec.NONE and first.is_control)
        self._taken: list[Seen] = []
        self._largest = NO_TIMESTAMP

    def validate(self) -> bytes:
        """The batch that is to be appended.

        Raises:
            InvalidRecordError, InvalidTimestampError: a batch, or its records, are refused.
            SkippedRecordError: records have to be rebuilt that were passed over (LG-55).
            KidxError: the records cannot be read, or not be written.
        """
        ensure_single(self._batches, self._source)
        for batch in self._batches:
            check_batch(batch, self._batches[0], self._terms)
            self._look_into(batch)
        if self.in_place:
            return final_batch(self._batches[0], self._terms, len(self._taken), self._largest)
        return rebuilt(self._batches[0], self._taken, self._terms.target_of(self._source), self._terms)

    def _look_into(self, batch: RecordBatch) -> None:
        refusals = Refusals(self._terms.dialect)
        expected = len(self._taken)
        for number, record in enumerate(self._records(batch)):
            if accepts(batch, record, number, self._terms, refusals) and self._fits(
                batch, record, expected + number, number, refusals
            ):
                self._taken.append(record)
        refusals.ensure_none()

    def _fits(self, batch: RecordBatch, record: Seen, expected: int, number: int, refusals: Refusals) -> bool:
        """Whether the offset is that of its place; notes it if that is asked for, else the batch is to be rebuilt."""
        if batch.magic == 0:
            return True
        if record.offset != expected and self._terms.dialect.wrong_inner_offsets_are_refused:
            refusals.add(number, f"{told(record)} has not offset {expected}")
            return False
        self._largest = max(self._largest, record.timestamp)
        self.in_place = self.in_place and record.offset == expected
        return True

    def _records(self, batch: RecordBatch) -> Iterator[Seen]:
        rules = self._terms.dialect
        if not batch.is_compressed or not rules.validation_passes_over_keys:
            return records_of(batch, rules)
        largest = self._terms.max_record_body_size
        if not self.in_place or not isinstance(batch, DefaultRecordBatch):
            return records_of(batch.streaming_iterator(largest), rules)
        if not rules.validation_ignores_record_sizes:
            return records_of(batch.decompressed(read_ahead, Reading.PIECES), rules)
        limit = largest if rules.decompressed_records_are_limited else None
        return records_of(batch.decompressed(partial(read_on, largest=limit), Reading.FIELDS), rules)
