"""From the bytes of a ``.log`` to rows of batch headers: one walk over a block (RB-1, RB-4).

Two ways that give the same rows: a compiled kernel, and a plain one in which Python finds where batches start and numpy
reads their headers.
"""

from __future__ import annotations

import zlib
from typing import Any, Final, NamedTuple

import google_crc32c
import numpy as np

from kidx.records.layout import (
    ATTRIBUTE_CODEC,
    ATTRIBUTE_CONTROL,
    CHECKSUMMED_FROM,
    LOG_OVERHEAD,
    MESSAGE_OVERHEAD_V0,
    MESSAGE_V1,
    PREFIX,
    RECORD_BATCH,
    RECORD_BATCH_OVERHEAD,
)
from kidx.scan.checksum import CASTAGNOLI, IEEE, call_crc32c, crc32c_address, crc_tables, table_crc
from kidx.scan.compiled import COMPILED, kernel

Array = np.ndarray[Any, Any]

# fmt: off
BATCH: Final = np.dtype([
    ("position",       "i8"),  # byte position in the file
    ("size",           "i8"),  # all its bytes
    ("base_offset",    "i8"),  # of the first record; of a compressed v0, v1 batch found by reading its records
    ("last_offset",    "i8"),  # of the last record that ever was in it
    ("base_timestamp", "i8"),  # milliseconds; v0, v1: as max_timestamp
    ("max_timestamp",  "i8"),  # milliseconds, -1 for none
    ("producer_id",    "i8"),  # -1 for none
    ("leader_epoch",   "i4"),  # -1 for none
    ("base_sequence",  "i4"),  # -1 for none
    ("count",          "i4"),  # records; -1 in v0, v1
    ("crc",            "u4"),  # as stored
    ("attributes",     "i2"),  # the ATTRIBUTE_ bits of kidx.records.layout
    ("producer_epoch", "i2"),  # -1 for none
    ("magic",          "i1"),  # 0, 1, 2 or what the file has there
    ("control",        "i1"),  # type of a control batch's first record: 0 abort, 1 commit; -1 if there is none
    ("crc_ok",         "?"),   # size and checksum are right
], align=True)
"""One row a batch."""
# fmt: on

MORE: Final = 0
"""The walk needs bytes that the block does not have."""

END: Final = 1
"""Fewer than 18 bytes are left, or the next batch would go beyond the end of the file."""

CORRUPT: Final = 2
"""A length below 14: nothing behind it can be read."""

FULL: Final = 3
"""There is no room for more rows."""


class Walked(NamedTuple):
    """What a walk has done: rows written, where in the block it stopped, and why (MORE, END, CORRUPT, FULL)."""

    rows: int
    stopped: int
    reason: int


@kernel
def _integer(buffer: Any, position: int, size: int) -> Any:
    """A signed big-endian number; compiled, the loop becomes one load."""
    value = np.int64(buffer[position])
    if value > 127:
        value -= 256
    for index in range(1, size):
        value = (value << 8) | np.int64(buffer[position + index])
    return value


@kernel
def _varint(buffer: Any, position: int, end: int) -> tuple[Any, int]:
    """A zigzag varint of at most 32 bits and the position behind it, which is -1 if there is none."""
    value = np.int64(0)
    for index in range(5):
        if position + index >= end:
            return 0, -1
        byte = np.int64(buffer[position + index])
        value |= (byte & 0x7F) << (7 * index)
        if byte < 128:
            return (value >> 1) ^ -(value & 1), position + index + 1
    return 0, -1


@kernel
def control_type(buffer: Any, position: int, end: int) -> Any:
    """The type of a control batch's first record (``ControlRecordType.parse``); -1 if it cannot be read.

    Args:
        buffer: bytes.
        position: of the batch in it.
        end: behind the batch.
    """
    at = position + RECORD_BATCH_OVERHEAD
    _, at = _varint(buffer, at, end)  # length
    if at < 0:
        return -1
    at += 1  # attributes
    for _index in range(10):  # the timestamp delta has up to 64 bits
        if at >= end:
            return -1
        at += 1
        if np.int64(buffer[at - 1]) < 128:
            break
    _, at = _varint(buffer, at, end)  # offset delta
    if at < 0:
        return -1
    size, at = _varint(buffer, at, end)
    if at < 0 or size < 4 or at + size > end:
        return -1
    number = _integer(buffer, at + 2, 2)
    return number if 0 <= number <= 6 else -1


@kernel
def _read_old(row: Any, buffer: Any, at: int, size: int, ieee: Any, checked: bool) -> None:
    """The header of a batch of v0 or v1, and of what claims a negative format."""
    magic = row["magic"]
    crc = _integer(buffer, at + 12, 4) & 0xFFFFFFFF
    timestamp = _integer(buffer, at + 18, 8) if magic == 1 else np.int64(-1)
    row["attributes"] = np.int64(buffer[at + 17])
    row["crc"] = crc
    row["base_timestamp"] = timestamp
    row["max_timestamp"] = timestamp
    row["crc_ok"] = magic >= 0 and (not checked or table_crc(ieee, buffer, at + 16, at + size) == crc)


