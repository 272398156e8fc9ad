"""Checks of batches that need no record (``analyzeAndValidateRecords``)."""

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
