"""Results of a log's operations, as their callers in a broker get them."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from kidx.records.record import NO_PARTITION_LEADER_EPOCH, NO_TIMESTAMP

if TYPE_CHECKING:
    from collections.abc import Sequence

    from kidx.producers.entry import BatchMetadata
    from kidx.records import RecordBatch
    from kidx.segment.append_info import AppendInfo


class AppendResult(NamedTuple):
    """Result of an append (``LogAppendInfo``, LG-86): the response to a producer, and the progress of a follower.

    Attributes:
        first_offset: first offset; -1 if nothing was appended, or if a follower's first batch has an older format.
        last_offset: last offset; -1 if nothing was appended.
        leader_epoch: leader epoch of the last batch as it was received.
        max_timestamp: largest timestamp of the records in milliseconds, or -1.
        log_append_time: time of the append in milliseconds if the topic requires it, or -1; of a duplicate, the
            timestamp of the batch that it repeats.
        size_in_bytes: size of the received batches.
    """

    first_offset: int
    last_offset: int
    leader_epoch: int
    max_timestamp: int
    log_append_time: int
    log_start_offset: int
    size_in_bytes: int

    @classmethod
    def nothing(cls, start: int) -> AppendResult:
        """Return the result of an append without a batch."""
        return cls(-1, -1, NO_PARTITION_LEADER_EPOCH, NO_TIMESTAMP, NO_TIMESTAMP, start, 0)

    def repeating(self, batch: BatchMetadata) -> AppendResult:
        """Return the result of an append that repeats a batch of the log."""
        return self._replace(
            first_offset=batch.first_offset, last_offset=batch.last_offset, log_append_time=batch.timestamp
        )


def append_result(
    received: Sequence[RecordBatch],
    info: AppendInfo,
    *,
    first: int | None,
    start: int,
    log_append_time: int = NO_TIMESTAMP,
) -> AppendResult:
    """Return the result of an append.

    Args:
        received: the batches, before a leader changed them.
        info: description of the batches as they were appended.
        first: first offset, or None if it is unknown.
        start: the log start offset.
        log_append_time: time of the append in milliseconds, or -1.
    """
    return AppendResult(
        -1 if first is None else first,
        info.largest_offset,
        received[-1].partition_leader_epoch,
        info.largest_timestamp,
        log_append_time,
        start,
        sum(batch.size_in_bytes for batch in received),
    )
