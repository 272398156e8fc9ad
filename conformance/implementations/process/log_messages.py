"""Messages of the line protocol, version 2: requests about a log and their replies, as structures.

Each request is a structure; :data:`REPLIES` has the type of the ``ok`` of its reply. The code that reads a reply and
the definitions in ``conformance/schemas/protocol.json`` are both derived from this module.
"""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal, cast

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType, defstruct

from conformance.implementations.replies import MalformedReplyError
from conformance.operations import UNSUPPORTED, Outcome
from conformance.operations.log import LOG_ERROR_KINDS, LOG_OPS, LogState
from conformance.operations.log_capabilities import CAPABILITIES
from conformance.operations.op import BOOLEAN, LONGS, Op, Shape
from conformance.quoting import quoted
from kidx.java_numbers import INT_MAX, INT_MIN, LONG_MAX, LONG_MIN

PROTOCOL: Final = 2

Long = Annotated[int, Meta(ge=LONG_MIN, le=LONG_MAX)]
Int = Annotated[int, Meta(ge=INT_MIN, le=INT_MAX)]
Count = Annotated[int, Meta(ge=0, le=LONG_MAX)]
Batches = Annotated[bytes, Meta(description="Record batches one after another, as on disk: base64 of their bytes.")]


class Request(Struct, tag_field="op", forbid_unknown_fields=True):
    """Request; ``op`` is its tag."""


class Start(Request, tag="start"):
    """Starts a process with a log; the first request."""

    protocol: Literal[2]


class OpenLog(Request, tag="open_log"):
    """Opens the log in an existing directory, or creates one there. No other log is open at that time."""

    path: Annotated[str, Meta(min_length=1, description="An absolute path.")]
    settings: Annotated[dict[str, int | str], Meta(description="Topic configurations by Kafka's names.")]
    log_start_offset: Annotated[int, Meta(description="The checkpoint of the log start offset.")]
    recovery_point: Annotated[int, Meta(description="The checkpoint below which everything is on disk.")]
    clean: Annotated[bool, Meta(description="True after a clean shutdown.")]
    now: Annotated[int, Meta(description="Milliseconds; the clock does not advance until set_clock.")]


class Append(Request, tag="append"):
    """As leader: assigns offsets, leader epoch and checksum to one batch. As follower: appends batches unchanged."""

    role: Literal["leader", "follower"]
    batches: Batches
    leader_epoch: Int
    coordinator: Annotated[bool, Meta(description="True for a marker of a transaction coordinator, as leader.")]


class Read(Request, tag="read"):
    """Returns complete batches, from the batch with the offset, or the next batch, on; at least one, if any."""

    offset: Long
    max_bytes: Int


class State(Request, tag="state"):
    """Returns the state of the log; sent after every operation that leaves a log open."""


class Stop(Request, tag="stop"):
    """Ends the process, with status 0. It may reply {"ok": null} before, and writes nothing else."""


_TYPES: Final[dict[Any, Any]] = {BOOLEAN: bool, LONGS: list[Long]}


def _request_of(operation: Op) -> type[Struct]:
    """Return the request that is an operation with its arguments."""
    members = [(name, _TYPES.get(kind, Long)) for name, kind in operation.arguments.items()]
    return defstruct(
        operation.line, members, bases=(Request,), tag=operation.line, namespace={"__doc__": operation.does}
    )


OF_OPERATION: Final[dict[str, Any]] = {name: _request_of(each) for name, each in LOG_OPS.items() if each.line}
"""Requests that have the arguments of an operation, by its name."""
ListOffsets, TruncateFully, Close = (OF_OPERATION[name] for name in ("list_offsets", "truncate_fully", "close_log"))


class Introduction(Struct):
    """Description of a program; other members are ignored."""

    name: Annotated[str, Meta(min_length=1)]
    version: str
    language: str
    kinds: Annotated[list[Literal["offset", "time", "transaction", "log"]], Meta(min_length=1)]
    capabilities: Annotated[list[Literal[tuple(CAPABILITIES)]], Meta(description="Capabilities of its log.")] = []  # type: ignore[valid-type]


