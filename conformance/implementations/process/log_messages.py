"""Messages of the line protocol, version 2: requests about a log and their replies, as structures."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal

from msgspec import UNSET, Meta, UnsetType

from conformance.implementations.process.messages import (
    Answer,
    Int,
    Introduction,
    Long,
    MalformedReplyError,
    Request,
    Stop,
    Version,
    outcome_from,
    request_type,
)
from conformance.operations.batches import encode, is_marker
from conformance.operations.log import LOG_ERRORS, LOG_OPS, RESULT, LogState
from conformance.operations.log_capabilities import CAPABILITIES
from conformance.operations.op import BOOLEAN, LONGS, Shape
from kidx.java_values import LONG_MAX

if TYPE_CHECKING:
    from conformance.operations import Outcome

Count = Annotated[int, Meta(ge=0, le=LONG_MAX)]
Batches = Annotated[bytes, Meta(description="Record batches one after another, as on disk: base64 of their bytes.")]


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


_TYPES: Final[dict[Any, Any]] = {BOOLEAN: bool, LONGS: list[Long]}
OF_OPERATION: Final[dict[str, Any]] = {
    name: request_type(each.line, each.does, {name: _TYPES.get(kind, Long) for name, kind in each.arguments.items()})
    for name, each in LOG_OPS.items()
    if each.line
}
"""Requests that have the arguments of an operation, by the operation's name."""
ListOffsets, TruncateFully, Close = (OF_OPERATION[name] for name in ("list_offsets", "truncate_fully", "close_log"))
_ONE_BATCH: Final = 1  # a maximum size in bytes that no batch has, so that one batch is returned

REQUESTS: Final[dict[str, Callable[..., Request]]] = {
    "append_as_leader": lambda batches, epoch: Append("leader", encode(batches), epoch, is_marker(batches)),
    "append_as_follower": lambda batches, epoch: Append("follower", encode(batches), epoch, False),
    **OF_OPERATION,
    "read_log": lambda offset: Read(offset, _ONE_BATCH),
}
"""Request for each operation that has one, except the opening of a log."""


class LogIntroduction(Introduction):
    """Description of a program; other members are ignored."""

    capabilities: Annotated[tuple[Literal[tuple(CAPABILITIES)], ...], Meta(description="Capabilities of its log.")] = ()  # type: ignore[valid-type]

    def declared(self) -> frozenset[str]:
        """Return the capabilities of its log."""
        return frozenset(self.capabilities)


class StateReply(Answer):
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

    def value(self) -> LogState:
        """Return the state; a missing field is None."""
        values = (getattr(self, name) for name in LogState._fields)
        return LogState._make([None if value is UNSET else value for value in values])


_Found = Annotated[tuple[Long, Long, Long], Meta(description="timestamp, offset, leader epoch")] | None
_Result = Annotated[
    tuple[Long, Long, Long, Long, Long, Long, Long], Meta(description=", ".join(RESULT).replace("_", " "))
]
_EpochEnd = Annotated[tuple[Long, Long], Meta(description="leader epoch, end offset")] | None
_OK: Final[dict[Shape, Any]] = {
    Shape.NOTHING: None,
    Shape.FLAG: bool,
    Shape.NUMBER: Long,
    Shape.ANSWERS: tuple[_Found, ...],
    Shape.NUMBERS: _EpochEnd,
}
"""Type of ``ok`` in a reply for each result type of an operation."""
VERSION: Final = Version(
    Start(2),
    CAPABILITIES,
    LOG_ERRORS,
    {
        OpenLog: None,
        Append: _Result | None,
        **{OF_OPERATION[name]: _OK[LOG_OPS[name].gives] for name in OF_OPERATION if name != "close_log"},
        OF_OPERATION["apply_retention"]: Count,
        Read: Batches,
        Close: None,
        State: StateReply,
        Start: LogIntroduction,
        Stop: None,
    },
)
"""Version 2."""


def state_from(reply: Any) -> Outcome:
    """Return the outcome with the state in a reply to ``state``.

    Raises:
        MalformedReplyError: It has no state.
    """
    outcome = outcome_from(VERSION, State, reply)
    if outcome.error is not None:
        raise MalformedReplyError("a log that is open returns its state")
    return outcome
