"""Leaves out of a failing trace what the failure does not need, within the patience of a person at a terminal.

As in :mod:`conformance.runs.minimize`, but an attempt is a topic on a real broker and may hold stops of it, which take
seconds: attempts end when the time is up, and the smallest failure so far is the one.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final

from conformance.kafka.broker.errors import BrokerError
from conformance.lockstep import DivergenceError
from conformance.lockstep.levels.broker import BrokerLockstep, PredictedDeathError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from conformance.operations import Operation

PATIENCE: Final = 45.0
"""Seconds."""


def minimized(lockstep: BrokerLockstep, failure: DivergenceError, patience: float = PATIENCE) -> DivergenceError:
    """The same difference with fewer operations, if they are found in time; the broker of ``lockstep`` is used up."""
    deadline = time.monotonic() + patience
    smallest, size = failure, max(1, len(failure.operations) // 2)
    attempt = 0
    while size and time.monotonic() < deadline:
        end = len(smallest.operations)
        while end > 1 and time.monotonic() < deadline:
            start = max(end - size, 1)  # the first one creates the topic
            attempt += 1
            candidate = smallest.operations[:start] + smallest.operations[end:]
            smaller = _again(lockstep, candidate, smallest, attempt)
            if smaller is not None:
                smallest = smaller
            end = min(start, len(smallest.operations))
        size //= 2
    return smallest


def _again(
    lockstep: BrokerLockstep, operations: Sequence[Operation], failure: DivergenceError, attempt: int
) -> DivergenceError | None:
    """The failure of these operations, if it is the same."""
    fresh = BrokerLockstep(
        lockstep.broker,
        lockstep.scratch / f"attempt-{attempt}",
        reference=lockstep.reference,
        excuse=lockstep.excuse,
        prefix=f"attempt-{attempt}",
    )
    try:
        lockstep.broker.ensure_started()
        for operation in operations:
            fresh.perform(operation)
        if failure.divergence.operation.name not in ("restart_broker", "kill_broker"):
            fresh.stop(clean=True)
    except DivergenceError as error:
        return error if _signature(error) == _signature(failure) else None
    except (BrokerError, PredictedDeathError):
        return None
    return None


def _signature(failure: DivergenceError) -> tuple[tuple[str, ...], tuple[str, ...]]:
    return failure.divergence.aspects, failure.divergence.clauses
