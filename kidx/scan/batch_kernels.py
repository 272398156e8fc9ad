"""Compiled walk over the batches of a block; imported only where it is used, because numba takes a second to load."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from kidx.layout import (
    ATTRIBUTE_CONTROL,
    CHECKSUMMED_FROM,
    LOG_OVERHEAD,
    MESSAGE_OVERHEAD_V0,
    RECORD_BATCH_OVERHEAD,
)
from kidx.scan import rows
from kidx.scan.checksum import CASTAGNOLI, IEEE, crc32c, crc32c_address, crc_tables, load_be32, load_be64, table_crc
from kidx.scan.jit import kernel
from kidx.scan.rows import CORRUPT, END, FULL, MORE, ODD, Array

_control_type = kernel(rows.control_type)


@kernel
def _integer(buffer: Any, position: int, size: int) -> Any:
    """Return a signed big-endian number; compiled, the loop becomes one load."""
    value = np.int64(buffer[position])
    if value > 127:
        value -= 256
    for index in range(1, size):
        value = (value << 8) | np.int64(buffer[position + index])
    return value


@kernel
def _read_old(row: Any, buffer: Any, at: int, size: int, ieee: Any, checked: bool) -> None:
    """Read the header of a batch of v0 or v1, or of a negative magic; ``MESSAGE_V1`` in the layout has the positions.

    ``ieee`` are the tables of CRC-32.
    """
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
    """Read the header of a v2 batch; ``RECORD_BATCH`` in :mod:`kidx.layout` has the positions of its fields.

    ``address`` is the address of the C function for CRC-32C, or 0, and ``castagnoli`` are tables to use instead.
    """
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
    row["crc_ok"] = not checked or crc32c(address, castagnoli, buffer, start, at + size) == crc
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
    """See :func:`walk`; :func:`_read_new` and :func:`_read_old` explain ``address``, ``castagnoli`` and ``ieee``."""
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
    """See :func:`kidx.scan.batch_headers.walk`; ``file_position`` is the position of the buffer's first byte."""
    tables = crc_tables(CASTAGNOLI), crc_tables(IEEE)
    found: tuple[int, int, int] = _walk(
        buffer, filled, start, file_position, file_end, rows, crc32c_address(), *tables, checked
    )
    return found


STATE: Final = ("before_last", "before_position", "before_max", "before_max_offset", "batches", "records", "epoch")
"""Numbers that :func:`follow` carries from batch to batch; the numbers of entries already assigned follow them."""

_NEVER: Final = 2**63 - 1
"""Key that no batch reaches."""


@kernel
def _key(keys: Any, number: int) -> Any:
    return keys[number] if number < len(keys) else _NEVER


@kernel
def _hold(
    fact: Any, first: int, last: int, timestamp: int, position: int, size: int, attributes: int, largest: int
) -> None:
    """Write the facts about a time entry: the batch that contains its offset."""
    fact["in_log"] = True
    fact["holder_base"] = first
    fact["holder_last"] = last
    fact["holder_max"] = timestamp
    fact["holder_position"] = position
    fact["holder_size"] = size
    fact["holder_magic"] = 2
    fact["holder_attributes"] = attributes
    fact["before_max"] = largest


@kernel
def _point(
    fact: Any, last: int, before_last: int, before_position: int, position: int, largest: int, largest_offset: int
) -> None:
    """Write the facts about an offset entry: the batch that it points at, and the batches before it."""
    fact["at_batch"] = True
    fact["batch_last"] = last
    fact["before_last"] = before_last
    fact["before_position"] = before_position
    fact["around_position"] = position
    fact["running_timestamp"] = largest
    fact["running_offset"] = largest_offset