@kernel
def _read_new(row: Any, buffer: Any, at: int, size: int, address: int, castagnoli: Any, checked: bool) -> None:
    """The header of a v2 batch."""
    crc = _integer(buffer, at + 17, 4) & 0xFFFFFFFF
    attributes = np.int64(buffer[at + 22])
    row["attributes"] = attributes
    row["crc"] = crc
    row["last_offset"] = row["base_offset"] + _integer(buffer, at + 23, 4)
    row["base_timestamp"] = _integer(buffer, at + 27, 8)
    row["max_timestamp"] = _integer(buffer, at + 35, 8)
    row["producer_id"] = _integer(buffer, at + 43, 8)
    row["producer_epoch"] = _integer(buffer, at + 51, 2)
    row["base_sequence"] = _integer(buffer, at + 53, 4)
    row["count"] = _integer(buffer, at + 57, 4)
    row["leader_epoch"] = _integer(buffer, at + 12, 4)
    start = at + CHECKSUMMED_FROM
    if size < RECORD_BATCH_OVERHEAD:
        row["crc_ok"] = False
        return
    if not checked:
        row["crc_ok"] = True
    elif address != 0:
        row["crc_ok"] = call_crc32c(address, buffer.ctypes.data + start, at + size - start) == crc
    else:
        row["crc_ok"] = table_crc(castagnoli, buffer, start, at + size) == crc
    if attributes & ATTRIBUTE_CONTROL:
        row["control"] = control_type(buffer, at, at + size)


@kernel
def _walk_compiled(
    buffer: Any,
    filled: int,
    start: int,
    file_position: int,
    file_end: int,
    rows: Any,
    address: int,
    castagnoli: Any,
    ieee: Any,
    checked: bool,
) -> tuple[int, int, int]:
    """See :func:`walk`; ``file_position`` is that of the buffer's first byte."""
    count, at, reason = 0, start, FULL
    while count < len(rows):
        left = file_end - (file_position + at)
        reason = END if left <= 17 else MORE if filled - at < min(left, RECORD_BATCH_OVERHEAD) else FULL
        if reason != FULL:
            break
        length = _integer(buffer, at + 8, 4)
        size = LOG_OVERHEAD + length
        if length < MESSAGE_OVERHEAD_V0:
            reason = CORRUPT
        elif size > left:
            reason = END
        elif size > filled - at:
            reason = MORE
        if reason != FULL:
            break
        row = rows[count]
        offset, magic = _integer(buffer, at, 8), _integer(buffer, at + 16, 1)
        row["position"] = file_position + at
        row["size"] = size
        row["base_offset"] = offset
        row["last_offset"] = offset
        row["magic"] = magic
        row["control"] = -1
        row["leader_epoch"] = -1
        row["base_sequence"] = -1
        row["producer_id"] = -1
        row["producer_epoch"] = -1
        row["count"] = -1
        if magic < 2:
            _read_old(row, buffer, at, size, ieee, checked)
        elif left >= RECORD_BATCH_OVERHEAD:
            _read_new(row, buffer, at, size, address, castagnoli, checked)
        else:
            row["attributes"] = 0
            row["crc"] = 0
            row["base_timestamp"] = -1
            row["max_timestamp"] = -1
            row["crc_ok"] = False
        count += 1
        at += size
    return count, at, reason


_V2: Final = np.dtype([(field.name, f">{field.code}") for field in RECORD_BATCH.fields])
_TIMESTAMP_V1: Final = MESSAGE_V1.codec("timestamp")


def _walk_plain(
    buffer: Array, filled: int, start: int, file_position: int, file_end: int, rows: Array, checked: bool
) -> Walked:
    """See :func:`walk`."""
    view = buffer[:filled].data
    unpack = PREFIX.struct.unpack_from
    starts: list[int] = []
    sizes: list[int] = []
    at, reason = start, FULL
    while len(starts) < len(rows):
        left = file_end - (file_position + at)
        if left <= PREFIX.size or filled - at < min(left, RECORD_BATCH_OVERHEAD):
            reason = END if left <= PREFIX.size else MORE
            break
        length = unpack(view, at)[1]
        size = LOG_OVERHEAD + length
        if length < MESSAGE_OVERHEAD_V0 or size > left or size > filled - at:
            reason = CORRUPT if length < MESSAGE_OVERHEAD_V0 else END if size > left else MORE
            break
        starts.append(at)
        sizes.append(size)
        at += size
    done = rows[: len(starts)]
    if starts:
        _fill(view, np.array(starts), np.array(sizes), file_position, done, checked=checked)
    return Walked(len(starts), at, reason)


