"""Attribution of the steps on one index: a table for each kind.

:mod:`~conformance.attribution.mapped` has the rows that ``.index`` and ``.timeindex`` share; the others are in a file
of their kind.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Final

from conformance.attribution import mapped, offset, time, transaction
from conformance.attribution.rules import Row, Rules
from conformance.attribution.tracked import ENTRY_SIZES, Step, TrackedIndex
from conformance.operations.index_capabilities import is_nowhere, is_odd_request
from kidx.layout import OFFSET_INDEX, TIME_INDEX

if TYPE_CHECKING:
    from conformance.operations import Observation, Operation

ROWS: Final[dict[str, tuple[Row, ...]]] = {
    "offset": mapped.rows("append bulk_append") + offset.ROWS,
    "time": mapped.rows("maybe_append bulk_maybe_append") + time.ROWS,
    "transaction": transaction.ROWS,
}
"""By kind of index."""


_OF_ENTRIES: Final = frozenset({"OI-1", "OI-2", "TI-1", "TI-2"})
"""How entries lie in a file, and that the last one is read from it."""


@cache
def rules_of(release: str) -> dict[str, Rules]:
    """The rules of a release, by kind of index."""
    return {kind: Rules(rows, release) for kind, rows in ROWS.items()}


def clauses_of(operation: Operation, before: TrackedIndex, observation: Observation) -> tuple[str, ...]:
    """The clauses that a step exercises, the most particular first.

    Args:
        operation: what was done.
        before: the tracked state before the step.
        observation: the reference's outcome and state.
    """
    name, args = operation
    outcome, now = observation
    was = before.state
    if name == "open":
        kind = args[0]
    elif was is None or now is None:
        return ()
    else:
        kind = before.kind
    # Step(…) itself costs twice as much.
    step = tuple.__new__(Step, (args, before, was, outcome, now))
    return rules_of(before.release)[kind].exercised(name, outcome.error, step)


def clauses_at_stake(
    exercised: tuple[str, ...], operation: Operation, content: bytes | None, actual: Observation
) -> tuple[str, ...]:
    """Return the clauses at stake in a difference; all that the step exercises where nothing tells.

    Where an operation fails that reads entries, how they lie in the file is not what differs, unless it is that which
    makes a whole file unreadable.

    Args:
        exercised: the clauses that the step exercises.
        operation: what was done.
        content: of the file before the step.
        actual: what the subject shows.
    """
    if actual.outcome.error is None:
        return exercised
    if operation.name == "open":
        fails_for_another = operation.args[0] != "transaction" and is_broken(operation.args[0], content or b"")
    else:
        fails_for_another = operation.name == "entry"
    left = tuple(clause for clause in exercised if not (fails_for_another and clause in _OF_ENTRIES))
    return left or exercised


def follow_opening(before: TrackedIndex, operation: Operation, content: bytes | None) -> None:
    """Takes the file into account that an ``open`` finds.

    Args:
        before: the tracked state.
        operation: the ``open``.
        content: of the file; None if there is none.
    """
    kind = operation.args[0]
    before.preexisting = content is not None
    before.broken = kind != "transaction" and before.damaged and is_broken(kind, content or b"")
    if kind == "offset" and before.damaged and len(content or b"") >= OFFSET_INDEX.size:
        _, before.first_position = OFFSET_INDEX.struct.unpack_from(content or b"")


def is_broken(kind: str, content: bytes) -> bool:
    """Return whether no append leaves such a file: it has a part of an entry, or entries that do not ascend.

    Zeros behind the entries are room.

    Args:
        kind: of the index.
        content: of its file.
    """
    layout = OFFSET_INDEX if kind == "offset" else TIME_INDEX
    if len(content) % layout.size:
        return True
    used = len(content.rstrip(b"\0"))
    last = (-1, -1)
    for first, second in layout.struct.iter_unpack(content[: -(-used // layout.size) * layout.size]):
        if min(first, second) < 0 or first <= last[0] or (kind == "time" and second < last[1]):
            return True
        last = first, second
    return False


def is_a_brokers(operation: Operation, before: TrackedIndex, observation: Observation) -> bool:
    """Return whether a broker may come to such a step: one that it never does breaks no promise.

    It asks nothing of an index that is closed, or whose content no append leaves. No offset, position or slot is below
    0, no timestamp below that of a record without one, and each index has room for an entry and a directory.

    Args:
        operation: what was done.
        before: the tracked state before the step.
        observation: what the reference answered.
    """
    name, args = operation
    outcome = observation[0]
    if name == "open":
        kind, path, base_offset, size, _ = args
        if is_nowhere(path):
            return False
        return kind == "transaction" or bool(base_offset >= 0 and size >= ENTRY_SIZES[kind] and not before.broken)
    if before.kind == "transaction":
        return not (before.closed or (name == "delete" and outcome.value is False))
    if before.closed or before.broken or before.beyond:
        return False
    if name == "reset":
        return before.max_index_size >= before.entry_size
    return not is_odd_request(operation)
