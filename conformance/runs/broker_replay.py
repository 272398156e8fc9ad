"""Replay of a trace of the broker machine on a broker that is started for it and always stopped."""

from __future__ import annotations

from typing import TYPE_CHECKING

from conformance.errors import ToolError
from conformance.implementations.broker.topic import RunningBroker
from conformance.kafka.broker import LocalBroker
from conformance.kafka.builds import require_broker
from conformance.lockstep import DivergenceError
from conformance.lockstep.scopes.broker import BrokerLockstep, ExpectedStartFailureError
from conformance.operations import OK, Observation, Operation
from conformance.scratch import scratch_directory

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from conformance.kafka.builds import Build
    from conformance.kafka.jar_fetch import Progress
    from conformance.lockstep import Divergence

_DONE = Observation(OK, None)


def replay_on_broker(
    operations: Sequence[Operation],
    release: str,
    tell: Callable[[int, Operation, Observation | None, Divergence | None], None],
    progress: Progress | None = None,
    build: Build | None = None,
) -> tuple[Divergence | None, int]:
    """Execute the steps in one topic, stop the broker cleanly, and compare its files.

    Returns:
        The divergence or None, and the number of steps until then.

    Raises:
        BrokerError: The broker did not start, died, or did not execute a request.
        ToolError: Java, the jars or kafka-python are missing, the build has no broker, or the broker cannot start
            before the last step, as kidx predicts.
    """
    if build is not None:
        require_broker(build)
    with LocalBroker(release, progress=progress, build=build) as broker, scratch_directory() as scratch:
        participant = RunningBroker(broker)
        lockstep = BrokerLockstep(participant, scratch)
        done = 0
        try:
            for operation in operations:
                lockstep.perform(operation)
                tell(done, operation, _DONE, None)
                done += 1
            lockstep.stop(clean=True)
        except DivergenceError as error:
            step = min(done, len(operations) - 1)
            tell(step, operations[step], None, error.divergence)
            return error.divergence, step + 1
        except ExpectedStartFailureError as error:
            if done + 1 < len(operations):
                raise ToolError(
                    f"{participant.name} does not start after step {done + 1} of the trace, as kidx predicts ({error}):"
                    f" the {len(operations) - done - 1} steps after it cannot be checked"
                ) from None
            return None, len(operations)
        finally:
            participant.disconnect()
    return None, len(operations)