def _fill(view: memoryview, starts: Array, sizes: Array, file_position: int, rows: Array, *, checked: bool) -> None:
    """Reads the headers at some places of a block."""
    data = np.frombuffer(view, np.uint8)
    # A batch at the end of a file may be shorter than a header: what lies behind it reads as zeros, and is not used.
    padded = np.concatenate([data, np.zeros(RECORD_BATCH_OVERHEAD, np.uint8)]) if len(data) else data
    headers = padded[starts[:, None] + np.arange(RECORD_BATCH_OVERHEAD)].view(_V2)[:, 0]
    modern = headers["magic"] >= 2
    whole = modern & (starts + RECORD_BATCH_OVERHEAD <= len(data))
    rows["position"] = starts + file_position
    rows["size"] = sizes
    rows["base_offset"] = headers["base_offset"]
    rows["last_offset"] = headers["base_offset"] + np.where(whole, headers["last_offset_delta"], 0)
    rows["magic"] = headers["magic"]
    rows["control"] = -1
    for name, field in (
        ("base_timestamp", "base_timestamp"),
        ("max_timestamp", "max_timestamp"),
        ("producer_id", "producer_id"),
        ("producer_epoch", "producer_epoch"),
        ("base_sequence", "base_sequence"),
        ("count", "record_count"),
        ("leader_epoch", "partition_leader_epoch"),
    ):
        rows[name] = np.where(whole, headers[field], -1)
    rows["attributes"] = np.where(whole, headers["attributes"] & 0xFF, 0)
    rows["crc"] = np.where(whole, headers["crc"].astype(np.int64) & 0xFFFFFFFF, 0)
    for number in np.flatnonzero(~modern):
        _fill_legacy(view, int(starts[number]), int(sizes[number]), rows, int(number), checked=checked)
    for number in np.flatnonzero(modern):
        at, size = int(starts[number]), int(sizes[number])
        fits = bool(whole[number]) and size >= RECORD_BATCH_OVERHEAD
        rows["crc_ok"][number] = fits and (
            not checked or google_crc32c.value(bytes(view[at + CHECKSUMMED_FROM : at + size])) == rows["crc"][number]
        )
        if fits and rows["attributes"][number] & ATTRIBUTE_CONTROL:
            rows["control"][number] = control_type(view, at, at + size)


def _fill_legacy(view: memoryview, at: int, size: int, rows: Array, number: int, *, checked: bool) -> None:
    magic = int(rows["magic"][number])
    timestamp = _TIMESTAMP_V1.unpack_from(view, at + 18)[0] if magic == 1 else -1
    crc = int.from_bytes(view[at + 12 : at + 16])
    rows["attributes"][number] = view[at + 17]
    rows["crc"][number] = crc
    rows["base_timestamp"][number] = rows["max_timestamp"][number] = timestamp
    rows["crc_ok"][number] = magic >= 0 and (not checked or zlib.crc32(view[at + 16 : at + size]) == crc)


def walk(
    buffer: Array,
    filled: int,
    rows: Array,
    *,
    start: int = 0,
    file_position: int = 0,
    file_end: int | None = None,
    checked: bool = True,
    compiled: bool | None = None,
) -> Walked:
    """Reads the headers of the batches in a block, and checks them.

    Args:
        buffer: bytes, uint8, shape (n,).
        filled: how many of them are there.
        rows: of :data:`BATCH`, to be written, shape (m,).
        start: where in the buffer the first batch begins.
        file_position: of the buffer's first byte.
        file_end: bytes of the file; by default it ends with the block.
        checked: whether to compute checksums; unchecked ones count as right.
        compiled: by the compiled kernel, or the plain one; what the process has by default.

    Returns:
        What was done. Compressed batches of v0 and v1 have their last offset as base offset: :func:`old_wrappers`.
    """
    end = file_position + filled if file_end is None else file_end
    if COMPILED if compiled is None else compiled:
        found = _walk_compiled(
            buffer,
            filled,
            start,
            file_position,
            end,
            rows,
            crc32c_address(),
            crc_tables(CASTAGNOLI),
            crc_tables(IEEE),
            checked,
        )
        return Walked(*found)
    return _walk_plain(buffer, filled, start, file_position, end, rows, checked)


def old_wrappers(rows: Array) -> Array:
    """Numbers of the rows that are compressed batches of v0 and v1, whose first offset only their records tell."""
    if not (rows["magic"] < 2).any():
        return np.zeros(0, np.int64)
    old = (rows["magic"] >= 0) & (rows["magic"] < 2) & (rows["attributes"] & ATTRIBUTE_CODEC != 0)
    return np.flatnonzero(old)
