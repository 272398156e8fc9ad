"""Rows of the contents other than ``records``: batches, index entries and segments."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from kidx.errors import KidxError
from kidx.java_values import LONG_MAX
from kidx.records.codecs import Codec
from kidx.tables.batch_walk import BatchWalk
from kidx.tables.columns import RowBuffer, to_microseconds
from kidx.tables.identity import current_topic_id
from kidx.tables.indexes import (
    Counter,
    last_time_entry,
    read_offset_index,
    read_time_index,
    read_transaction_index,
)

if TYPE_CHECKING:
    import pyarrow as pa

    from kidx.records import RecordBatch
    from kidx.storage import RangeReader
    from kidx.tables.segments import Segment
    from kidx.tables.splits import Split

Row = dict[str, Any]
_WRITE_SECONDS: Final = 0.05
"""Seconds to wait for a broker that is writing a batch."""


def rows(content: str, split: Split, buffer: RowBuffer, counter: Counter) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a split, for all contents except ``records``.

    Args:
        buffer: collects the rows; the last rows remain in it.
        counter: the counter of bytes read.

    Raises:
        OSError: an index file cannot be read.
    """
    found = (
        _batches(split, counter, with_checksum="valid" in buffer)
        if content == "batches"
        else _OF_SEGMENT[content](split.segment, counter)
    )
    suffix = _FILE.get(content, "log")
    segment = split.segment
    where = {
        "path": segment.store.name_of(segment.file(suffix)),
        "topic": segment.topic,
        "partition": segment.partition,
        "segment": segment.base_offset,
    }
    if "topic_id" in buffer:
        where["topic_id"] = current_topic_id(segment) or None
    for row in found:
        buffer.add(where | row)
        if buffer.is_full:
            yield from buffer.flush()


def _batches(split: Split, counter: Counter, *, with_checksum: bool) -> Iterator[Row]:
    segment = split.segment
    try:
        reader = segment.store.open(segment.file("log"))
    except FileNotFoundError:  # its batches were deleted
        return
    with reader:
        if reader.size != segment.size and not segment.is_last:  # cleaned since the query was planned
            split = replace(split, start=0, end=reader.size, exact_end=False)
        hard_end = split.end if split.exact_end else reader.size
        walk = BatchWalk(
            reader,
            split.start,
            split.end,
            hard_end,
            source=segment.name,
            wanted=lambda _: with_checksum,
            may_grow=segment.is_last,
        )
        problem = ""
        try:
            for position, batch, _ in _as_planned(split, walk):
                if batch.last_offset >= split.first_offset:
                    yield _batch_row(position, batch, with_checksum=with_checksum)
            if (
                walk.is_over
                and not walk.ends_in_zeros
                and walk.position < hard_end
                and not _is_growing(segment, reader)
            ):
                problem = f"no complete batch in the next {hard_end - walk.position} bytes"
        except (KidxError, OSError) as error:
            problem = str(error)
        if problem:
            yield {"position": walk.position, "error": problem}
        counter.log_bytes += reader.bytes_read


def _as_planned(split: Split, walk: BatchWalk) -> Iterator[tuple[int, RecordBatch, bool]]:
    """Yield the batches up to the last offset, or the last byte, of the query plan."""
    end = LONG_MAX if split.end_offset is None else split.end_offset
    for found in walk:
        position, batch, _ = found
        if position >= max(split.end, split.segment.size) or (batch.magic >= 2 and batch.base_offset >= end):
            return
        yield found
        if batch.last_offset >= end - 1:
            return


def _is_growing(segment: Segment, reader: RangeReader) -> bool:
    """Return True if a broker is still writing the incomplete batch."""
    if not segment.is_last:
        return False
    time.sleep(_WRITE_SECONDS)
    now = segment.store.entry(segment.file("log"))
    return now is None or now.size != reader.size


def _batch_row(position: int, batch: RecordBatch, *, with_checksum: bool) -> Row:
    row: Row = {"position": position, "size": batch.size_in_bytes, "magic": batch.magic}
    try:
        codec = batch.codec
        row |= {
            "base_offset": batch.base_offset,
            "last_offset": batch.last_offset,
            "count": batch.count,
            "timestamp_type": int(batch.timestamp_type),
            "max_timestamp": to_microseconds(batch.max_timestamp),
            "compression": Codec(codec).name.lower(),
            "producer_id": batch.producer_id,
            "producer_epoch": batch.producer_epoch,
            "base_sequence": batch.base_sequence,
            "last_sequence": batch.last_sequence,
            "leader_epoch": batch.partition_leader_epoch,
            "transactional": batch.is_transactional,
            "control": batch.is_control,
            "crc": batch.crc,
        }
        if with_checksum:
            row["valid"] = batch.is_valid
    except KidxError as error:
        row["error"] = str(error)
    return row


def _offset_index(segment: Segment, counter: Counter) -> Iterator[Row]:
    entries = read_offset_index(segment, counter)
    for slot, (offset, position) in enumerate(zip(*map(_list, entries), strict=True)):
        yield {"slot": slot, "offset": offset, "position": position}


def _time_index(segment: Segment, counter: Counter) -> Iterator[Row]:
    entries = read_time_index(segment, counter)
    for slot, (timestamp, offset) in enumerate(zip(*map(_list, entries), strict=True)):
        yield {
            "slot": slot,
            "timestamp": to_microseconds(timestamp),
            "timestamp_ms": timestamp,
            "offset": offset,
        }


def _txn_index(segment: Segment, counter: Counter) -> Iterator[Row]:
    for slot, fields in enumerate(read_transaction_index(segment, counter).tolist()):
        names = ("version", "producer_id", "first_offset", "last_offset", "last_stable_offset")
        yield {"slot": slot} | dict(zip(names, fields, strict=True))


def _segment(segment: Segment, counter: Counter) -> Iterator[Row]:
    sizes = segment.sizes
    offset_entries, time_entries = sizes.get("index", 0) // 8, sizes.get("timeindex", 0) // 12
    if segment.is_last:  # its index files may be preallocated
        offset_entries = len(read_offset_index(segment, counter).offsets)
        time_entries = len(read_time_index(segment, counter).offsets)
    largest = last_time_entry(segment, counter)
    yield {
        "next_segment": segment.next_base_offset,
        "size": segment.size,
        "modified": None if segment.modified is None else to_microseconds(segment.modified),
        "offset_index_size": sizes.get("index"),
        "time_index_size": sizes.get("timeindex"),
        "txn_index_size": sizes.get("txnindex"),
        "offset_entries": offset_entries,
        "time_entries": time_entries,
        "aborted": sizes.get("txnindex", 0) // 34,
        "max_indexed_timestamp": None if largest is None else to_microseconds(largest[0]),
    }


def _list(array: Any) -> list[int]:
    return list(array.tolist())


# Functions that yield the rows of a segment, and suffixes of the file that is read (by default ``log``), by content.
_OF_SEGMENT: Final[dict[str, Callable[[Segment, Counter], Iterator[Row]]]] = {
    "offset_index": _offset_index,
    "time_index": _time_index,
    "txn_index": _txn_index,
    "segments": _segment,
}
_FILE: Final = {"offset_index": "index", "time_index": "timeindex", "txn_index": "txnindex"}
