"""Kernels for the expected results of :func:`conformance.experiments.fuzz.probes.offset_probe`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

from conformance.experiments.fuzz.compiled.encode_kernels import (
    CORRUPT,
    INVALID_ARGUMENT,
    INVALID_OFFSET,
    NOTHING,
    OFFSET_OVERFLOW,
    STATE,
    be32,
    compare_file,
    error_reply,
    no_state,
    open_step,
    put_be,
    reply,
    step,
    template,
    write_file,
)
from conformance.experiments.fuzz.compiled.search_kernels import add_once, entries_below, sampled_slots, search
from conformance.experiments.fuzz.seed_files import BASE_OFFSET
from conformance.implementations.jvm.cases import ASKED
from conformance.implementations.jvm.index import CODES
from kidx.java_numbers import INT_MAX, LONG_MAX, LONG_MIN
from kidx.layout import OFFSET_INDEX
from kidx.scan.jit import kernel

if TYPE_CHECKING:
    from kidx.dialect import Dialect

_BASE: Final = BASE_OFFSET
_SIZE: Final = OFFSET_INDEX.size
_INT_MAX: Final = INT_MAX
_CRASH, _SANITY, _CLOSE = CODES["crash"], CODES["sanity_check"], CODES["close"]
_LOOKUP, _ENTRY, _UPPER_BOUND = (ASKED + CODES[name] for name in ("lookup", "entry", "fetch_upper_bound"))
_APPEND, _TRUNCATE_TO = CODES["append"], CODES["truncate_to"]
_POSITION: Final = 1 << 20
_FILE = "5.index"
_NAME: Final = template(_FILE)
_LONG_MIN: Final = LONG_MIN
_LONG_MAX: Final = LONG_MAX


def texts(dialect: Dialect) -> tuple[Any, ...]:
    """Return the error texts of a dialect."""
    scala = dialect.scala_texts
    stop = "." if scala else ""
    return (
        template(
            f"Corrupt index found, index file {f'({_FILE})' if scala else _FILE} has non-zero size but the last offset"
            f" is {{1}} which is less than the base offset {_BASE}{stop}"
        ),
        template(
            f"Index file {_FILE} is corrupt, found {{1}} bytes which is neither positive nor a multiple of"
            f" {_SIZE}{stop}"
        ),
        template(f"{'requirement failed: ' if scala else ''}Attempt to append to a full index (size = {{1}})."),
        template(
            f"Attempt to append an offset {'({1})' if scala else '{1}'} to position {{2}} no larger than the last"
            f" offset appended ({{3}}) to {_FILE}{stop}"
        ),
        template(f"Integer overflow for offset: {{1}} ({_FILE})"),
    )


@kernel
def write_cases(out: Any, octets: Any, contents: Any, ends: Any, texts: Any, close_trims: Any) -> Any:
    """Write a case for each content.

    Args:
        out: The longs to write to.
        octets: The same memory as bytes.
        contents: The bytes of all contents, one after the other.
        ends: The end of each content.
        texts: The result of :func:`texts`.
        close_trims: True if closing an index trims its file in this dialect.

    Returns:
        The end of each case, in longs.
    """
    written = np.empty(len(ends), np.int64)
    at, start = 0, 0
    for number in range(len(ends)):
        first = at
        at = _write_case(out, octets, at + 1, contents[start : ends[number]], texts, close_trims)
        out[first] = at - first - 1
        written[number] = at
        start = ends[number]
    return written


@kernel
def _write_case(out: Any, octets: Any, at: Any, original: Any, texts: Any, close_trims: Any) -> Any:
    data = original.copy()
    length = len(data)
    entries = length // _SIZE
    state = np.zeros(STATE, np.int64)
    state[0], state[1], state[2], state[3], state[4] = entries, entries, 1, length, 1
    state[5] = _last(data, entries)
    closed = no_state()
    at = write_file(out, octets, at, _NAME, data)
    for writable in range(2):
        at = open_step(out, octets, at, 0, _BASE, writable, _NAME)
        at = reply(out, at, state, NOTHING, 0, 0)
        at = _queries(out, octets, at, data, state, texts)
        if writable == 0:
            at = step(out, at, _CRASH, 0, 0, 0, 0, 0)
            at = reply(out, at, closed, NOTHING, 0, 0)
            at = compare_file(out, octets, at, _NAME, data, length, original)
    last = state[5]
    at = _append(out, octets, at, data, state, texts, last + 1, _POSITION)
    at = compare_file(out, octets, at, _NAME, data, length, original)
    at = step(out, at, _TRUNCATE_TO, 1, last, 0, 0, 0)
    _set_entries(data, state, entries_below(data, 0, _SIZE, entries, last - _BASE))
    at = reply(out, at, state, NOTHING, 0, 0)
    at = compare_file(out, octets, at, _NAME, data, length, original)
    at = _append(out, octets, at, data, state, texts, last, _POSITION)
    at = compare_file(out, octets, at, _NAME, data, length, original)
    at = step(out, at, _CLOSE, 0, 0, 0, 0, 0)
    if close_trims:
        length = state[3] = state[0] * _SIZE
        state[1] = state[0]
        state[2] = 1
    at = reply(out, at, state, NOTHING, 0, 0)
    return compare_file(out, octets, at, _NAME, data, length, original)


@kernel
def _last(data: Any, entries: Any) -> Any:
    return _BASE + be32(data, (entries - 1) * _SIZE) if entries else _BASE


@kernel
def _set_entries(data: Any, state: Any, entries: Any) -> Any:
    """Change the number of entries."""
    state[0] = entries
    state[2] = 1 if entries >= state[1] else 0
    state[5] = _last(data, entries)


@kernel
def _queries(out: Any, octets: Any, at: Any, data: Any, state: Any, texts: Any) -> Any:
    entries, length, last = state[0], state[3], state[5]
    at = step(out, at, _SANITY, 0, 0, 0, 0, 0)
    if entries and last < _BASE:
        at = error_reply(out, octets, at, state, CORRUPT, texts[0], (last,))
    elif length % _SIZE:
        at = error_reply(out, octets, at, state, CORRUPT, texts[1], (length,))
    else:
        at = reply(out, at, state, NOTHING, 0, 0)
    no_state_read = no_state()
    slots = np.empty(5, np.int64)
    sampled = sampled_slots(slots, entries)
    offsets = np.empty(17, np.int64)
    count = 0
    for place in range(sampled):
        relative = be32(data, slots[place] * _SIZE)
        for delta in range(-1, 2):
            count = add_once(offsets, count, _BASE + relative + delta)
    offsets[count], offsets[count + 1] = _LONG_MIN, _LONG_MAX
    for place in range(count + 2):
        at = step(out, at, _LOOKUP, 1, offsets[place], 0, 0, 0)
        # A target whose relative offset would wrap around is below all keys anyway.
        target = max(offsets[place], _LONG_MIN + _BASE) - _BASE
        slot, _ = search(data, 0, 4, _SIZE, entries, target)
        at = _entry(out, at, data, no_state_read, slot, True)
    for place in range(sampled):
        at = step(out, at, _ENTRY, 1, slots[place], 0, 0, 0)
        at = _entry(out, at, data, no_state_read, slots[place], True)
    for place in range(sampled):
        position = be32(data, slots[place] * _SIZE + 4)
        for size in (0, 1, _INT_MAX):
            at = step(out, at, _UPPER_BOUND, 3, _BASE, position, size, 0)
            target = position + size
            if target > _INT_MAX:
                target -= 2 * (_INT_MAX + 1)
            _, slot = search(data, 4, 4, _SIZE, entries, target)
            at = _entry(out, at, data, no_state_read, slot, False)
    return at


@kernel
def _entry(out: Any, at: Any, data: Any, state: Any, slot: Any, always: Any) -> Any:
    if slot >= 0:
        return reply(out, at, state, 2, _BASE + be32(data, slot * _SIZE), be32(data, slot * _SIZE + 4))
    if always:
        return reply(out, at, state, 2, _BASE, 0)
    return reply(out, at, state, NOTHING, 0, 0)


@kernel
def _append(out: Any, octets: Any, at: Any, data: Any, state: Any, texts: Any, offset: Any, position: Any) -> Any:
    at = step(out, at, _APPEND, 2, offset, position, 0, 0)
    if state[2]:
        return error_reply(out, octets, at, state, INVALID_ARGUMENT, texts[2], (state[0],))
    if state[0] and offset <= state[5]:
        return error_reply(out, octets, at, state, INVALID_OFFSET, texts[3], (offset, state[0], state[5]))
    if not 0 <= offset - _BASE <= _INT_MAX:
        return error_reply(out, octets, at, state, OFFSET_OVERFLOW, texts[4], (offset,))
    put_be(data, state[0] * _SIZE, 4, offset - _BASE)
    put_be(data, state[0] * _SIZE + 4, 4, position)
    _set_entries(data, state, state[0] + 1)
    return reply(out, at, state, NOTHING, 0, 0)
