"""The observation of an operation as the Java side writes it (``Reply.java``), and the reply an observation calls for.

In a lockstep every release answers every step, and nearly always what the reference said. So the reference's
observation is packed once for all releases of a dialect, and compared with the bytes of their replies; only what
differs is unpacked.
"""

from __future__ import annotations

import struct
from functools import cache
from typing import TYPE_CHECKING, Any, Final

from conformance.implementations.jvm.exceptions import SILENT
from conformance.implementations.jvm.requests import numbers_of, value_of
from conformance.operations import ERROR_KINDS, Observation, Outcome, State
from conformance.operations.index import INDEX_OPS

if TYPE_CHECKING:
    from conformance.operations import Operation

HEAD: Final = struct.Struct("=10q")
"""Error, number of values, entries, max entries, full, length, number of ``last``, ``last`` twice, bytes of text."""

_KINDS: Final = {kind: number for number, kind in enumerate(ERROR_KINDS, start=1)}
_SILENT: Final = 1 << 8
_NO_STATE: Final = (0, 0, 0, 0, -1, 0, 0)
_NOTHING: Final = (0, 0)


class UnknownExceptionError(Exception):
    """An exception that no error kind stands for; the message is Java's."""


def number_of(kind: str) -> int:
    """The number of an error kind on the Java side, with whether its text is part of the reply."""
    return _KINDS[kind] + (_SILENT if kind in SILENT else 0)


def packed(operation: Operation, observation: Observation) -> bytes | None:
    """The reply that stands for this observation; None if no reply can (a defective index may report such values)."""
    (error, value, text), state = observation
    values = () if value is None else numbers_of(INDEX_OPS[operation.name].gives, value)
    if state is None:
        told: tuple[Any, ...] = _NO_STATE
    else:
        entries, max_entries, full, length, last = state
        if max_entries is None:
            max_entries, full, length = -1, False, 0
        told = (entries, max_entries, full, length, len(last), *(last + _NOTHING)[:2])
    try:
        if error is None:
            count = -1 if value is None else len(values)
            head = HEAD.pack(0, count, *told, -1)
            return head + _longs(count).pack(*values) if count > 0 else head
        if text is None:
            return HEAD.pack(_KINDS[error], -1, *told, -1)
        words = text.encode()
        return HEAD.pack(_KINDS[error], -1, *told, len(words)) + words
    except (struct.error, KeyError, TypeError, UnicodeError):
        return None


@cache
def _longs(count: int) -> struct.Struct:
    return struct.Struct(f"={count}q")


def unpacked(name: str, reply: bytearray) -> Observation:
    """The observation in a reply to the operation of that name.

    Raises:
        UnknownExceptionError: something was thrown that is no refusal.
    """
    error, count, entries, max_entries, full, length, last_count, last_0, last_1, text_bytes = HEAD.unpack_from(reply)
    state = None
    if last_count >= 0:
        last = (last_0, last_1)[:last_count]
        if max_entries < 0:
            state = State(entries, None, None, None, last)
        else:
            state = State(entries, max_entries, full == 1, length, last)
    if not error:
        return Observation(Outcome(None, _value(name, count, reply)), state)
    text = None if text_bytes < 0 else reply[HEAD.size : HEAD.size + text_bytes].decode()
    if error < 0:
        raise UnknownExceptionError(text)
    return Observation(Outcome(ERROR_KINDS[error - 1], None, text), state)


def _value(name: str, count: int, reply: bytearray) -> Any:
    if count < 0:
        return None
    return value_of(INDEX_OPS[name].gives, _longs(count).unpack_from(reply, HEAD.size))
