"""Which way batches go through validation (``validateMessagesAndAssignOffsets``)."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from kidx.log.validation.compressed import CompressedBatches
from kidx.log.validation.in_place import with_offsets
from kidx.log.validation.rebuilt import converted
from kidx.records import Codec

if TYPE_CHECKING:
    from collections.abc import Sequence

    from kidx.log.validation.terms import Terms
    from kidx.records import RecordBatch


class Validated(NamedTuple):
    """What is to be appended.

    Attributes:
        records: the bytes.
        rebuilt: they are those of a new batch, so that they may be more or fewer than those that came.
        first_largest: the offset of the first record that had the largest timestamp when it came, -1 if none had one;
            None where it was not looked for.
    """

    records: bytes
    rebuilt: bool
    first_largest: int | None = None


def validate(batches: Sequence[RecordBatch], terms: Terms) -> Validated:
    """The batch that a leader appends for those that came, offsets, epoch and timestamps being its own.

    Args:
        batches: at least one, from :func:`~kidx.log.validation.analysis.checked_batches`.
        terms: of the leader.

    Raises:
        InvalidRecordError, InvalidTimestampError: batches, or their records, are refused.
        KidxError: the records cannot be read, or not be written.
    """
    source = next((batch.codec for batch in reversed(batches) if batch.is_compressed), Codec.NONE)
    if source is not Codec.NONE or terms.target_of(source) is not Codec.NONE:
        compressed = CompressedBatches(batches, source, terms)
        records = compressed.validate()
        return Validated(records, not compressed.in_place)
    if all(batch.magic >= 2 for batch in batches):
        records, first_largest = with_offsets(batches, terms)
        return Validated(records, rebuilt=False, first_largest=first_largest)
    return Validated(converted(batches, terms), rebuilt=True)
