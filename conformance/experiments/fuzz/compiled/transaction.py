"""Kernels for the expected results of :func:`conformance.experiments.fuzz.probes.transaction_probe`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

from conformance.experiments.fuzz.compiled.encode_kernels import (
    CORRUPT,
    NOTHING,
    STATE,
    UNSUPPORTED_VERSION,
    be64,
    begin_reply,
    compare_file,
    end_reply,
    error_reply,
    no_state,
    open_step,
    put_be,
    reply,
    step,
    template,
    write_file,
)
from conformance.experiments.fuzz.compiled.search_kernels import sampled_slots
from conformance.experiments.fuzz.seed_files import BASE_OFFSET
from conformance.implementations.jvm.cases import ASKED
from conformance.implementations.jvm.index import CODES
from kidx.java_numbers import LONG_MAX
from kidx.layout import ABORTED_TXN
from kidx.scan.jit import kernel

if TYPE_CHECKING:
    from kidx.dialect import Dialect

_BASE: Final = BASE_OFFSET
_SIZE: Final = ABORTED_TXN.size
_LONG_MAX: Final = LONG_MAX
_PRODUCER, _FIRST, _LAST, _STABLE = (
    ABORTED_TXN.field(name).offset for name in ("producer_id", "first_offset", "last_offset", "last_stable_offset")
)
_SANITY, _CLOSE = CODES["sanity_check"], CODES["close"]
_ALL, _COLLECT = ASKED + CODES["all_aborted"], ASKED + CODES["collect_aborted"]
_APPEND, _TRUNCATE_TO = CODES["append_aborted"], CODES["truncate_to"]
_APPENDED: Final = 9
_TRANSACTION: Final = 4
"""Number of values of a transaction in a reply."""
_FILE = "5.txnindex"
_NAME: Final = template(_FILE)


def texts(dialect: Dialect) -> tuple[Any, ...]:
    """Return the error texts of a dialect."""
    supported = "supported version range is 0 to 0" if dialect.strict_txn_version else "current version is 0"
    version = "version={1}, " if dialect.txn_text_has_version else ""
    fields = (
        f"producerId={{2}}, firstOffset={{3}}, lastOffset={{4}}, lastStableOffset={{5}}) in index {_FILE}"
        f" is less than start offset {_BASE}"
    )
    return (
        template(f"Unexpected aborted transaction version {{1}} in transaction index {_FILE}, {supported}"),
        template(f"Last offset of aborted transaction AbortedTxn({version}{fields}"),
    )


@kernel
def write_cases(out: Any, octets: Any, contents: Any, ends: Any, texts: Any, strict: Any) -> Any:
    """Write a case for each content; ``strict`` is True if the dialect checks the versions of transactions."""
    written = np.empty(len(ends), np.int64)
    at, start = 0, 0
    for number in range(len(ends)):
        first = at
        at = _write_case(out, octets, at + 1, contents[start : ends[number]], texts, strict)
        out[first] = at - first - 1
        written[number] = at
        start = ends[number]
    return written


@kernel
def _version(data: Any, slot: Any, strict: Any) -> Any:
    """Return the version of an entry, as the dialect reads it."""
    high = np.int64(data[slot * _SIZE])
    high = high - 256 if high >= 128 else high
    return high * 256 + data[slot * _SIZE + 1] if strict else high


@kernel
def _is_rejected(version: Any, strict: Any) -> Any:
    return version > 0 or (version < 0 and strict)


@kernel
def _write_case(out: Any, octets: Any, at: Any, data: Any, texts: Any, strict: Any) -> Any:
    length = len(data)
    count = length // _SIZE
    # Up to the first record with a rejected version.
    readable = count
    for slot in range(count):
        if _is_rejected(_version(data, slot, strict), strict):
            readable = slot
            break
    state = np.zeros(STATE, np.int64)
    state[0], state[1] = count, -1
    at = write_file(out, octets, at, _NAME, data)
    at = open_step(out, octets, at, 2, _BASE, 1, _NAME)
    at = reply(out, at, state, NOTHING, 0, 0)
    at = step(out, at, _SANITY, 0, 0, 0, 0, 0)
    at = _checked(out, octets, at, data, state, texts, readable, count, strict)
    no_state_read = no_state()
    at = step(out, at, _ALL, 0, 0, 0, 0, 0)
    if readable < count:
        at = _unsupported(out, octets, at, data, no_state_read, texts, readable, strict)
    else:
        head = at
        at = begin_reply(out, head, 0, 1 + _TRANSACTION * count)
        out[at] = count
        at += 1
        for slot in range(count):
            at = _put_transaction(out, at, data, slot)
        at = end_reply(out, head, at, no_state_read)
    at, bound = _collections(out, octets, at, data, no_state_read, texts, readable, count, strict)
    return _changes(out, octets, at, data, state, texts, readable, bound, strict)


@kernel
def _collections(
    out: Any, octets: Any, at: Any, data: Any, state: Any, texts: Any, readable: Any, count: Any, strict: Any
) -> Any:
    """Write the queries; return the position of the next step, and the offset of the following truncation."""
    slots = np.empty(5, np.int64)
    sampled = sampled_slots(slots, count)
    at = _collect(out, octets, at, data, state, texts, readable, count, 0, _LONG_MAX, strict)
    bound = np.int64(_BASE)
    for place in range(sampled):
        first = max(0, be64(data, slots[place] * _SIZE + _FIRST))
        bound = be64(data, slots[place] * _SIZE + _LAST)
        last = max(0, bound)
        stable = max(0, be64(data, slots[place] * _SIZE + _STABLE))
        at = _collect(out, octets, at, data, state, texts, readable, count, first, last, strict)
        at = _collect(out, octets, at, data, state, texts, readable, count, last, stable, strict)
        at = _collect(out, octets, at, data, state, texts, readable, count, stable, stable, strict)
    return at, max(0, min(bound, _LONG_MAX - 1))


@kernel
def _changes(
    out: Any, octets: Any, at: Any, data: Any, state: Any, texts: Any, readable: Any, bound: Any, strict: Any
) -> Any:
    length, count = len(data), state[0]
    at = step(out, at, _TRUNCATE_TO, 1, bound, 0, 0, 0)
    cut = readable
    for slot in range(readable):
        if be64(data, slot * _SIZE + _LAST) >= bound:
            cut = slot
            break
    if cut < readable:
        length = cut * _SIZE
        state[0] = cut
        if cut:
            state[4], state[5] = 1, be64(data, (cut - 1) * _SIZE + _LAST)
        at = reply(out, at, state, NOTHING, 0, 0)
    elif readable < count:
        at = _unsupported(out, octets, at, data, state, texts, readable, strict)
    else:
        at = reply(out, at, state, NOTHING, 0, 0)
    at = compare_file(out, octets, at, _NAME, data, length, data)
    after = np.zeros(length + _SIZE, np.uint8)
    after[:length] = data[:length]
    at = step(out, at, _APPEND, 4, _APPENDED, 0, bound + 1, bound + 1)
    put_be(after, length + _PRODUCER, 8, _APPENDED)
    put_be(after, length + _LAST, 8, bound + 1)
    put_be(after, length + _STABLE, 8, bound + 1)
    length += _SIZE
    state[0], state[4], state[5] = length // _SIZE, 1, bound + 1
    at = reply(out, at, state, NOTHING, 0, 0)
    at = compare_file(out, octets, at, _NAME, after, length, data)
    at = step(out, at, _CLOSE, 0, 0, 0, 0, 0)
    state[0] = 0
    at = reply(out, at, state, NOTHING, 0, 0)
    return compare_file(out, octets, at, _NAME, after, length, data)


@kernel
def _unsupported(out: Any, octets: Any, at: Any, data: Any, state: Any, texts: Any, slot: Any, strict: Any) -> Any:
    version = _version(data, slot, strict)
    return error_reply(out, octets, at, state, UNSUPPORTED_VERSION, texts[0], (version,))


@kernel
def _checked(
    out: Any, octets: Any, at: Any, data: Any, state: Any, texts: Any, readable: Any, count: Any, strict: Any
) -> Any:
    for slot in range(readable):
        place = slot * _SIZE
        last = be64(data, place + _LAST)
        if last < _BASE:
            producer, first = be64(data, place + _PRODUCER), be64(data, place + _FIRST)
            numbers = (_version(data, slot, strict), producer, first, last, be64(data, place + _STABLE))
            return error_reply(out, octets, at, state, CORRUPT, texts[1], numbers)
    if readable < count:
        return _unsupported(out, octets, at, data, state, texts, readable, strict)
    return reply(out, at, state, NOTHING, 0, 0)


@kernel
def _collect(
    out: Any,
    octets: Any,
    at: Any,
    data: Any,
    state: Any,
    texts: Any,
    readable: Any,
    count: Any,
    fetched: Any,
    bound: Any,
    strict: Any,
) -> Any:
    at = step(out, at, _COLLECT, 2, fetched, bound, 0, 0)
    head = at
    values = begin_reply(out, head, 0, 1)
    at = values + 1
    complete = 0
    found = 0
    for slot in range(readable):
        place = slot * _SIZE
        if be64(data, place + _LAST) >= fetched and be64(data, place + _FIRST) < bound:
            at = _put_transaction(out, at, data, slot)
            found += 1
        if be64(data, place + _STABLE) >= bound:
            complete = 1
            break
    if not complete and readable < count:
        return _unsupported(out, octets, head, data, state, texts, readable, strict)
    out[values], out[at] = found, complete
    at += 1
    begin_reply(out, head, 0, at - values)
    return end_reply(out, head, at, state)


@kernel
def _put_transaction(out: Any, at: Any, data: Any, slot: Any) -> Any:
    for field, place in enumerate((_PRODUCER, _FIRST, _LAST, _STABLE)):
        out[at + field] = be64(data, slot * _SIZE + place)
    return at + _TRANSACTION
