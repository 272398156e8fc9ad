"""A task over anything but records: batches, index files and segments as rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, Final

from kidx.errors import KidxError
from kidx.records.codecs import Codec
from kidx.tables.columns import RowBuffer, to_microseconds
from kidx.tables.indexes import (
    Counter,
    last_time_entry,
    read_offset_index,
    read_time_index,
    read_transaction_index,
)
from kidx.tables.walking import BatchWalk

if TYPE_CHECKING:
    import pyarrow as pa

    from kidx.records import RecordBatch
    from kidx.tables.conditions import Conditions
    from kidx.tables.segments import Segment
    from kidx.tables.splits import Piece

Row = dict[str, Any]


def rows(
    content: str, piece: Piece, conditions: Conditions, buffer: RowBuffer, counter: Counter
) -> Iterator[pa.RecordBatch]:
    """The rows of a piece: all contents but ``records``.

    Raises:
        OSError: an index file cannot be read.
    """
    found = (
        _batches(piece, conditions, counter, with_checksum="valid" in buffer)
        if content == "batches"
        else _OF_SEGMENT[content](piece.segment, counter)
    )
    suffix = _FILE.get(content, "log")
    segment = piece.segment
    where = {
        "path": segment.store.name_of(segment.file(suffix)),
        "topic": segment.topic,
        "partition": segment.partition,
        "segment": segment.base_offset,
    }
    for row in found:
        buffer.add(where | row)
        if buffer.is_full:
            yield from buffer.flush()


def _batches(piece: Piece, conditions: Conditions, counter: Counter, *, with_checksum: bool) -> Iterator[Row]:
    segment = piece.segment
    hard_end = piece.end if piece.exact_end else segment.size

    def wanted(_: RecordBatch) -> bool:
        return with_checksum

    with segment.store.open(segment.file("log")) as reader:
        walk = BatchWalk(reader, piece.start, piece.end, hard_end, source=segment.name, wanted=wanted)
        problem = ""
        try:
            for position, batch, _ in walk:
                last = batch.last_offset
                if last >= piece.first_offset and (batch.magic < 2 or conditions.admits_batch(batch)):
                    if piece.end_offset is not None and batch.magic >= 2 and batch.base_offset >= piece.end_offset:
                        break
                    yield _batch_row(position, batch, with_checksum=with_checksum)
                if piece.end_offset is not None and last >= piece.end_offset - 1:
                    break
            else:
                if walk.position < hard_end:
                    problem = f"no whole batch in the {hard_end - walk.position} bytes that follow"
        except (KidxError, OSError) as error:
            problem = str(error)
        if problem:
            yield {"position": walk.position, "error": problem}
        counter.log_bytes += reader.bytes_read


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
    if segment.is_last:  # the files may have room for more
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


_OF_SEGMENT: Final[dict[str, Callable[[Segment, Counter], Iterator[Row]]]] = {
    "offset_index": _offset_index,
    "time_index": _time_index,
    "txn_index": _txn_index,
    "segments": _segment,
}
_FILE: Final = {"offset_index": "index", "time_index": "timeindex", "txn_index": "txnindex"}
