"""Shrinking of a broker's divergence; few candidates are tried, as each is a topic on a real broker."""

from __future__ import annotations

import itertools
import time
from typing import TYPE_CHECKING

from conformance.kafka.broker.errors import BrokerError
from conformance.lockstep import DivergenceError
from conformance.lockstep.scopes.broker import BrokerLockstep, ExpectedStartFailureError
from conformance.runs.shrinking import SHRINK_SECONDS, shrink
from conformance.runs.shrinking.divergence import with_shrink_status

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from conformance.operations import Operation


def shrink_on_broker(
    lockstep: BrokerLockstep,
    failure: DivergenceError,
    *,
    seconds: float = SHRINK_SECONDS,
    clock: Callable[[], float] = time.monotonic,
) -> DivergenceError:
    """Return the same divergence with fewer operations, as far as time allows; the broker is used up.

    The arguments are the ones of :func:`conformance.runs.shrinking.divergence.shrink_divergence`.
    """
    attempts = itertools.count(1)

    def still(operations: Sequence[Operation]) -> DivergenceError | None:
        error = _performed(lockstep, operations, f"attempt-{next(attempts)}", failure)
        return error if error is not None and _signature(error) == _signature(failure) else None

    return with_shrink_status(failure, shrink(failure.operations, still, seconds=seconds, clock=clock), seconds)


def _performed(
    lockstep: BrokerLockstep, operations: Sequence[Operation], prefix: str, failure: DivergenceError
) -> DivergenceError | None:
    """Return the divergence that operations produce on their own topic, or None."""
    fresh = BrokerLockstep(
        lockstep.broker,
        lockstep.scratch / prefix,
        reference=lockstep.reference,
        on_divergence=lockstep.on_divergence,
        prefix=prefix,
    )
    try:
        lockstep.broker.start_if_stopped()
        for operation in operations:
            fresh.perform(operation)
        if failure.divergence.operation.name not in ("restart_broker", "kill_broker"):
            fresh.stop(clean=True)
    except DivergenceError as error:
        return error
    except (BrokerError, ExpectedStartFailureError):
        return None
    return None


def _signature(failure: DivergenceError) -> tuple[tuple[str, ...], tuple[str, ...]]:
    return failure.divergence.aspects, failure.divergence.clauses
