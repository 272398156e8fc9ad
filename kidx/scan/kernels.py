"""The walk over a block, compiled; only imported where it is used, as numba takes a second to load."""

from __future__ import annotations

from typing import Any

import numpy as np

from kidx.records.layout import (
    ATTRIBUTE_CONTROL,
    CHECKSUMMED_FROM,
    LOG_OVERHEAD,
    MESSAGE_OVERHEAD_V0,
    RECORD_BATCH_OVERHEAD,
)
from kidx.scan import markers
from kidx.scan.checksum import CASTAGNOLI, IEEE, call_crc32c, crc32c_address, crc_tables, table_crc
from kidx.scan.compiled import kernel
from kidx.scan.walk import CORRUPT, END, FULL, MORE, Array

_control_type = kernel(markers.control_type)


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
        row["control"] = _control_type(buffer, at, at + size)


@kernel
def _walk(
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


def walk(
    buffer: Array, filled: int, start: int, file_position: int, file_end: int, rows: Array, *, checked: bool
) -> tuple[int, int, int]:
    """See :func:`kidx.scan.walk.walk`; ``file_position`` is that of the buffer's first byte."""
    tables = crc_tables(CASTAGNOLI), crc_tables(IEEE)
    found: tuple[int, int, int] = _walk(
        buffer, filled, start, file_position, file_end, rows, crc32c_address(), *tables, checked
    )
    return found
