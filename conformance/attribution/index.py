"""Attribution of the steps on one index to clauses: one table per kind of index.

A row states which operations exercise a clause, with which results and on which condition.
:mod:`~conformance.attribution.mapped` has the rows that ``.index`` and ``.timeindex`` share. The rows of a single kind
are in the module of that name.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Final

from conformance.attribution import offset, time, transaction
from conformance.attribution.rules import Row, Rules
from conformance.attribution.tracked_state import ENTRY_SIZES, Step, TrackedIndex
from conformance.operations.index_capabilities import has_unusual_arguments, lacks_directory
from kidx.layout import OFFSET_INDEX, TIME_INDEX

if TYPE_CHECKING:
    from conformance.operations import Observation, Operation

ROWS: Final[dict[str, tuple[Row, ...]]] = {
    "offset": offset.ROWS,
    "time": time.ROWS,
    "transaction": transaction.ROWS,
}
"""The rows, by kind of index."""


_OF_ENTRIES: Final = frozenset({"OI-1", "OI-2", "TI-1", "TI-2"})
"""The clauses about the layout of entries in a file, and about reading the last entry from it."""


@cache
def rules_of(release: str) -> dict[str, Rules]:
    """Return the rules of a release, by kind of index."""
    return {kind: Rules(rows, release) for kind, rows in ROWS.items()}


def clauses_of(operation: Operation, before: TrackedIndex, observation: Observation) -> tuple[str, ...]:
    """Return the clauses that a step exercises, in the order of :meth:`.Rules.exercised`.

    Args:
        before: The tracked state before the step.
        observation: The reference's outcome and state.
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
    # Step(…) itself takes twice as long.
    step = tuple.__new__(Step, (args, before, was, outcome, now))
    return rules_of(before.release)[kind].exercised(name, outcome.error, step)


def implicated_clauses(
    exercised: tuple[str, ...], operation: Operation, content: bytes | None, actual: Observation
) -> tuple[str, ...]:
    """Return the clauses that a divergence implicates; by default all clauses that the step exercises.

    If ``entry`` fails, or an ``open`` of a file with content that no append produces, the clauses about the layout of
    entries are not implicated: a wrong layout would not cause the error.

    Args:
        exercised: The clauses that the step exercises.
        content: The content of the file before the step.
        actual: The implementation's observation.
    """
    if actual.outcome.error is None:
        return exercised
    if operation.name == "open":
        fails_for_another = operation.args[0] != "transaction" and is_broken(operation.args[0], content or b"")
    else:
        fails_for_another = operation.name == "entry"
    left = tuple(clause for clause in exercised if not (fails_for_another and clause in _OF_ENTRIES))
    return left or exercised


def track_opening(before: TrackedIndex, operation: Operation, content: bytes | None) -> None:
    """Update the tracked state with the file that an ``open`` opens.

    Args:
        before: The tracked state.
        operation: The ``open``.
        content: The content of the file, or None if it does not exist.
    """
    kind = operation.args[0]
    before.preexisting = content is not None
    before.broken = kind != "transaction" and before.corrupted and is_broken(kind, content or b"")
    before.first_position = None
    if kind == "offset" and len(content or b"") >= OFFSET_INDEX.size:
        _, before.first_position = OFFSET_INDEX.struct.unpack_from(content or b"")


def is_broken(kind: str, content: bytes) -> bool:
    """Return True if no append produces this content: it has a partial entry, or entries that do not ascend.

    Zeros after the entries are the preallocated tail.

    Args:
        content: The content of the index file.
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


_OF_READERS: Final = frozenset(
    {"lookup", "entry", "fetch_upper_bound", "sanity_check", "close", "crash", "rename", "delete"}
)
"""The operations that a broker, or Kafka's dump tool, executes on an index that is opened read-only."""


def is_reachable_by_broker(operation: Operation, before: TrackedIndex, observation: Observation) -> bool:
    """Return True if a broker can execute such a step. Other steps cannot violate what users rely on.

    A broker never uses a closed index, nor content that no append produces. An index that it opens read-only, it only
    reads, and then closes, renames or deletes (:data:`_OF_READERS`). It passes no negative offset, position, slot or
    size, and no timestamp below -1. The directory of an index exists, and the index has space for at least one entry.

    Args:
        before: The tracked state before the step.
        observation: The reference's observation.
    """
    name, args = operation
    outcome = observation[0]
    if name == "open":
        kind, path, base_offset, size, _ = args
        if lacks_directory(path):
            return False
        return kind == "transaction" or bool(base_offset >= 0 and size >= ENTRY_SIZES[kind] and not before.broken)
    if before.kind == "transaction":
        return not (before.closed or (name == "delete" and outcome.value is False))
    if before.closed or before.broken or before.beyond or not (before.writable or name in _OF_READERS):
        return False
    if name == "reset":
        return before.max_index_size >= before.entry_size
    return not has_unusual_arguments(operation)
