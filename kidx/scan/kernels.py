"""The walk over a block, compiled; only imported where it is used, as numba takes a second to load."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from kidx.records.layout import (
    ATTRIBUTE_CODEC,
    ATTRIBUTE_CONTROL,
    ATTRIBUTE_LOG_APPEND_TIME,
    CHECKSUMMED_FROM,
    LOG_OVERHEAD,
    MESSAGE_OVERHEAD_V0,
    RECORD_BATCH_OVERHEAD,
)
from kidx.scan import markers
from kidx.scan.checksum import CASTAGNOLI, IEEE, crc32c, crc32c_address, crc_tables, load_be32, load_be64, table_crc
from kidx.scan.compiled import kernel
from kidx.scan.walk import CORRUPT, END, FULL, MORE, ODD, Array

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


STATE: Final = ("before_last", "before_position", "before_max", "before_max_offset", "batches", "records", "epoch")
"""What goes on from batch to batch in :func:`follow`; how many entries have been handed out comes behind it."""

_NEVER: Final = 2**63 - 1
"""A key that no batch reaches."""


@kernel
def _key(keys: Any, number: int) -> Any:
    return keys[number] if number < len(keys) else _NEVER


@kernel
def _hold(
    fact: Any, first: int, last: int, stamp: int, position: int, size: int, attributes: int, largest: int
) -> None:
    """What is to be known of a time entry: the batch that holds its offset."""
    fact["in_log"] = True
    fact["holder_base"] = first
    fact["holder_last"] = last
    fact["holder_max"] = stamp
    fact["holder_position"] = position
    fact["holder_size"] = size
    fact["holder_magic"] = 2
    fact["holder_attributes"] = attributes
    fact["before_max"] = largest


@kernel
def _point(
    fact: Any, last: int, before_last: int, before_position: int, position: int, largest: int, largest_offset: int
) -> None:
    """What is to be known of an offset entry: the batch that it points at, and those before it."""
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
    """See :func:`follow`. What goes on from batch to batch is in local variables, which become registers."""
    at, reason = start, MORE
    pointer = buffer.ctypes.data
    before_last, before_position, largest, largest_offset = state[0], state[1], state[2], state[3]
    batches, records, epoch = state[4], state[5], state[6]
    by_position, by_offset, by_time = state[7], state[8], state[9]
    next_position, next_offset = _key(positions, by_position), _key(offsets, by_offset)
    next_time = _key(times, by_time)
    while filled - at >= RECORD_BATCH_OVERHEAD:
        size = LOG_OVERHEAD + load_be32(pointer + at + 8)
        first, delta = load_be64(pointer + at), load_be32(pointer + at + 23)
        last, position = first + delta, file_position + at
        if size > filled - at or size < RECORD_BATCH_OVERHEAD:
            reason = MORE if size >= RECORD_BATCH_OVERHEAD and size <= file_end - position else ODD
            break
        # Epoch, magic and attributes each share a word with what is not looked at here.
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
        stamp = load_be64(pointer + at + 35)
        while next_time <= last:
            _hold(time_facts[time_slots[by_time]], first, last, stamp, position, size, attributes, largest)
            by_time += 1
            next_time = _key(times, by_time)
        if stamp > largest:
            largest, largest_offset = stamp, last
        while next_position == position:
            place = offset_facts[position_slots[by_position]]
            _point(place, last, before_last, before_position, position, largest, largest_offset)
            by_position += 1
            next_position = _key(positions, by_position)
        while next_offset <= last:
            reached = offset_facts[offset_slots[by_offset]]
            reached["in_log"] = True
            reached["ends_batch"] = next_offset == last
            by_offset += 1
            next_offset = _key(offsets, by_offset)
        before_last, before_position = last, position
        batches, records = batches + 1, records + delta + 1
        at += size
    if reason == MORE and file_end - (file_position + at) < RECORD_BATCH_OVERHEAD:
        reason = ODD  # the last few bytes are looked at by the walk
    state[0], state[1], state[2], state[3] = before_last, before_position, largest, largest_offset
    state[4], state[5] = batches, records
    state[7], state[8], state[9] = by_position, by_offset, by_time
    return at, reason


def follow(block: tuple[Any, ...], base: int, state: Array, places: tuple[Array, ...]) -> tuple[int, int]:
    """Takes ordinary batches into account without a row for each.

    They are v2, of the epoch before, of no transaction, have the right checksum and all offsets from the expected one
    on, and any entry that points into one points at its first byte.

    Args:
        block: buffer, bytes in it, where the next batch begins, position of the buffer, end of the file.
        base: offset of the segment.
        state: int64, by :data:`STATE`, then how many entries have been handed out, by position, offset and time.
        places: of those three, keys in order and slots; then the facts about both indexes, to be written.

    Returns:
        Where in the buffer it stopped, and why: MORE, or ODD at what is not ordinary, the end of the file included.
    """
    arguments: tuple[Any, ...] = (*block, base, state, *places, crc32c_address(), crc_tables(CASTAGNOLI))
    found: tuple[int, int] = _follow(*arguments)
    return found


@kernel
def _entry_slots(positions: Any, interval: int, found: Any) -> int:
    count, last = 0, 0
    for slot in range(len(positions)):
        if positions[slot] - last > interval:
            found[count] = slot
            count += 1
            last = positions[slot]
    return count


def entry_slots(positions: Array, interval: int) -> Array:
    """Numbers of the batches that get an index entry (SEG-4): int64, ascending."""
    found = np.empty(len(positions), np.int64)
    return found[: _entry_slots(positions, interval, found)]


_NEAR: Final = 8
"""Keys behind the last answer in which the next one is looked for first: they lie beside it in memory."""


@kernel
def _guess_slots(keys: Any, targets: Any, slots: Any) -> None:
    """The last key not above each target, among increasing keys: a guess, then steps that double, then halves.

    What was found last is the guess if the target follows closely, as in sorted ones.
    """
    count = len(keys)
    first, last = keys[0], keys[count - 1]
    scale = (count - 1) / max(1.0, np.float64(last) - np.float64(first))
    low: Any = 0
    for number in range(len(targets)):
        target = targets[number]
        if target < first:
            slots[number] = -1
            continue
        if target >= last:
            slots[number] = count - 1
            continue
        if target < keys[low] or target >= keys[min(count - 1, low + _NEAR)]:
            low = min(count - 2, np.int64((np.float64(target) - np.float64(first)) * scale))
        step = 1
        if keys[low] <= target:
            high = low + 1
            while high < count and keys[high] <= target:
                low, step = high, 2 * step
                high = min(count, low + step)
        else:
            high, low = low, low - 1
            while keys[low] > target:
                high, step = low, 2 * step
                low = max(0, high - step)
        while high - low > 1:
            middle = (low + high) >> 1
            if keys[middle] <= target:
                low = middle
            else:
                high = middle
        slots[number] = low


@kernel
def _search_slots(keys: Any, targets: Any, warm: int, slots: Any) -> None:
    """What :func:`kidx.search.warm_search` finds as lower bound, also where keys do not increase."""
    count = len(keys)
    for number in range(len(targets)):
        target = targets[number]
        low, high = max(0, count - 1 - warm), count - 1
        if keys[low] >= target:
            if keys[0] > target:
                slots[number] = -1
                continue
            low, high = 0, low
        while low < high:
            middle = (low + high + 1) >> 1
            if keys[middle] > target:
                high = middle - 1
            elif keys[middle] < target:
                low = middle
            else:
                low = high = middle
        slots[number] = low


@kernel
def _answers(keys: Any, values: Any, slots: Any, first: int, second: int, found: Any) -> None:
    for number in range(len(slots)):
        slot = slots[number]
        found[number, 0] = keys[slot] if slot >= 0 else first
        found[number, 1] = values[slot] if slot >= 0 else second


def answers(keys: Array, values: Array, slots: Array, none: tuple[int, int]) -> Array:
    """Key and value of some slots, ``none`` for slot -1: int64, shape (n, 2)."""
    found = np.empty((len(slots), 2), np.int64)
    _answers(keys, values, slots, *none, found)
    return found


def lookup_slots(keys: Array, targets: Array, warm: int, *, ordered: bool) -> Array:
    """Slots that answer some targets, -1 for none: int64; ``warm`` entries make the warm section."""
    slots = np.full(len(targets), -1, np.int64)
    if len(keys) and ordered:
        _guess_slots(keys, targets, slots)
    elif len(keys):
        _search_slots(keys, targets, warm, slots)
    return slots


@kernel
def _varint(buffer: Any, at: int, end: int, most: int) -> tuple[Any, int]:
    """A zigzag varint of up to so many bytes, 5 for an ``int``, 10 for a ``long``, and the position behind it.

    The position is -1 if there is no such number before ``end``, or ``at`` is -1.
    """
    value = np.int64(0)
    for number in range(most):
        if at < 0 or at >= end:
            break
        byte = np.int64(buffer[at])
        value |= (byte & 0x7F) << (7 * number)
        at += 1
        if byte < 128:
            if most == 5:
                value &= 0xFFFFFFFF
            return ((value >> 1) & 0x7FFFFFFFFFFFFFFF) ^ -(value & 1), at
    return value, -1


@kernel
def _behind(buffer: Any, at: int, end: int) -> tuple[Any, int, int]:
    """Bytes behind their size: the size, negative for null, where they begin, and the position behind them or -1."""
    size, begin = _varint(buffer, at, end, 5)
    behind = begin + max(np.int64(0), size)
    return size, begin, behind if begin >= 0 and behind <= end else -1


@kernel
def _read_records(
    buffer: Any, at: int, end: int, base_offset: int, base_timestamp: int, fixed: bool, rows: Any
) -> bool:
    """Reads the records of one batch, as many as there are rows; False where the reference finds anything wrong."""
    for number in range(len(rows)):
        length, at = _varint(buffer, at, end, 5)
        stop = at + length
        if at < 0 or length < 1 or stop > end:
            return False
        row = rows[number]
        stamp, at = _varint(buffer, at + 1, stop, 10)
        delta, at = _varint(buffer, at, stop, 5)
        row["offset"] = base_offset + delta
        row["timestamp"] = base_timestamp if fixed else base_timestamp + stamp
        row["key_size"], row["key_position"], at = _behind(buffer, at, stop)
        row["value_size"], row["value_position"], at = _behind(buffer, at, stop)
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
        return bool(_read_records(buffer, start, end, base_offset, base_timestamp, fixed, rows))


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
        part: Any = rows[filled : filled + count]
        begin = at + RECORD_BATCH_OVERHEAD
        if count and not _read_records(buffer, begin, at + size, batch["base_offset"], stamp, fixed, part):
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
