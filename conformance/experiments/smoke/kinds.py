"""Parts of an adapter's smoke test: requests that write a number to an index and read it, and checks of replies."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from conformance.implementations.try_out import SIZE
from conformance.operations import Outcome
from kidx.java_numbers import LONG_MAX

if TYPE_CHECKING:
    from conformance.experiments.smoke.session import AdapterSession

BASIC_CALLS: Final = "opens, appends, looks up and closes"
"""Name of the first check of each kind; without it a run would compare nothing."""
_POSITION: Final = 120
"""Position that is appended to an offset index."""


class CheckFailedError(Exception):
    """Failed check; the message is the hint."""


class NotJudgedError(Exception):
    """Check that cannot be evaluated; the message is the reason."""


class RemarkError(Exception):
    """Passed check with something that the author of the adapter should know; the message says it."""


class NoSuchKindError(NotJudgedError):
    """Kind of index that the implementation does not have."""


class Kind(NamedTuple):
    """Requests that write a number to an index of one kind and read it back.

    Attributes:
        suffix: suffix of the index file.
        append: function that returns the request that writes a number.
        read: function that returns the request that reads the number.
        base_of: function that returns the base offset of an index for the number.
        provocations: requests that should raise errors.
    """

    suffix: str
    append: Callable[[int], tuple[Any, ...]]
    read: Callable[[int], tuple[Any, ...]]
    base_of: Callable[[int], int]
    provocations: tuple[tuple[Any, ...], ...]


# By the kind of index.
OF_KIND: Final = {
    "offset": Kind(
        ".index",
        lambda key: ("append", key, _POSITION),
        lambda key: ("lookup", key),
        lambda key: max(0, key - 100),
        (("append", 0, 0), ("entry", 1_000_000)),
    ),
    "time": Kind(
        ".timeindex",
        lambda key: ("maybe_append", key, 7, False),
        lambda key: ("lookup", key),
        lambda _: 0,
        (("maybe_append", 1, 0, False), ("entry", 1_000_000)),
    ),
    "transaction": Kind(
        ".txnindex",
        lambda key: ("append_aborted", 1, 0, key, key),
        lambda _: ("collect_aborted", 0, LONG_MAX),
        lambda _: 0,
        (("append_aborted", 1, 0, 0, 0), ("open", "transaction", "missing/0.txnindex", 0, -1, True)),
    ),
}


def open_new(session: AdapterSession, kind: str, name: str = "0", base_offset: int = 0) -> str:
    """Open a new index; return the name of its file."""
    name += OF_KIND[kind].suffix
    outcome = session.ask("open", kind, name, base_offset, SIZE, True)
    if outcome.error == "unsupported":
        raise NoSuchKindError(f"It has no index of kind {kind}.")
    expect_ok(outcome, f"A new index of kind {kind}")
    return name


def expect_ok(outcome: Outcome, what: str) -> None:
    """Check that a request succeeded."""
    if outcome.error == "unsupported":
        raise NotJudgedError(f"{what} is unsupported.")
    if outcome.error is not None:
        message = f"{what} was rejected although it is valid: {outcome}"
        raise CheckFailedError(f"{message}. Are the arguments read by their names?")


def expect_state(session: AdapterSession) -> None:
    """Check that the open index returns its state."""
    if isinstance(reply := session.state(), Outcome):
        raise CheckFailedError(
            f"An open index returns its state, or declares state as unsupported; it returned {reply}."
        )
