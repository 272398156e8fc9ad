"""Leaves steps out of a trace as long as it still shows what it is kept for.

Hypothesis shrinks what rules draw and gives up on long lives early; this takes the recorded operations and tries to do
without each of them. Nothing is tried that no machine would do: a damage to a file that is in use (which kills the
process), or a call while nothing is open.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Final, TypeVar

from conformance.operations import FILE_OPERATIONS

if TYPE_CHECKING:
    from conformance.operations import Operation

_LETTING_GO: Final = ("close", "crash", "delete")

T = TypeVar("T")


def is_opening(operation: Operation) -> bool:
    """Whether an operation opens an index, a segment or a log."""
    return operation.name.startswith("open")


def is_damage(operation: Operation) -> bool:
    """Whether an operation is the harness's own, on a file that nobody has open."""
    return operation.name in FILE_OPERATIONS or operation.name.startswith("damage")


def shorten(
    operations: Sequence[Operation], still: Callable[[Sequence[Operation]], T | None]
) -> tuple[tuple[Operation, ...], T] | None:
    """A trace that no single omission makes shorter.

    Args:
        operations: the trace.
        still: performs operations and returns what the trace is kept for; None if they do not show it.

    Returns:
        The trace with what it shows; None if it does not show it in the first place.
    """
    best = tuple(operations)
    shown = still(best)
    if shown is None:
        return None
    while True:
        before = len(best)
        for start, stop in _omissions(best):
            if stop > len(best):
                continue  # found before the trace got shorter
            candidate = best[:start] + best[stop:]
            if len(candidate) < len(best) and _is_sane(candidate):
                seen = still(candidate)
                if seen is not None:
                    best, shown = candidate, seen
        if len(best) == before:
            return best, shown


def _omissions(operations: Sequence[Operation]) -> Iterator[tuple[int, int]]:
    """What to leave out, from the end backwards so that the places before stay where they are."""
    openings = [i for i, operation in enumerate(operations) if is_opening(operation)]
    for opening in reversed(openings[1:]):
        yield 0, opening
    for opening in reversed(openings[1:]):
        earlier = max(i for i in openings if i < opening)
        for start in range(earlier, opening):
            yield start, opening
            yield start + 1, opening + 1
    for i in reversed(range(len(operations) - 1)):
        yield i, i + 1


def _is_sane(operations: Sequence[Operation]) -> bool:
    if not is_opening(operations[0]):
        return False
    in_use = True
    for operation in operations:
        if is_opening(operation):
            in_use = True
        elif operation.name.startswith(_LETTING_GO):
            in_use = False
        elif is_damage(operation) and in_use:
            return False
    return True
