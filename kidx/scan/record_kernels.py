"""The records of v2 batches, compiled; only imported where it is used, as numba takes a second to load."""

from __future__ import annotations

from typing import Any

import numpy as np

from kidx.records.layout import ATTRIBUTE_CODEC, ATTRIBUTE_LOG_APPEND_TIME, RECORD_BATCH_OVERHEAD
from kidx.scan.compiled import kernel
from kidx.scan.rows import END, FULL, ODD, Array


@kernel
def _varint(buffer: Any, at: int, end: int, most: int) -> tuple[Any, int]:
    """A zigzag varint of up to so many bytes, 5 for an ``int``, 10 for a ``long``, and the position behind it.

    The position is -1 if there is no such number before ``end``, or ``at`` is -1.
    """
    if at < 0 or at >= end:
        return np.int64(0), -1
    byte = np.int64(
        buffer[np.uint64(at)]
    )  # numba lets indexes without a sign be, and looks whether others are negative
    value = byte & 0x7F
    at += 1
    number = 1
    while byte >= 128:
        if at >= end or number >= most:
            return value, -1
        byte = np.int64(buffer[np.uint64(at)])
        value |= (byte & 0x7F) << (7 * number)
        at += 1
        number += 1
    if most == 5:
        value &= 0xFFFFFFFF
    return ((value >> 1) & 0x7FFFFFFFFFFFFFFF) ^ -(value & 1), at


@kernel
def _behind(buffer: Any, at: int, end: int) -> tuple[Any, int, int]:
    """Bytes behind their size: the size, negative for null, where they begin, and the position behind them or -1."""
    size, begin = _varint(buffer, at, end, 5)
    behind = begin + max(np.int64(0), size)
    return size, begin, behind if begin >= 0 and behind <= end else -1


@kernel
def _read_records(
    buffer: Any,
    at: int,
    end: int,
    base_offset: int,
    base_timestamp: int,
    fixed: bool,
    rows: Any,
    first: int,
    count: Any,
) -> bool:
    """Reads so many records of a batch into rows from the first on; False where the reference finds anything wrong."""
    for number in range(first, first + count):
        length, at = _varint(buffer, at, end, 5)
        stop = at + length
        if at < 0 or length < 1 or stop > end:
            return False
        row = rows[np.uint64(number)]
        stamp, at = _varint(buffer, at + 1, stop, 10)
        delta, at = _varint(buffer, at, stop, 5)
        row["offset"] = base_offset + delta
        row["timestamp"] = base_timestamp if fixed else base_timestamp + stamp
        size, begin, at = _behind(buffer, at, stop)
        row["key_size"] = size
        row["key_position"] = begin
        size, begin, at = _behind(buffer, at, stop)
        row["value_size"] = size
        row["value_position"] = begin
        headers, at = _varint(buffer, at, stop, 5)
        row["headers"] = headers
        row["headers_position"] = at
        if headers < 0:
            return False
        for _ in range(headers):
            size, _begin, at = _behind(buffer, at, stop)
            if size < 0:
                return False
            size, _begin, at = _behind(buffer, at, stop)
            if at < 0:
                return False
        if at != stop:
            return False
    return at == end


def read_records(
    buffer: Array, start: int, end: int, *, base_offset: int, base_timestamp: int, fixed: bool, rows: Array
) -> bool:
    """Reads the records of one v2 batch from decompressed bytes.

    Args:
        buffer: uint8.
        start: where the first record begins.
        end: behind the last one.
        base_offset: of the batch.
        base_timestamp: of the batch; the timestamp of every record if ``fixed`` (LogAppendTime).
        fixed: see there.
        rows: of :data:`kidx.scan.records.RECORD`, to be written, one for each record there should be.

    Returns:
        Whether they are all there, and nothing else is.
    """
    with np.errstate(over="ignore"):  # offsets and times wrap around, as Java's do
        return bool(_read_records(buffer, start, end, base_offset, base_timestamp, fixed, rows, 0, len(rows)))