class StateReply(Struct, forbid_unknown_fields=True):
    """State of a log; a missing field is not compared."""

    start_offset: Annotated[Long, Meta(description="The first offset that can be read.")]
    end_offset: Annotated[Long, Meta(description="The offset of the next record.")]
    high_watermark: Long | UnsetType = UNSET
    last_stable_offset: Long | UnsetType = UNSET
    recovery_point: Long | UnsetType = UNSET
    segments: Annotated[tuple[tuple[Long, Long], ...], Meta(description="Base offset and bytes.")] | UnsetType = UNSET
    producers_end: Long | UnsetType = UNSET
    ongoing: Annotated[tuple[Long, ...], Meta(description="First offsets of open transactions.")] | UnsetType = UNSET
    unreplicated: Annotated[tuple[Long, ...], Meta(description="First offsets of ended ones.")] | UnsetType = UNSET
    producers: (
        Annotated[
            tuple[tuple[Long, Long, Long, Long, Long, tuple[tuple[Long, Long, Long, Long], ...]], ...],
            Meta(
                description="By id: id, epoch, coordinator's epoch, timestamp, where its transaction began (-1: none),"
                " and of its last batches last sequence, last offset, offset delta, timestamp."
            ),
        ]
        | UnsetType
    ) = UNSET

    def to_state(self) -> LogState:
        """Convert it to the state that the lockstep compares; a missing field becomes None."""
        told = (getattr(self, name) for name in LogState._fields)
        return LogState._make([None if value is UNSET else value for value in told])


_Answer = Annotated[tuple[Long, Long, Long], Meta(description="timestamp, offset, leader epoch")] | None
_OK: Final[dict[Shape, Any]] = {
    Shape.NOTHING: None,
    Shape.FLAG: bool,
    Shape.NUMBER: Long,
    Shape.ANSWERS: tuple[_Answer, ...],
}
REPLIES: Final[dict[type[Request], Any]] = {
    OpenLog: None,
    Append: None,
    **{OF_OPERATION[name]: _OK[LOG_OPS[name].gives] for name in OF_OPERATION if name != "close_log"},
    OF_OPERATION["apply_retention"]: Count,
    Read: Batches,
    Close: None,
    State: StateReply,
}
"""Type of the ``ok`` of each request's reply."""

to_line: Final = msgspec.json.Encoder()


def introduction_from(reply: Any) -> Introduction | None:
    """Return the reply to ``start``, or None for a program without a log or this version of the protocol.

    Raises:
        MalformedReplyError: It has a log, but the reply is malformed.
    """
    if not isinstance(reply, dict) or not isinstance(reply.get("ok"), dict):
        return None
    if "log" not in (reply["ok"].get("kinds") or ()):
        return None
    return cast("Introduction", _converted(reply["ok"], Introduction, "the reply to start"))


def reply_from(request: type[Request], reply: Any) -> Any:
    """Return the value in the reply to a request, or the outcome of an error or an unsupported request.

    Raises:
        MalformedReplyError: It is not a reply to this request.
    """
    if isinstance(reply, dict):
        if reply.keys() == {"ok"}:
            return _converted(reply["ok"], REPLIES[request], f"ok of the reply to {op_of(request)}")
        if "error" in reply and reply.keys() <= {"error", "message"} and isinstance(reply.get("message", ""), str):
            kind = reply["error"]
            if kind not in LOG_ERROR_KINDS:
                said = f"unknown error kind {quoted(repr(kind))}; choose from {', '.join(LOG_ERROR_KINDS)}"
                raise MalformedReplyError(said)
            return Outcome(kind, None, reply.get("message") or None)
        if reply.keys() == {"unsupported"} and reply["unsupported"] is True:
            return UNSUPPORTED
    raise MalformedReplyError('a reply is {"ok": VALUE}, {"error": KIND, "message": TEXT} or {"unsupported": true}')


def op_of(request: type[Request]) -> str:
    """Return the ``op`` of a request."""
    return str(request.__struct_config__.tag)


def _converted(value: Any, kind: Any, what: str) -> Any:
    try:
        return msgspec.convert(value, kind)
    except msgspec.ValidationError as error:
        raise MalformedReplyError(f"{what}: {error}") from None
