"""A failing run without the operations that the failure does not need."""

from __future__ import annotations

from typing import TYPE_CHECKING

from conformance.lockstep import DivergenceError
from conformance.runs.replay import perform_all
from conformance.runs.shortening import shorten

if TYPE_CHECKING:
    from collections.abc import Sequence

    from conformance.lockstep import Lockstep
    from conformance.operations import Operation


def minimized(lockstep: Lockstep, failure: DivergenceError) -> DivergenceError:
    """The same difference with no operation that could be left out; ``failure`` itself if it does not come again."""
    found = _again(lockstep, failure.operations, failure)
    if found is None:
        return failure

    def still(operations: Sequence[Operation]) -> DivergenceError | None:
        error = _again(lockstep, operations, failure)
        return error if error is not None and len(error.operations) == len(operations) else None

    short = shorten(found.operations, still)
    return found if short is None else short[1]


def _again(lockstep: Lockstep, operations: Sequence[Operation], failure: DivergenceError) -> DivergenceError | None:
    """The failure of these operations, if it is the same; it may come before the last of them."""
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
