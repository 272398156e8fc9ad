"""Batch headers of a ``.log`` as rows: one walk over a block (RB-1, RB-4).

A compiled kernel and a plain implementation give the same rows. In the plain one, Python finds the starts of the
batches and numpy reads their headers.
"""

from __future__ import annotations

import zlib
from typing import Final

import google_crc32c
import numpy as np

from kidx.layout import (
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
from kidx.scan.jit import COMPILED
from kidx.scan.rows import CORRUPT, END, FULL, MORE, Array, WalkResult, control_type

_V2: Final = np.dtype([(field.name, f">{field.code}") for field in RECORD_BATCH.fields])
_TIMESTAMP_V1: Final = MESSAGE_V1.codec("timestamp")


def _walk_plain(
    buffer: Array, filled: int, start: int, file_position: int, file_end: int, rows: Array, checked: bool
) -> WalkResult:
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
    return WalkResult(len(starts), at, reason)


def _fill(view: memoryview, starts: Array, sizes: Array, file_position: int, rows: Array, *, checked: bool) -> None:
    """Read the headers at some positions of a block."""
    data = np.frombuffer(view, np.uint8)
    # A batch at the end of a file may be shorter than a header: the bytes after it read as zeros, and are not used.
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


def batch_size(buffer: Array) -> int:
    """Return the total size of the batch at the start of the buffer, from its prefix."""
    return LOG_OVERHEAD + int(PREFIX.struct.unpack_from(buffer.data)[1])


def fill_large(buffer: Array, size: int, file_position: int, rows: Array) -> int:
    """Read the header of a batch of which only the beginning is in the buffer.

    Args:
        buffer: bytes, uint8, at least a header.
        size: total size of the batch in bytes.
        file_position: position of the buffer's first byte in the file.
        rows: array of one :data:`BATCH` that is written; its checksum counts as right.

    Returns:
        The position in the batch at which the checksum starts.
    """
    _fill(buffer.data, np.zeros(1, np.int64), np.array([len(buffer)]), file_position, rows, checked=False)
    rows["size"] = size
    return CHECKSUMMED_FROM if int(rows["magic"][0]) >= 2 else LOG_OVERHEAD + 4


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
) -> WalkResult:
    """Read and check the headers of the batches in a block.

    Args:
        buffer: bytes, uint8, shape (n,).
        filled: number of bytes in the buffer.
        rows: array of :data:`BATCH` that is written, shape (m,).
        start: position of the first batch in the buffer.
        file_position: position of the buffer's first byte in the file.
        file_end: size of the file; by default it ends with the block.
        checked: True to compute checksums; if False, all checksums count as right.
        compiled: True for the compiled kernel, False for the plain one; by default the one of this process.

    Returns:
        Result of the walk. Compressed batches of v0 and v1 have their last offset as base offset: :func:`old_wrappers`.
    """
    end = file_position + filled if file_end is None else file_end
    if COMPILED if compiled is None else compiled:
        from kidx.scan import batch_kernels  # noqa: PLC0415 -- numba takes a second to load

        return WalkResult(*batch_kernels.walk(buffer, filled, start, file_position, end, rows, checked=checked))
    return _walk_plain(buffer, filled, start, file_position, end, rows, checked)


def old_wrappers(rows: Array) -> Array:
    """Return the numbers of the rows of compressed v0 and v1 batches, whose first offset is in their records."""
    if not (rows["magic"] < 2).any():
        return np.zeros(0, np.int64)
    old = (rows["magic"] >= 0) & (rows["magic"] < 2) & (rows["attributes"] & ATTRIBUTE_CODEC != 0)
    return np.flatnonzero(old)
