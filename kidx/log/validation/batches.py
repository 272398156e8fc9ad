"""Checks of a batch's header by a leader (``validateBatch``)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kidx.records import Codec, InvalidRecordError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from kidx.log.validation.context import ValidationContext
    from kidx.records import RecordBatch


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
