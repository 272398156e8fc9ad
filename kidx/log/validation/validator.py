"""Choice of the validation that batches go through (``validateMessagesAndAssignOffsets``)."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from kidx.log.validation.compressed import CompressedBatches
from kidx.log.validation.in_place import with_offsets
from kidx.log.validation.rewritten import converted
from kidx.records import Codec

if TYPE_CHECKING:
    from collections.abc import Sequence

    from kidx.log.validation.context import ValidationContext
    from kidx.records import RecordBatch


class Validated(NamedTuple):
    """Data to append.

    Attributes:
        records: the bytes.
        rebuilt: True if they are a new batch, which may have more or fewer bytes than the incoming batches.
        first_largest: offset of the first record that had the largest timestamp on arrival, or -1 without timestamps;
            None if it was not determined.
    """

    records: bytes
    rebuilt: bool
    first_largest: int | None = None


def validate(batches: Sequence[RecordBatch], context: ValidationContext) -> Validated:
    """Return the batch that a leader appends for the incoming batches, with its own offsets, epoch and timestamps.

    Args:
        batches: one or more batches, from :func:`~kidx.log.validation.analysis.checked_batches`.
        context: context of the leader.

    Raises:
        InvalidRecordError, InvalidTimestampError: batches, or their records, are rejected.
        KidxError: the records cannot be read or written.
    """
    source = next((batch.codec for batch in reversed(batches) if batch.is_compressed), Codec.NONE)
    if source is not Codec.NONE or context.target_of(source) is not Codec.NONE:
        compressed = CompressedBatches(batches, source, context)
        records = compressed.validate()
        return Validated(records, not compressed.in_place)
    if all(batch.magic >= 2 for batch in batches):
        records, first_largest = with_offsets(batches, context)
        return Validated(records, rebuilt=False, first_largest=first_largest)
    return Validated(converted(batches, context), rebuilt=True)
