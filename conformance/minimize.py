"""Leaves out of a failing run every operation that the failure does not need.

Hypothesis shrinks what it has drawn: rules and their arguments. A rule is often several operations, of which one would
do, and it gives up after some hundred attempts. Operations are plain data, so what is left can be tried without it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from conformance.lockstep import DivergenceError
from conformance.replay import perform_all

if TYPE_CHECKING:
    from collections.abc import Sequence

    from conformance.lockstep import Lockstep
    from conformance.operations import Operation


def minimized(lockstep: Lockstep, failure: DivergenceError) -> DivergenceError:
    """The same difference with no operation that could be left out; ``failure`` itself if it does not come again."""
    smallest = _again(lockstep, failure.operations, failure)
    if smallest is None:
        return failure
    size = len(smallest.operations) // 2
    while size:
        # From the end: what comes late is needed least often, and leaves what comes before as it was.
        end = len(smallest.operations)
        while end > 0:
            start = max(end - size, 0)
            candidate = smallest.operations[:start] + smallest.operations[end:]
            smaller = _again(lockstep, candidate, smallest)
            if smaller is not None:
                smallest = smaller
            end = min(start, len(smallest.operations))
        size //= 2
    return smallest


def _again(lockstep: Lockstep, operations: Sequence[Operation], failure: DivergenceError) -> DivergenceError | None:
    """The failure of these operations, if it is the same."""
    if not operations or operations[0].name != failure.operations[0].name:
        return None  # everything starts with opening something
    try:
        perform_all(lockstep, operations)
    except DivergenceError as error:
        return error if _signature(error) == _signature(failure) else None
    except (TypeError, ValueError, LookupError):
        return None  # without what has been left out, the rest makes no sense
    return None


def _signature(failure: DivergenceError) -> tuple[str, str, str, str]:
    divergence = failure.divergence
    # A file too many is seen when directories are compared, whatever the operation before was; no clause speaks of it.
    operation = divergence.operation.name if divergence.clauses or divergence.is_failure else ""
    return divergence.party, divergence.against, divergence.aspects[0], operation
