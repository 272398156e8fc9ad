"""What a log tells a segment about the records it appends (``LogAppendInfo``; SEG-8).

Up to 3.9.0 and in 4.0.0 an append comes with three numbers: the last offset, the largest timestamp and the offset that
is to be indexed with it. A follower reads them from the batches; a leader takes the last one from where it assigned
the offsets, and every era did so differently (L1–L3). From 3.9.1 on only the last offset is left (L4).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from kidx.dialect import Dialect, dialect_of
from kidx.records import Buffer, RecordBatch, TimestampType, iter_memory_batches
from kidx.records.record import NO_TIMESTAMP


class AppendInfo(NamedTuple):
    """Last offset of all records, largest timestamp (milliseconds), and the offset that goes with it."""

    largest_offset: int
    largest_timestamp: int
    shallow_offset: int


def follower_append_info(records: Buffer) -> AppendInfo:
    """What a follower says: the last offset of the first batch that has the largest timestamp.

    ``(-1, -1, -1)`` without any batch.

    Raises:
        KidxError: the records cannot be read.
    """
    return append_info_of(iter_memory_batches(records))


def append_info_of(batches: Iterable[RecordBatch]) -> AppendInfo:
    """As :func:`follower_append_info`, of batches that have been told apart already."""
    largest_offset, timestamp, offset = -1, NO_TIMESTAMP, -1
    for batch in batches:
        largest_offset = batch.last_offset
        if batch.max_timestamp > timestamp:
            timestamp, offset = batch.max_timestamp, largest_offset
    return AppendInfo(largest_offset, timestamp, offset)


def leader_append_info(
    records: Buffer, *, dialect: str | Dialect | None = None, rebuilt: bool = False, first_largest: int | None = None
) -> AppendInfo:
    """What a leader says of records whose offsets it has just assigned.

    Args:
        records: as they are appended: one batch of v2 or compressed v0, v1, or any number of uncompressed v0, v1 ones.
        dialect: a release or a :class:`~kidx.dialect.Dialect`; the newest release by default.
        rebuilt: the leader made new batches, because format, codec or inner offsets were not as the topic wants them.
        first_largest: the offset of the first record with the largest timestamp, where the leader has seen other
            timestamps than the records have now; looked for among those if None.

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
    stamped = first.timestamp_type is TimestampType.LOG_APPEND_TIME
    if rebuilt and timestamp == NO_TIMESTAMP and not stamped:
        return -1 if rules.leader_timestamp == "L3" else last
    if first.is_compressed or (first.magic == 2 and (rebuilt or stamped)):
        return last
    era = rules.leader_timestamp
    if first.magic == 2 and era == "L2":
        return last
    if stamped or timestamp == NO_TIMESTAMP:
        return first.base_offset if stamped else -1
    # In place, the third era names the batch; all others name the record.
    if era == "L3" and not rebuilt:
        return followed
    return _first_with_the_largest(batches) if first_largest is None else first_largest


def _first_with_the_largest(batches: list[RecordBatch]) -> int:
    """The offset of the first record that has the largest timestamp of all, counted as the leader gives them.

    What a record of v2 says of its offset is not looked at.
    """
    timestamp, offset = NO_TIMESTAMP, -1
    for batch in batches:
        for number, record in enumerate(batch.stamps()):
            if record.timestamp > timestamp:
                timestamp = record.timestamp
                offset = batch.base_offset + number if batch.magic >= 2 else record.offset
    return offset
