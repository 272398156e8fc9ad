"""Kernels that write steps, replies and texts, and read big-endian numbers."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from conformance.implementations.jvm.cases import AS_WRITTEN
from conformance.implementations.jvm.index import CODES
from conformance.implementations.jvm.step_batch import COMPARE, WRITE
from conformance.operations import ERROR_KINDS
from kidx.scan.jit import kernel

OPEN: Final = CODES["open"]
STATE: Final = 7
"""Number of longs of a state: entries, maximum, full, length, number of fields of the last entry, and two fields."""
_LASTS: Final = 4
"""Position in a state of the number of fields of the last entry; -1 means no state."""
_VALUES: Final = 4
"""Number of longs from the length of a reply to its values."""
CORRUPT: Final = ERROR_KINDS.index("corrupt") + 1
INVALID_ARGUMENT: Final = ERROR_KINDS.index("invalid_argument") + 1
INVALID_OFFSET: Final = ERROR_KINDS.index("invalid_offset") + 1
ILLEGAL_STATE: Final = ERROR_KINDS.index("illegal_state") + 1
OFFSET_OVERFLOW: Final = ERROR_KINDS.index("offset_overflow") + 1
UNSUPPORTED_VERSION: Final = ERROR_KINDS.index("unsupported_version") + 1
NOTHING: Final = -1
"""Number of values of a reply without a result."""
_NO_TEXT: Final = -1
_WRITE, _COMPARE, _AS_WRITTEN = WRITE, COMPARE, AS_WRITTEN
_NUMBERS: Final = 6
"""Bytes below this one in a text are placeholders: 1 for the first number, and so on."""
_DIGITS: Final = 20
_ZERO: Final = 48
_MINUS: Final = 45


def template(text: str) -> np.ndarray[tuple[int], np.dtype[np.uint8]]:
    """Return a text as bytes, in which kernels replace ``{1}`` to ``{5}`` by numbers."""
    for number in range(1, _NUMBERS):
        text = text.replace(f"{{{number}}}", chr(number))
    return np.frombuffer(text.encode(), np.uint8)


@kernel
def no_state() -> Any:
    """Return the state of a reply without a state."""
    state = np.zeros(STATE, np.int64)
    state[_LASTS] = -1
    return state


@kernel
def be32(data: Any, at: Any) -> Any:
    """Return a signed 32-bit number."""
    value = (np.int64(data[at]) << 24) | (np.int64(data[at + 1]) << 16) | (np.int64(data[at + 2]) << 8)
    value |= np.int64(data[at + 3])
    return value - (np.int64(1) << 32) if value >= (np.int64(1) << 31) else value


@kernel
def be64(data: Any, at: Any) -> Any:
    """Return a signed 64-bit number."""
    return (be32(data, at) << 32) | (be32(data, at + 4) & 0xFFFFFFFF)


@kernel
def put_be(data: Any, at: Any, size: Any, value: Any) -> Any:
    """Write a number of ``size`` bytes."""
    for place in range(size):
        data[at + place] = (value >> (8 * (size - 1 - place))) & 0xFF


@kernel
def step(out: Any, at: Any, operation: Any, count: Any, a: Any, b: Any, c: Any, d: Any) -> Any:
    """Write an operation with ``count`` of four arguments and no bytes; return the position of its reply."""
    out[at] = operation
    out[at + 1] = count
    at += 2
    for place in range(count):
        out[at + place] = a if place == 0 else b if place == 1 else c if place == 2 else d
    out[at + count] = 0
    return at + count + 1


@kernel
def named_step(out: Any, octets: Any, at: Any, operation: Any, name: Any) -> Any:
    """Write a step of the harness on a file; return the position after the file's name, for the file's length."""
    out[at] = operation
    out[at + 1] = 0
    return _name(out, octets, at + 2, name)


@kernel
def _name(out: Any, octets: Any, at: Any, name: Any) -> Any:
    out[at] = len(name)
    return put_bytes(out, octets, at + 1, name, 0, len(name))


@kernel
def put_bytes(out: Any, octets: Any, at: Any, data: Any, start: Any, size: Any) -> Any:
    """Write bytes, padded with zeros; return the next free position."""
    longs = (size + 7) // 8
    if longs:
        out[at + longs - 1] = 0
    octets[8 * at : 8 * at + size] = data[start : start + size]
    return at + longs


@kernel
def write_file(out: Any, octets: Any, at: Any, name: Any, data: Any) -> Any:
    """Write the step that gives a file its content."""
    at = named_step(out, octets, at, _WRITE, name)
    out[at] = len(data)
    return put_bytes(out, octets, at + 1, data, 0, len(data))


@kernel
def compare_file(out: Any, octets: Any, at: Any, name: Any, data: Any, size: Any, written: Any) -> Any:
    """Write the step that compares a file with the first bytes of ``data``; ``written`` is its original content."""
    at = named_step(out, octets, at, _COMPARE, name)
    same = size == len(written)
    for place in range(size):
        if not same:
            break
        same = data[place] == written[place]
    if same:
        out[at] = _AS_WRITTEN
        return at + 1
    out[at] = size
    return put_bytes(out, octets, at + 1, data, 0, size)


@kernel
def open_step(out: Any, octets: Any, at: Any, kind: Any, base_offset: Any, writable: Any, name: Any) -> Any:
    """Write the step that opens an index with a maximum of 240 bytes; return the position of its reply."""
    at = step(out, at, OPEN, 4, kind, base_offset, 240, writable) - 1
    return _name(out, octets, at, name)


@kernel
def begin_reply(out: Any, head: Any, kind: Any, count: Any) -> Any:
    """Write the kind and the number of values of the reply at ``head``; return the position of the values."""
    out[head + 1] = kind
    out[head + 2] = count
    return head + _VALUES


@kernel
def end_reply(out: Any, head: Any, at: Any, state: Any) -> Any:
    """Write the part of a reply after its values, without an error; return the position of the next step."""
    at = _put_state(out, head, at, state)
    out[at] = _NO_TEXT
    out[head] = 8 * (at - head)
    return at + 1


@kernel
def _put_state(out: Any, head: Any, at: Any, state: Any) -> Any:
    """Write the state of the reply at ``head`` and its number of longs; return the next free position."""
    begin = at
    out[head + 3] = 0
    if state[_LASTS] < 0:
        return at
    out[at] = state[0]
    at += 1
    for place in range(1, _LASTS):  # the last three may be none
        out[at] = 0 if state[1] < 0 else 1
        if state[1] >= 0:
            out[at + 1] = state[place]
            at += 1
        at += 1
    for place in range(1 + state[_LASTS]):
        out[at + place] = state[_LASTS + place]
    at += 1 + state[_LASTS]
    out[head + 3] = at - begin
    return at


@kernel
def reply(out: Any, at: Any, state: Any, count: Any, first: Any, second: Any) -> Any:
    """Write a reply without an error, with at most two values; return the position of the next step."""
    head = at
    at = begin_reply(out, head, 0, count)
    if count > 0:
        out[at] = first
        at += 1
    if count > 1:
        out[at] = second
        at += 1
    return end_reply(out, head, at, state)


@kernel
def error_reply(out: Any, octets: Any, at: Any, state: Any, kind: Any, text: Any, numbers: Any) -> Any:
    """Write a reply with an error, whose text contains numbers; return the position of the next step."""
    head = at
    at = _put_state(out, head, begin_reply(out, head, kind, NOTHING), state)
    begin = place = 8 * (at + 1)
    for byte in text:
        if byte < _NUMBERS:
            place = _put_number(octets, place, numbers[byte - 1])
        else:
            octets[place] = byte
            place += 1
    out[at] = place - begin
    out[head] = place - 8 * (head + 1)
    while place % 8:
        octets[place] = 0
        place += 1
    return place // 8


@kernel
def _put_number(octets: Any, place: Any, number: Any) -> Any:
    if number < 0:
        octets[place] = _MINUS
        place += 1
    # The smallest long has no positive counterpart, so digits are computed from negative numbers.
    rest = number if number < 0 else -number
    digits = 1
    left = rest
    while left <= -10:
        left = -((-left) // 10) if left > -9223372036854775808 else -922337203685477580
        digits += 1
    for digit in range(digits - 1, -1, -1):
        quotient = -((-rest) // 10) if rest > -9223372036854775808 else -922337203685477580
        octets[place + digit] = _ZERO - (rest - 10 * quotient)
        rest = quotient
    return place + digits
