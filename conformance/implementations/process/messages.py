"""Messages of the line protocol: the common part of its two versions, and the reader of replies.

Each request is a structure. A version declares the type of ``ok`` in the reply to each request. The code that reads a
reply and the definitions in ``conformance/schemas/protocol.json`` are derived from these types.

Numbers are checked strictly. In Python ``7.0 == 7`` and ``True == 1``, so a program that stores 64-bit integers in
doubles, or replies 1 for true, would otherwise agree with the reference until the numbers are large.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Annotated, Any, Final, Literal, NamedTuple, cast

import msgspec
from msgspec import UNSET, Meta, Struct, defstruct

from conformance.operations import OK, UNSUPPORTED, Outcome
from conformance.quoting import quoted
from kidx.java_values import INT_MAX, INT_MIN, LONG_MAX, LONG_MIN
from kidx.printable import printable

Long = Annotated[int, Meta(ge=LONG_MIN, le=LONG_MAX)]
Int = Annotated[int, Meta(ge=INT_MIN, le=INT_MAX)]

KINDS: Final = ("offset", "time", "transaction", "log")
"""Kinds of index and log that a program may have; a log needs version 2 of the protocol."""


class MalformedReplyError(ValueError):
    """Reply that the protocol does not allow; the message states what is expected."""


class Request(Struct, tag_field="op", forbid_unknown_fields=True):
    """Request; ``op`` is its tag."""


class Stop(Request, tag="stop"):
    """Ends the process, with status 0. It may reply {"ok": null} before, and writes nothing else."""


class Introduction(Struct):
    """Description of a program; other members are ignored."""

    name: Annotated[str, Meta(min_length=1)]
    version: str
    language: str
    kinds: Annotated[tuple[Literal[KINDS], ...], Meta(min_length=1)]  # type: ignore[valid-type]

    def declared(self) -> frozenset[str]:
        """Return the capabilities that it declares."""
        raise NotImplementedError


class Answer(Struct, forbid_unknown_fields=True):
    """Object that is the ``ok`` of a reply."""

    def value(self) -> Any:
        """Return the value of the outcome, which the lockstep compares."""
        raise NotImplementedError


class Version(NamedTuple):
    """Version of the protocol.

    Attributes:
        start: The first request.
        capabilities: The capabilities that a program may have, with their meanings.
        errors: The error kinds, with their meanings.
        replies: The type of the ``ok`` of each request's reply, in the order of the schema.
    """

    start: Request
    capabilities: Mapping[str, str]
    errors: Mapping[str, str]
    replies: Mapping[type[Request], Any]


def request_type(op: str, does: str, arguments: Mapping[str, Any]) -> type[Request]:
    """Return the type of a request, with the types of its arguments."""
    made = defstruct(op, arguments.items(), bases=(Request,), tag=op, namespace={"__doc__": does})
    return cast("type[Request]", made)


def op_of(request: type[Request]) -> str:
    """Return the ``op`` of a request."""
    return str(request.__struct_config__.tag)


def in_words(names: Mapping[str, str]) -> str:
    """Return names and their meanings as one text."""
    return " ".join(f"{name}: {meaning}." for name, meaning in names.items())


encode: Final = json.JSONEncoder(separators=(",", ":")).encode


def line_of(request: Request) -> str:
    """Return the line of a request, in ASCII and without the line break."""
    return encode(msgspec.to_builtins(request))


def introduction_from(version: Version, reply: Any) -> Any:
    """Return the introduction in the reply to ``start``.

    Raises:
        MalformedReplyError: It does not describe an implementation of at least one kind.
    """
    kind = version.replies[type(version.start)]
    what = (
        'the reply to start is {"ok": {"name": TEXT, "version": TEXT, "language": TEXT, "kinds": [KIND, ...]}}, each'
        f" KIND one of {', '.join(KINDS)}; {kind.__struct_fields__[-1]} is a list of any of"
        f" {', '.join(version.capabilities)}"
    )
    value = reply["ok"] if isinstance(reply, dict) and reply.keys() == {"ok"} else None
    return _converted(value, kind, what)


def outcome_from(version: Version, request: type[Request], reply: Any, ok: Any = UNSET) -> Outcome:
    """Return the outcome in the reply to a request.

    Args:
        version: The version of the protocol.
        request: The type of the request.
        reply: The reply, from JSON.
        ok: The type of ``ok``; by default the type that the version declares.

    Raises:
        MalformedReplyError: The JSON is not a reply to this request.
    """
    if isinstance(reply, dict):
        if reply.keys() == {"ok"}:
            expected = version.replies[request] if ok is UNSET else ok
            value = _converted(reply["ok"], expected, f"ok of the reply to {op_of(request)}")
            value = value.value() if isinstance(value, Answer) else value
            return OK if value is None else Outcome(None, value)
        if "error" in reply:
            return _error_from(version, reply["error"], reply.get("message", ""), reply.keys() <= {"error", "message"})
        if reply.keys() == {"unsupported"} and reply["unsupported"] is True:
            return UNSUPPORTED
    raise MalformedReplyError('a reply is {"ok": VALUE}, {"error": KIND, "message": TEXT} or {"unsupported": true}')


def _error_from(version: Version, kind: Any, message: Any, is_complete: bool) -> Outcome:
    if not is_complete or not isinstance(message, str):
        raise MalformedReplyError('an error is {"error": KIND, "message": TEXT}')
    if not isinstance(kind, str) or kind not in version.errors:
        known = ", ".join(version.errors)
        raise MalformedReplyError(f"unknown error kind {quoted(repr(kind))}; choose from {known}")
    return Outcome(kind, None, message or None)


def _converted(value: Any, kind: Any, what: str) -> Any:
    try:
        return msgspec.convert(value, kind)
    except msgspec.ValidationError as error:
        raise MalformedReplyError(f"{what}: {quoted(printable(str(error)))}") from None
