"""Compiled reader of the records of v2 batches; imported only where it is used, because numba loads slowly."""

from __future__ import annotations

from typing import Any

import numpy as np

from kidx.layout import ATTRIBUTE_CODEC, ATTRIBUTE_LOG_APPEND_TIME, RECORD_BATCH_OVERHEAD
from kidx.scan.jit import kernel
from kidx.scan.rows import END, FULL, ODD, Array


@kernel
def _varint(buffer: Any, at: int, end: int, most: int) -> tuple[Any, int]:
    """Return a zigzag varint of up to ``most`` bytes (5 for an ``int``, 10 for a ``long``), and the position after it.

    The position is -1 if no such number ends before ``end``, or if ``at`` is -1.
    """
    if at < 0 or at >= end:
        return np.int64(0), -1
    byte = np.int64(
        buffer[np.uint64(at)]
    )  # numba accepts unsigned indexes unchanged, and checks if others are negative
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
def _sized_field(buffer: Any, at: int, end: int) -> tuple[Any, int, int]:
    """Return size of a sized field (negative for null), start of its bytes, and the position after them or -1."""
    size, begin = _varint(buffer, at, end, 5)
    after = begin + max(np.int64(0), size)
    return size, begin, after if begin >= 0 and after <= end else -1


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
    """Read ``count`` records of a batch into rows from ``first`` on; return False if a record is not well-formed."""
    for number in range(first, first + count):
        length, at = _varint(buffer, at, end, 5)
        stop = at + length
        if at < 0 or length < 1 or stop > end:
            return False
        row = rows[np.uint64(number)]
        timestamp, at = _varint(buffer, at + 1, stop, 10)
        delta, at = _varint(buffer, at, stop, 5)
        row["offset"] = base_offset + delta
        row["timestamp"] = base_timestamp if fixed else base_timestamp + timestamp
        size, begin, at = _sized_field(buffer, at, stop)
        row["key_size"] = size
        row["key_position"] = begin
        size, begin, at = _sized_field(buffer, at, stop)
        row["value_size"] = size
        row["value_position"] = begin
        headers, at = _varint(buffer, at, stop, 5)
        row["headers"] = headers
        row["headers_position"] = at
        if headers < 0:
            return False
        for _ in range(headers):
            size, _begin, at = _sized_field(buffer, at, stop)
            if size < 0:
                return False
            size, _begin, at = _sized_field(buffer, at, stop)
            if at < 0:
                return False
        if at != stop:
            return False
    return at == end


def read_records(
    buffer: Array, start: int, end: int, *, base_offset: int, base_timestamp: int, fixed: bool, rows: Array
) -> bool:
    """Read the records of one v2 batch from decompressed bytes.

    Args:
        buffer: uint8.
        start: position of the first record.
        end: position after the last record.
        base_timestamp: base timestamp of the batch; the timestamp of every record if ``fixed`` (LogAppendTime).
        fixed: True if all records have the same timestamp.
        rows: array of :data:`kidx.scan.records.RECORD` that is written, one row per record of the batch.

    Returns:
        True if the bytes are exactly these records.
    """
    with np.errstate(over="ignore"):  # offsets and timestamps wrap around, as in Java
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
        timestamp = batch["max_timestamp"] if fixed else batch["base_timestamp"]
        begin, base = at + RECORD_BATCH_OVERHEAD, batch["base_offset"]
        if count and not _read_records(buffer, begin, at + size, base, timestamp, fixed, rows, filled, count):
            return number, filled, ODD
        filled += int(count)
    return len(batches), filled, END


def read_batches(buffer: Array, batches: Array, first: int, rows: Array, most: int) -> tuple[int, int, int]:
    """Read the records of uncompressed v2 batches until the rows are full.

    Args:
        buffer: uint8.
        batches: array of :data:`kidx.scan.rows.BATCH`, with positions in the buffer.
        rows: array of :data:`kidx.scan.records.RECORD` that is written.
        most: number of bytes after which no further batch is read.

    Returns:
        The batch before which it stopped, the number of records read, and the reason: END, FULL if the rows are full,
            ODD if that batch is compressed, of another format, or corrupt.
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
    """Return slices of a buffer as Arrow's "binary view", 16 bytes each: int32, shape (n, 4).

    The view of a slice above 12 bytes is its size, its first four bytes, 0 and its start. The view of a shorter slice
    is its size and its bytes, padded with zeros.

    Args:
        buffer: uint8.
        first: position that starts are relative to.
        positions: positions of the slices, shape (n,).
        sizes: sizes of the slices; negative ones count as 0.
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
            for index in range(size):  # numba checks slices for overlaps; unsigned indexes are not wrapped
                pieces[np.uint64(at + index)] = buffer[np.uint64(position + index)]
            at += size
    starts[len(positions)] = at


def gather(buffer: Array, positions: Array, sizes: Array, pieces: Array) -> Array:
    """Copy slices of a buffer one after the other, as Arrow's "binary" has them.

    Args:
        buffer: uint8.
        positions: positions of the slices, shape (n,).
        sizes: sizes of the slices, less than 2 GiB together; negative ones count as 0.
        pieces: output bytes, uint8, which are written.

    Returns:
        The start of each, and the end: int32, shape (n + 1,).
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
                size, begin, at = _sized_field(buffer, at, len(buffer))
                headers[found, column] = begin
                headers[found, 2 + column] = begin + size
            found += 1


def find_headers(buffer: Array, rows: Array) -> Array:
    """Return the positions of the headers of records.

    Args:
        buffer: uint8.
        rows: array of :data:`kidx.scan.records.RECORD`, as written by :func:`read_records`.

    Returns:
        Start of the key, start of the value, end of the key, end of the value (for null, one before its start), for
            each
        header of each record in order: int64, shape (n, 4).
    """
    headers = np.empty((int(rows["headers"].sum(dtype=np.int64)), 4), np.int64)
    _find_headers(buffer, rows, headers)
    return headers
