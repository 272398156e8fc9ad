"""Deletions from a trace: the steps to delete together, the offsets after a deletion, and whether the rest is valid."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any, Final

from conformance.operations import Effect, Operation
from conformance.operations.index_steps import has_valid_arguments
from conformance.runs.shrinking.integers import with_numbers

Operations = tuple[Operation, ...]

_OFFSETS: Final = frozenset(
    {"base", "offset", "start_offset", "log_start_offset", "recovery_point", "fetch_offset", "upper_bound", "file"}
)
"""Arguments that change if an append before them is deleted."""


def is_valid_sequence(operations: Operations) -> bool:
    """Return True if a trace opens its object in time, corrupts only released files, and has valid arguments."""
    opening = next((step for step in operations if step.needs_opening or step.effect is Effect.OPENS), None)
    if opening is None or opening.needs_opening or not all(map(has_valid_arguments, operations)):
        return False
    in_use = False
    for operation in operations:
        effect = operation.effect
        if effect is Effect.DAMAGES and in_use:
            return False
        if effect is not None and effect is not Effect.DAMAGES:
            in_use = effect is Effect.OPENS
    return True


def reopen_cycles(operations: Operations) -> Iterator[tuple[int, int]]:
    """Yield ranges of steps to delete: all before a later opening, or from a step to the next opening; last first."""
    openings = [i for i, operation in enumerate(operations) if operation.effect is Effect.OPENS]
    for opening in reversed(openings[1:]):
        yield 0, opening
    for earlier, opening in reversed(list(pairwise(openings))):
        for start in range(earlier, opening):
            yield start, opening
            yield start + 1, opening + 1


def renumbered_without(operations: Operations, number: int) -> Iterator[Operations]:
    """Yield the trace without an append, with later offsets as if the append had never happened."""
    name, arguments = operations[number]
    if name not in ("append_as_follower", "append_as_leader", "append_verified"):
        return
    batches = arguments[0]
    count = sum(batch["records"][-1][0] + 1 for batch in batches)
    first = batches[0].get("base")
    rest = operations[number + 1 :]
    for since in (0,) if first is None else (first + 1, first + count):
        yield operations[:number] + tuple(moved(operation, since, -count) for operation in rest)


def moved(operation: Operation, since: int, distance: int) -> Operation:
    """Return the operation with every offset from ``since`` on moved by a distance, but not below zero."""

    def move(name: str, value: Any) -> Any:
        return max(0, value + distance) if name in _OFFSETS and value >= since else value

    return with_numbers(operation, move)
