"""Validation of the replies of the line protocol, operation by operation.

The JSON Schema ``conformance/schemas/protocol.json`` defines the same for readers and for other languages; a test
checks that both accept the same replies. Replies are read twice in every step of a lockstep, so this is plain code: one
takes about a microsecond.

Numbers are checked strictly. In Python ``7.0 == 7`` and ``True == 1``, so a program that stores 64-bit integers in
doubles, or replies 1 for true, would otherwise agree with the reference until the numbers get large.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, NamedTuple

from conformance.operations import EFFECTS, ERROR_KINDS, KINDS, OK, UNSUPPORTED, Effect, Json, Outcome, State
from conformance.operations.index import INDEX_OPS
from conformance.operations.index_capabilities import INDEX_CAPABILITIES
from conformance.operations.op import Shape
from conformance.quoting import quoted
from kidx.java_numbers import LONG_MAX, LONG_MIN

FAILURE: Final = "failure"
"""Error of an outcome that is not one of Kafka's errors: a crash, a late reply or a malformed reply."""

WAITED: Final = ("gave no reply within", "did not read its input within")
"""Beginnings of the text of a failure for which the harness had to wait until a deadline."""

STDERR_SAYS: Final = "; its stderr says:\n"
"""Separator in the text of a failure between the description and the program's output."""

OUT_OF_MEMORY: Final = "out_of_memory"
"""Error of an outcome without information.

Kafka allocates the size in a corrupt record before it looks for its bytes, and
the outcome with a larger heap is unknown. Such a reply ends the example for that implementation.
"""

ESSENTIAL: Final = frozenset(name for name, effect in EFFECTS.items() if effect is not Effect.DAMAGES)
"""Operations that a machine cannot skip: after them it corrupts the file, or opens another file."""


class MalformedReplyError(ValueError):
    """Reply that the protocol does not allow; the message states what was expected."""


class About(NamedTuple):
    """Description of a program in its reply to ``start``."""

    name: str
    version: str
    language: str
    kinds: tuple[str, ...]
    capabilities: frozenset[str] = frozenset(INDEX_CAPABILITIES)


def outcome_from(operation: str, reply: Any) -> Outcome:
    """Return the outcome of a reply to an operation.

    Raises:
        MalformedReplyError: It is not a reply to this operation.
    """
    if isinstance(reply, dict):
        if operation in SHAPES and "ok" in reply and len(reply) == 1:
            value = SHAPES[operation](reply["ok"])
            return OK if value is None else Outcome(None, value)
        if "error" in reply:
            return _refusal(reply)
        if reply == {"unsupported": True} and reply["unsupported"] is True:
            return UNSUPPORTED
    raise MalformedReplyError('a reply is {"ok": VALUE}, {"error": KIND, "message": TEXT} or {"unsupported": true}')


def state_from(kind: str, reply: Any, *, is_open: bool = False) -> State | Outcome:
    """Return the state in a reply to ``state``, for an index of this kind; or the error in it.

    Args:
        kind: The kind of the index.
        reply: The reply to ``state``.
        is_open: True if the index is open: then only a reply without ``state`` support may omit it.

    Raises:
        MalformedReplyError: Fields are missing, unknown, or not numbers; or an open index replies with an error.
    """
    if not isinstance(reply, dict) or "ok" not in reply or len(reply) != 1:
        refusal = outcome_from("state", reply)
        if is_open and refusal != UNSUPPORTED:
            raise MalformedReplyError("an open index returns its state, or declares state as unsupported")
        return refusal
    value = reply["ok"]
    names = _STATE_OF_TRANSACTIONS if kind == "transaction" else _STATE
    if not isinstance(value, dict) or value.keys() != names:
        raise MalformedReplyError(f"the state of an index of kind {kind} is an object of {', '.join(sorted(names))}")
    last = value["last"]
    if not isinstance(last, list) or len(last) not in _LAST[kind] or not all(map(is_long, last)):
        raise MalformedReplyError(f"last of a state of kind {kind} is {_LAST_IN_WORDS[kind]}")
    if not is_long(value["entries"]):
        raise MalformedReplyError("entries of a state is a 64-bit integer")
    if kind == "transaction":
        return State(value["entries"], None, None, None, tuple(last))
    if not is_long(value["max_entries"]) or not is_long(value["length"]) or not isinstance(value["full"], bool):
        raise MalformedReplyError("max_entries and length of a state are 64-bit integers, full is a boolean")
    return State(value["entries"], value["max_entries"], value["full"], value["length"], tuple(last))


