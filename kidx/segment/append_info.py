"""Description that a log passes to a segment with the records it appends (``LogAppendInfo``; SEG-8).

Up to 3.9.0 and in 4.0.0 an append comes with three numbers: the last offset, the largest timestamp, and the offset to
index with that timestamp. A follower reads all three from the batches. A leader takes the third from the code that
assigned the offsets; the rule differs between releases. In the other releases only the last offset remains.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from kidx.dialect import Dialect, dialect_of
from kidx.records import Buffer, RecordBatch, TimestampType, iter_memory_batches
from kidx.records.record import NO_TIMESTAMP


class AppendInfo(NamedTuple):
    """Numbers that a segment needs for its indexes, in addition to the bytes of the records."""

    largest_offset: int  # last offset of all records
    largest_timestamp: int  # milliseconds
    shallow_offset: int  # offset to index with that timestamp; Kafka's shallowOffsetOfMaxTimestamp


def follower_append_info(records: Buffer) -> AppendInfo:
    """Return a follower's description, or ``(-1, -1, -1)`` without batches.

    ``shallow_offset`` is the last offset of the first batch that has the largest timestamp.

    Raises:
        KidxError: the records cannot be read.
    """
    return append_info_of(iter_memory_batches(records))


def append_info_of(batches: Iterable[RecordBatch]) -> AppendInfo:
    """Return the description as :func:`follower_append_info` does, for batches that are parsed already."""
    largest_offset, timestamp, offset = -1, NO_TIMESTAMP, -1
    for batch in batches:
        largest_offset = batch.last_offset
        if batch.max_timestamp > timestamp:
            timestamp, offset = batch.max_timestamp, largest_offset
    return AppendInfo(largest_offset, timestamp, offset)


def leader_append_info(
    records: Buffer, *, dialect: str | Dialect | None = None, rebuilt: bool = False, first_largest: int | None = None
) -> AppendInfo:
    """Return a leader's description of records whose offsets it has just assigned.

    Args:
        records: the bytes to append: one batch of v2 or compressed v0, v1, or any number of uncompressed v0, v1 ones.
        dialect: a release or a :class:`~kidx.dialect.Dialect`; the newest release by default.
        rebuilt: True if the leader built new batches, because format, codec or inner offsets did not suit the topic.
        first_largest: offset of the first record with the largest timestamp, if the leader has seen other timestamps
            than the records have now; by default it is determined from the records.

    Raises:
        KidxError: the records cannot be read.
    """
    rules = dialect_of(dialect)
    batches = list(iter_memory_batches(records, decompressor=rules.decompressor))
    follower = append_info_of(batches)
    if not batches or rules.append_per_batch:
        return follower
    offset = _leader_offset(batches, follower, rules, rebuilt, first_largest)
    return follower._replace(shallow_offset=offset)


def _leader_offset(
    batches: list[RecordBatch], follower: AppendInfo, rules: Dialect, rebuilt: bool, first_largest: int | None
) -> int:
    first, (last, timestamp, followed) = batches[0], follower
    by_broker = first.timestamp_type is TimestampType.LOG_APPEND_TIME
    if rebuilt and timestamp == NO_TIMESTAMP and not by_broker:
        return -1 if rules.leader_timestamp == "batch" else last
    if first.is_compressed or (first.magic == 2 and (rebuilt or by_broker)):
        return last
    rule = rules.leader_timestamp
    if first.magic == 2 and rule == "request":
        return last
    if by_broker or timestamp == NO_TIMESTAMP:
        return first.base_offset if by_broker else -1
    # The rule "batch" takes the last offset of a batch that was not rebuilt; otherwise the record's offset is taken.
    if rule == "batch" and not rebuilt:
        return followed
    return _first_with_the_largest(batches) if first_largest is None else first_largest


def _first_with_the_largest(batches: list[RecordBatch]) -> int:
    """Return the offset, as the leader assigns it, of the first record that has the largest timestamp of all.

    The offset that a v2 record itself states is ignored.
    """
    timestamp, offset = NO_TIMESTAMP, -1
    for batch in batches:
        for number, record in enumerate(batch.offset_timestamps()):
            if record.timestamp > timestamp:
                timestamp = record.timestamp
                offset = batch.base_offset + number if batch.magic >= 2 else record.offset
    return offset