@kernel
def _follow(
    buffer: Any,
    filled: int,
    start: int,
    file_position: int,
    file_end: int,
    base: int,
    state: Any,
    positions: Any,
    position_slots: Any,
    offsets: Any,
    offset_slots: Any,
    times: Any,
    time_slots: Any,
    offset_facts: Any,
    time_facts: Any,
    address: int,
    castagnoli: Any,
) -> tuple[int, int]:
    """See :func:`follow`. The state is in local variables, which become registers."""
    at, reason = start, MORE
    pointer = buffer.ctypes.data
    before_last, before_position, largest, largest_offset = state[0], state[1], state[2], state[3]
    batches, records, epoch = state[4], state[5], state[6]
    at_position, at_offset, at_time = state[7], state[8], state[9]
    next_position, next_offset = _key(positions, at_position), _key(offsets, at_offset)
    next_time = _key(times, at_time)
    while filled - at >= RECORD_BATCH_OVERHEAD:
        size = LOG_OVERHEAD + load_be32(pointer + at + 8)
        first, delta = load_be64(pointer + at), load_be32(pointer + at + 23)
        last, position = first + delta, file_position + at
        if size > filled - at or size < RECORD_BATCH_OVERHEAD:
            reason = MORE if size >= RECORD_BATCH_OVERHEAD and size <= file_end - position else ODD
            break
        # Epoch, magic and attributes each share a word with bytes that are ignored here.
        magic = (load_be32(pointer + at + 13)) & 0xFF
        attributes = load_be32(pointer + at + 19) & 0xFF
        if (
            magic != 2
            or first != before_last + 1
            or delta < 0
            or last - base > 2147483647
            or load_be32(pointer + at + 12) != epoch
            or attributes & 0x30
            or load_be32(pointer + at + 57) != delta + 1
            or (next_position < position + size and next_position != position)
        ):
            reason = ODD
            break
        begin = at + CHECKSUMMED_FROM
        if crc32c(address, castagnoli, buffer, begin, at + size) != load_be32(pointer + at + 17) & 0xFFFFFFFF:
            reason = ODD
            break
        timestamp = load_be64(pointer + at + 35)
        while next_time <= last:
            _hold(time_facts[time_slots[at_time]], first, last, timestamp, position, size, attributes, largest)
            at_time += 1
            next_time = _key(times, at_time)
        if timestamp > largest:
            largest, largest_offset = timestamp, last
        while next_position == position:
            fact = offset_facts[position_slots[at_position]]
            _point(fact, last, before_last, before_position, position, largest, largest_offset)
            at_position += 1
            next_position = _key(positions, at_position)
        while next_offset <= last:
            reached = offset_facts[offset_slots[at_offset]]
            reached["in_log"] = True
            reached["ends_batch"] = next_offset == last
            at_offset += 1
            next_offset = _key(offsets, at_offset)
        before_last, before_position = last, position
        batches, records = batches + 1, records + delta + 1
        at += size
    if reason == MORE and file_end - (file_position + at) < RECORD_BATCH_OVERHEAD:
        reason = ODD  # the walk reads the last few bytes
    state[0], state[1], state[2], state[3] = before_last, before_position, largest, largest_offset
    state[4], state[5] = batches, records
    state[7], state[8], state[9] = at_position, at_offset, at_time
    return at, reason


def follow(block: tuple[Any, ...], base: int, state: Array, places: tuple[Array, ...]) -> tuple[int, int]:
    """Process ordinary batches without a row for each.

    An ordinary batch is v2, has the leader epoch of the batch before it, and belongs to no transaction. Its checksum is
    right, its offsets continue the offsets before it without a gap, and no index entry points into its middle.

    Args:
        block: buffer, number of bytes in it, start of the next batch, position of the buffer, end of the file.
        base: base offset of the segment.
        state: int64, as :data:`STATE`, then the number of entries already assigned, by position, offset and time.
        places: sorted keys and slots of the entries by position, by offset and by time; then the facts about the
            entries of both indexes, which are written.

    Returns:
        Position in the buffer where it stopped, and the reason: MORE, or ODD at a batch that is not ordinary, and at
            the end of the file.
    """
    arguments: tuple[Any, ...] = (*block, base, state, *places, crc32c_address(), crc_tables(CASTAGNOLI))
    found: tuple[int, int] = _follow(*arguments)
    return found