def about_from(reply: Any) -> About:
    """Return the description in the reply to ``start``; members beyond the four and ``index_capabilities`` are ignored.

    Raises:
        MalformedReplyError: It does not describe an implementation of at least one kind of index.
    """
    value = reply.get("ok") if isinstance(reply, dict) and len(reply) == 1 else None
    if isinstance(value, dict) and all(isinstance(value.get(name), str) for name in ("name", "version", "language")):
        kinds = value.get("kinds")
        if isinstance(kinds, list) and kinds and all(kind in _INTRODUCED for kind in kinds) and value["name"]:
            return About(value["name"], value["version"], value["language"], tuple(kinds), _capabilities(value))
    raise MalformedReplyError(
        'the reply to start is {"ok": {"name": TEXT, "version": TEXT, "language": TEXT, "kinds": [KIND, ...]}},'
        f" each KIND one of {', '.join(_INTRODUCED)}"
    )


def _capabilities(about: Json) -> frozenset[str]:
    """Return the capabilities of its indexes: all of them if the program does not list any."""
    named = about.get("index_capabilities", list(INDEX_CAPABILITIES))
    if isinstance(named, list) and all(isinstance(name, str) and name in INDEX_CAPABILITIES for name in named):
        return frozenset(named)
    raise MalformedReplyError(f"index_capabilities is a list of any of {', '.join(INDEX_CAPABILITIES)}")


def is_long(value: Any) -> bool:
    """Return True if the value is a 64-bit integer: neither a float nor a boolean."""
    return type(value) is int and LONG_MIN <= value <= LONG_MAX


def pair(value: Any) -> tuple[int, int]:
    """Return two integers, or raise MalformedReplyError."""
    if isinstance(value, list) and len(value) == 2 and is_long(value[0]) and is_long(value[1]):
        return value[0], value[1]
    raise MalformedReplyError("expected a list of two 64-bit integers")


def pair_or_none(value: Any) -> tuple[int, int] | None:
    """Return two integers or None, or raise MalformedReplyError."""
    return None if value is None else pair(value)


def nothing(value: Any) -> None:
    """Accept only null, or raise MalformedReplyError."""
    if value is not None:
        raise MalformedReplyError('the reply of an operation that returns nothing is {"ok": null}')


def flag(value: Any) -> bool:
    """Return a boolean, or raise MalformedReplyError."""
    if value is True or value is False:
        return value
    raise MalformedReplyError("expected true or false")


def collected(value: Any) -> tuple[tuple[tuple[int, ...], ...], bool]:
    """Return aborted transactions and whether the search is complete, or raise MalformedReplyError."""
    if isinstance(value, dict) and value.keys() == {"aborted", "complete"} and isinstance(value["aborted"], list):
        transactions = value["aborted"]
        if all(isinstance(txn, list) and len(txn) == 4 and all(map(is_long, txn)) for txn in transactions):
            return tuple(map(tuple, transactions)), flag(value["complete"])
    raise MalformedReplyError(
        'expected {"aborted": [[producer_id, first_offset, last_offset, last_stable_offset], ...], "complete": BOOLEAN}'
    )


def _refusal(reply: Json) -> Outcome:
    kind, message = reply["error"], reply.get("message", "")
    if reply.keys() - {"error", "message"} or not isinstance(message, str):
        raise MalformedReplyError('an error is {"error": KIND, "message": TEXT}')
    if kind not in ERROR_KINDS:
        raise MalformedReplyError(f"unknown error kind {quoted(repr(kind))}; choose from {', '.join(ERROR_KINDS)}")
    return Outcome(kind, None, message or None)


_INTRODUCED: Final = (*KINDS, "log")
"""Kinds that a program may have; a log needs version 2 of the protocol."""
_STATE: Final = frozenset({"entries", "max_entries", "full", "length", "last"})
_STATE_OF_TRANSACTIONS: Final = frozenset({"entries", "last"})
_LAST: Final = {"offset": (1,), "time": (2,), "transaction": (0, 1)}
_LAST_IN_WORDS: Final = {"offset": "[offset]", "time": "[timestamp, offset]", "transaction": "[offset] or []"}

_READERS: Final[dict[Shape, Callable[[Any], Any]]] = {
    Shape.NOTHING: nothing,
    Shape.FLAG: flag,
    Shape.PAIR: pair,
    Shape.MAYBE_PAIR: pair_or_none,
    Shape.COLLECTED: collected,
}
SHAPES: Final = {name: _READERS[each.gives] for name, each in INDEX_OPS.items() if each.does}
"""Readers of the ``ok`` of each operation. Their keys are also the operations of the line protocol."""
