"""What a log asks of batches before it looks into them (``analyzeAndValidateRecords``)."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from kidx.java_numbers import INT_MAX
from kidx.log.errors import RecordTooLargeError
from kidx.records import CorruptRecordError, InvalidRecordError, RecordBatch, iter_memory_batches

if TYPE_CHECKING:
    from kidx.dialect import Decompressor
    from kidx.records import Buffer


def checked_batches(
    records: Buffer,
    name: str,
    max_message_bytes: int,
    *,
    from_client: bool = False,
    highest_epoch: int = INT_MAX,
    leaves_out: Callable[[], bool] = lambda: True,
    asks_for_sizes: Callable[[], bool] = lambda: True,
    decompressor: Decompressor | None = None,
) -> list[RecordBatch]:
    """The batches of a call, up to the first of a newer epoch.

    Args:
        records: the call; what a last, cut batch has left is ignored.
        name: of the log's directory.
        max_message_bytes: of the topic.
        from_client: whether a producer sent it, whose batches begin at offset 0.
        highest_epoch: of batches that are taken.
        leaves_out: whether those of a newer one are left out; asked where there is one.
        asks_for_sizes: whether a batch may be refused for its size; asked where one is too large.
        decompressor: the codec libraries that read the records later on; those of kidx by default.

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
        if batch.partition_leader_epoch > highest_epoch and leaves_out():
            break
        _ = batch.last_offset  # what a batch shorter than its header has none of
        if batch.size_in_bytes > max_message_bytes and asks_for_sizes():
            ensure_allowed_size((batch,), max_message_bytes)
        if not batch.is_valid:
            raise CorruptRecordError(f"Record is corrupt in topic partition {name}")
        _ = batch.codec
        batches.append(batch)
    return batches


def ensure_allowed_size(batches: Iterable[RecordBatch], max_message_bytes: int) -> None:
    """Refuses a batch that is larger than the topic allows; what a leader has built is asked again.

    Raises:
        RecordTooLargeError: one is.
    """
    for batch in batches:
        if batch.size_in_bytes > max_message_bytes:
            raise RecordTooLargeError(
                f"a batch of {batch.size_in_bytes} bytes exceeds the maximum of {max_message_bytes}"
            )
