"""Messages of the line protocol, version 1: requests about an index and their replies, as structures."""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal, cast

from msgspec import UNSET, Meta, UnsetType, defstruct
from msgspec.structs import astuple

from conformance.implementations.process.messages import (
    Answer,
    Introduction,
    Long,
    MalformedReplyError,
    Request,
    Stop,
    Version,
    in_words,
    outcome_from,
    request_type,
)
from conformance.operations import ERRORS, UNSUPPORTED, Outcome
from conformance.operations import State as IndexState
from conformance.operations.index import INDEX_OPS
from conformance.operations.index_capabilities import INDEX_CAPABILITIES
from conformance.operations.op import Shape
from kidx.java_values import INT_MAX, LONG_MAX

_Offset = Annotated[int, Meta(ge=0, le=LONG_MAX, description="An offset of a transaction.")]
_Pair = Annotated[
    tuple[Long, ...], Meta(min_length=2, max_length=2, description="[offset, position] or [timestamp, offset]")
]
_Transaction = Annotated[
    tuple[Long, ...],
    Meta(min_length=4, max_length=4, description="producer_id, first_offset, last_offset, last_stable_offset"),
]


class Start(Request, tag="start"):
    """Starts a process; the first request."""

    protocol: Literal[1]


State: Final = request_type(
    "state",
    "Returns the state of the index; sent after every operation. An open index returns it or declares state as"
    " unsupported (open_offset_state_reply and so on); only a closed or deleted one may reply with an error.",
    {},
)


class IndexIntroduction(Introduction):
    """Description of a program; other members are ignored."""

    index_capabilities: (
        Annotated[
            tuple[Literal[tuple(INDEX_CAPABILITIES)], ...],  # type: ignore[valid-type]
            Meta(
                description="The capabilities of its indexes; by default all. A request that needs a missing one is"
                f" never sent, and its clauses are unsupported. {in_words(INDEX_CAPABILITIES)}"
            ),
        ]
        | UnsetType
    ) = UNSET

    def declared(self) -> frozenset[str]:
        """Return the capabilities of its indexes."""
        return frozenset(INDEX_CAPABILITIES if self.index_capabilities is UNSET else self.index_capabilities)


class Collected(Answer):
    """Aborted transactions, and whether the search is complete."""

    aborted: tuple[_Transaction, ...]
    complete: bool

    def value(self) -> tuple[Any, ...]:
        """Return both as a tuple."""
        return astuple(self)


class _StateReply(Answer):
    def value(self) -> IndexState:
        """Return the state; a transaction index has no other fields than ``entries`` and ``last``."""
        return IndexState._make(getattr(self, name, None) for name in IndexState._fields)


_ENTRIES: Final = {"entries": Annotated[Long, Meta(description="The number of entries of the index.")]}
_MAPPED: Final = {
    "max_entries": Annotated[
        Long,
        Meta(description="The entries that fit into the file: length divided by the size of an entry, rounded down."),
    ],
    "full": Annotated[
        bool,
        Meta(
            description="True if entries has reached max_entries; in a time index, one less: the last slot is for the"
            " entry that ends a segment (skip_full_check)."
        ),
    ],
    "length": Annotated[Long, Meta(description="Bytes of the file when it was opened or its length last changed.")],
}


def _state_of(kind: str, least: int, most: int, words: str) -> type[Answer]:
    last = Annotated[tuple[Long, ...], Meta(min_length=least, max_length=most, description=words)]
    fields = _ENTRIES | (_MAPPED if kind != "transaction" else {}) | {"last": last}
    return cast("type[Answer]", defstruct(f"{kind}_state", fields.items(), bases=(_StateReply,)))


STATES: Final = {
    "offset": _state_of("offset", 1, 1, "[offset] of the last entry, [base_offset] without one"),
    "time": _state_of("time", 2, 2, "[timestamp, offset] of the last entry, [-1, base_offset] without one"),
    "transaction": _state_of("transaction", 0, 1, "[last_offset] of the last append by this process, or []"),
}
"""Type of the state for each kind of index."""

_ORDER: Final = """
    open append maybe_append append_aborted lookup entry fetch_upper_bound collect_aborted truncate truncate_to reset
    resize trim sanity_check flush close delete
"""
"""Order of the operations in the schema of version 1; newer operations follow."""
_OPERATIONS: Final = [each for name in dict.fromkeys((*_ORDER.split(), *INDEX_OPS)) if (each := INDEX_OPS[name]).does]
_NARROW: Final[dict[tuple[str, str], Any]] = {
    ("open", "path"): Annotated[str, Meta(min_length=1)],
    ("resize", "size"): Annotated[int, Meta(ge=0, le=INT_MAX)],
    **{("append_aborted", name): _Offset for name in ("first_offset", "last_offset", "last_stable_offset")},
    **{("collect_aborted", name): _Offset for name in ("fetch_offset", "upper_bound")},
}
"""Arguments whose range is smaller in the protocol than in a trace."""
REQUESTS: Final = {
    each.name: request_type(
        each.name, each.does, {name: _NARROW.get((each.name, name), kind) for name, kind in each.arguments.items()}
    )
    for each in _OPERATIONS
}
"""Request for each operation that has one."""
_OK: Final[dict[Shape, Any]] = {
    Shape.NOTHING: None,
    Shape.FLAG: bool,
    Shape.PAIR: _Pair,
    Shape.MAYBE_PAIR: _Pair | None,
    Shape.COLLECTED: Collected,
}
"""Type of ``ok`` in a reply for each result type of an operation."""
VERSION: Final = Version(
    Start(1),
    INDEX_CAPABILITIES,
    ERRORS,
    {
        Start: IndexIntroduction,
        **{REQUESTS[each.name]: _OK[each.gives] for each in _OPERATIONS},
        State: STATES,
        Stop: None,
    },
)
"""Version 1; the type of a state depends on the kind of the index."""


def state_from(kind: str, reply: Any, *, is_open: bool = False) -> Outcome:
    """Return the outcome with the state in a reply to ``state``.

    Args:
        kind: The kind of the index.
        reply: The reply to ``state``.
        is_open: True if the index is open; then only a program without ``state`` may return none.

    Raises:
        MalformedReplyError: The reply has no state of this kind, or an open index replies with an error.
    """
    outcome = outcome_from(VERSION, State, reply, STATES[kind])
    if is_open and outcome.error is not None and outcome != UNSUPPORTED:
        raise MalformedReplyError("an open index returns its state, or declares state as unsupported")
    return outcome