@kernel
def _read_batches(buffer: Any, batches: Any, first: int, rows: Any, most: int) -> tuple[int, int, int]:
    """See :func:`read_batches`."""
    filled, last = 0, batches[first]["position"] + most
    for number in range(first, len(batches)):
        batch = batches[number]
        attributes, count = np.int64(batch["attributes"]), np.int64(batch["count"])
        at, size = batch["position"], batch["size"]
        if batch["magic"] != 2 or attributes & ATTRIBUTE_CODEC or count < 0 or size < RECORD_BATCH_OVERHEAD:
            return number, filled, ODD
        if count > len(rows) - filled or at > last:
            return number, filled, FULL
        fixed = attributes & ATTRIBUTE_LOG_APPEND_TIME != 0
        stamp = batch["max_timestamp"] if fixed else batch["base_timestamp"]
        begin, base = at + RECORD_BATCH_OVERHEAD, batch["base_offset"]
        if count and not _read_records(buffer, begin, at + size, base, stamp, fixed, rows, filled, count):
            return number, filled, ODD
        filled += int(count)
    return len(batches), filled, END


def read_batches(buffer: Array, batches: Array, first: int, rows: Array, most: int) -> tuple[int, int, int]:
    """Reads the records of uncompressed v2 batches, as long as there is room.

    Args:
        buffer: uint8.
        batches: of :data:`kidx.scan.walk.BATCH`, positions counting in the buffer.
        first: number of the one to begin with.
        rows: of :data:`kidx.scan.records.RECORD`, to be written.
        most: bytes before the last batch.

    Returns:
        The batch it stopped before, records read, and why: END, FULL if there is no room, ODD if that batch is
        compressed, of another format, or damaged.
    """
    with np.errstate(over="ignore"):
        found: tuple[int, int, int] = _read_batches(buffer, batches, first, rows, most)
    return found


@kernel
def _views(buffer: Any, first: int, positions: Any, sizes: Any, words: Any, content: Any) -> None:
    for number in range(len(positions)):
        position: Any = positions[number]
        size: Any = max(np.int64(0), np.int64(sizes[number]))
        words[number, 0] = size
        if size > 12:
            words[number, 2] = 0
            words[number, 3] = position - first
        for index in range(4 if size > 12 else size):
            content[number, 4 + index] = buffer[position + index]


def views(buffer: Array, first: int, positions: Array, sizes: Array) -> Array:
    """Pieces of a buffer as Arrow's "binary view" has them, 16 bytes each: int32, shape (n, 4).

    Size, first four bytes, 0, where it begins; or size and up to twelve bytes, then zeros.

    Args:
        buffer: uint8.
        first: where to count from.
        positions: of the pieces, shape (n,).
        sizes: theirs; negative ones count as 0.
    """
    words = np.zeros((len(positions), 4), np.int32)
    _views(buffer, first, positions, sizes, words, words.view(np.uint8))
    return words


@kernel
def _gather(buffer: Any, positions: Any, sizes: Any, starts: Any, pieces: Any) -> None:
    at: Any = 0
    for number in range(len(positions)):
        starts[number] = at
        size = np.int64(sizes[number])
        if size > 0:
            position = positions[number]
            for index in range(size):  # numba looks for overlaps in slices; indexes without a sign are not wrapped
                pieces[np.uint64(at + index)] = buffer[np.uint64(position + index)]
            at += size
    starts[len(positions)] = at


def gather(buffer: Array, positions: Array, sizes: Array, pieces: Array) -> Array:
    """Puts pieces of a buffer one behind the other, as Arrow's "binary" has them.

    Args:
        buffer: uint8.
        positions: of the pieces, shape (n,).
        sizes: theirs, less than 2 GiB together; negative ones count as 0.
        pieces: their bytes, uint8, to be written.

    Returns:
        Where each begins, and the end: int32, shape (n + 1,).
    """
    starts = np.empty(len(positions) + 1, np.int32)
    _gather(buffer, positions, sizes, starts, pieces)
    return starts


@kernel
def _find_headers(buffer: Any, rows: Any, headers: Any) -> None:
    found = 0
    for number in range(len(rows)):
        at = rows[number]["headers_position"]
        for _ in range(rows[number]["headers"]):
            for column in range(2):
                size, begin, at = _behind(buffer, at, len(buffer))
                headers[found, column] = begin
                headers[found, 2 + column] = begin + size
            found += 1


def find_headers(buffer: Array, rows: Array) -> Array:
    """Where the headers of records lie.

    Args:
        buffer: uint8.
        rows: of :data:`kidx.scan.records.RECORD`, as :func:`read_records` leaves them.

    Returns:
        Begin of the key, begin of the value, end of the key, end of the value, which a null has before its begin; of
        one record's headers after the other's: int64, shape (n, 4).
    """
    headers = np.empty((int(rows["headers"].sum(dtype=np.int64)), 4), np.int64)
    _find_headers(buffer, rows, headers)
    return headers
