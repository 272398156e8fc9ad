"""Kernels for the expected results of :func:`conformance.experiments.fuzz.probes.time_probe`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

from conformance.experiments.fuzz.compiled.encode_kernels import (
    CORRUPT,
    ILLEGAL_STATE,
    INVALID_ARGUMENT,
    INVALID_OFFSET,
    NOTHING,
    OFFSET_OVERFLOW,
    STATE,
    be32,
    be64,
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
from conformance.experiments.fuzz.seed_files import BASE_OFFSET, TIME
from conformance.implementations.jvm.cases import ASKED
from conformance.implementations.jvm.index import CODES
from kidx.java_numbers import INT_MAX, LONG_MAX, LONG_MIN
from kidx.layout import TIME_INDEX
from kidx.scan.jit import kernel

if TYPE_CHECKING:
    from kidx.dialect import Dialect

_BASE: Final = BASE_OFFSET
_TIME: Final = TIME
_SIZE: Final = TIME_INDEX.size
_OFFSET_AT: Final = TIME_INDEX.field("relative_offset").offset
_NO_TIMESTAMP: Final = -1
_INT_MAX: Final = INT_MAX
_LONG_MIN: Final = LONG_MIN
_LONG_MAX: Final = LONG_MAX
_CRASH, _SANITY, _CLOSE = CODES["crash"], CODES["sanity_check"], CODES["close"]
_LOOKUP, _ENTRY = ASKED + CODES["lookup"], ASKED + CODES["entry"]
_APPEND, _TRUNCATE_TO = CODES["maybe_append"], CODES["truncate_to"]
_FILE = "5.timeindex"
_NAME: Final = template(_FILE)


def texts(dialect: Dialect) -> tuple[Any, ...]:
    """Return the error texts of a dialect."""
    scala = dialect.scala_texts
    stop = "." if scala else ""
    corrupt = f"Corrupt time index found, time index file ({_FILE}) has non-zero size but the last"
    appended = "to slot {2} no larger than the last"
    return (
        template(f"{corrupt} timestamp is {{1}} which is less than the first timestamp {{2}}"),
        template(f"{corrupt} offset is {{1}} which is less than the first offset {_BASE}"),
        template(
            f"Time index file {_FILE} is corrupt, found {{1}} bytes which is neither positive nor a multiple of"
            f" {_SIZE}{stop}"
        ),
        template(f"{'requirement failed: ' if scala else ''}Attempt to append to a full time index (size = {{1}})."),
        template(f"Attempt to append an offset ({{1}}) {appended} offset appended ({{3}}) to {_FILE}{stop}"),
        template(f"Attempt to append a timestamp ({{1}}) {appended} timestamp appended ({{3}}) to {_FILE}{stop}"),
        template(f"Integer overflow for offset: {{1}} ({_FILE})"),
        template("newPosition > limit: ({1} > {2})"),
    )


@kernel
def write_cases(out: Any, octets: Any, contents: Any, ends: Any, texts: Any, close_trims: Any) -> Any:
    """Write a case for each content; see :func:`conformance.experiments.fuzz.compiled.offset.write_cases`."""
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
    state = np.zeros(STATE + 1, np.int64)  # the last one: bytes that a rejected append has left after the entries
    state[1], state[3], state[4] = entries, length, 2
    _set_entries(data, state, entries)
    closed = no_state()
    at = write_file(out, octets, at, _NAME, data)
    for writable in range(2):
        at = open_step(out, octets, at, 1, _BASE, writable, _NAME)
        at = reply(out, at, state, NOTHING, 0, 0)
        at = _queries(out, octets, at, data, state, texts)
        if writable == 0:
            at = step(out, at, _CRASH, 0, 0, 0, 0, 0)
            at = reply(out, at, closed, NOTHING, 0, 0)
            at = compare_file(out, octets, at, _NAME, data, length, original)
    time = _TIME if entries == 0 else state[5]
    later = time if time == _LONG_MAX else time + 1
    offset = state[6]
    at = _append(out, octets, at, data, state, texts, later, offset + 1)
    at = compare_file(out, octets, at, _NAME, data, length, original)
    at = step(out, at, _TRUNCATE_TO, 1, offset, 0, 0, 0)
    _set_entries(data, state, entries_below(data, _OFFSET_AT, _SIZE, entries, offset - _BASE))
    at = reply(out, at, state, NOTHING, 0, 0)
    at = compare_file(out, octets, at, _NAME, data, length, original)
    at = _append(out, octets, at, data, state, texts, later, offset)
    at = compare_file(out, octets, at, _NAME, data, length, original)
    at = step(out, at, _CLOSE, 0, 0, 0, 0, 0)
    if close_trims:
        length = state[3] = state[0] * _SIZE
        state[1] = state[0]
        state[2] = 1
    if close_trims and state[STATE]:
        at = error_reply(out, octets, at, state, INVALID_ARGUMENT, texts[7], (length + state[STATE], length))
    else:
        at = reply(out, at, state, NOTHING, 0, 0)
    return compare_file(out, octets, at, _NAME, data, length, original)


@kernel
def _set_entries(data: Any, state: Any, entries: Any) -> Any:
    """Change the number of entries; the last one is read again."""
    state[0] = entries
    state[2] = 1 if entries >= state[1] - 1 else 0
    state[5], state[6] = _NO_TIMESTAMP, _BASE
    if entries:
        state[5] = be64(data, (entries - 1) * _SIZE)
        state[6] = _BASE + be32(data, (entries - 1) * _SIZE + _OFFSET_AT)


@kernel
def _queries(out: Any, octets: Any, at: Any, data: Any, state: Any, texts: Any) -> Any:
    entries, length, time, offset = state[0], state[3], state[5], state[6]
    at = step(out, at, _SANITY, 0, 0, 0, 0, 0)
    if entries and time < be64(data, 0):
        at = error_reply(out, octets, at, state, CORRUPT, texts[0], (time, be64(data, 0)))
    elif entries and offset < _BASE:
        at = error_reply(out, octets, at, state, CORRUPT, texts[1], (offset,))
    elif length % _SIZE:
        at = error_reply(out, octets, at, state, CORRUPT, texts[2], (length,))
    else:
        at = reply(out, at, state, NOTHING, 0, 0)
    no_state_read = no_state()
    slots = np.empty(5, np.int64)
    sampled = sampled_slots(slots, entries)
    times = np.empty(17, np.int64)
    count = 0
    for place in range(sampled):
        time = be64(data, slots[place] * _SIZE)
        if time > _LONG_MIN:
            count = add_once(times, count, time - 1)
        count = add_once(times, count, time)
        if time < _LONG_MAX:
            count = add_once(times, count, time + 1)
    times[count], times[count + 1] = _LONG_MIN, _LONG_MAX
    for place in range(count + 2):
        at = step(out, at, _LOOKUP, 1, times[place], 0, 0, 0)
        slot, _ = search(data, 0, 8, _SIZE, entries, times[place])
        at = _entry(out, at, data, no_state_read, slot)
    for place in range(sampled):
        at = step(out, at, _ENTRY, 1, slots[place], 0, 0, 0)
        at = _entry(out, at, data, no_state_read, slots[place])
    return at


@kernel
def _entry(out: Any, at: Any, data: Any, state: Any, slot: Any) -> Any:
    if slot < 0:
        return reply(out, at, state, 2, _NO_TIMESTAMP, _BASE)
    return reply(out, at, state, 2, be64(data, slot * _SIZE), _BASE + be32(data, slot * _SIZE + _OFFSET_AT))


@kernel
def _append(out: Any, octets: Any, at: Any, data: Any, state: Any, texts: Any, time: Any, offset: Any) -> Any:
    entries = state[0]
    at = step(out, at, _APPEND, 3, time, offset, 0, 0)
    if state[2]:
        return error_reply(out, octets, at, state, INVALID_ARGUMENT, texts[3], (entries,))
    if entries and offset < state[6]:
        return error_reply(out, octets, at, state, INVALID_OFFSET, texts[4], (offset, entries, state[6]))
    if entries and time < state[5]:
        return error_reply(out, octets, at, state, ILLEGAL_STATE, texts[5], (time, entries, state[5]))
    if time > state[5]:
        put_be(data, entries * _SIZE, 8, time)
        if not 0 <= offset - _BASE <= _INT_MAX:
            state[STATE] = _OFFSET_AT
            return error_reply(out, octets, at, state, OFFSET_OVERFLOW, texts[6], (offset,))
        put_be(data, entries * _SIZE + _OFFSET_AT, 4, offset - _BASE)
        _set_entries(data, state, entries + 1)
    return reply(out, at, state, NOTHING, 0, 0)
