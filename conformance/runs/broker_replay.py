"""A trace of the broker machine once more, on a broker that is started for it and always stopped."""

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
    """Performs the steps in one topic, stops the broker cleanly, and compares what it leaves.

    Returns:
        The difference, if there is one, and the number of steps until then.

    Raises:
        BrokerError: the broker did not start, died, or did not do what it was asked.
        ToolError: no Java, no jars, no kafka-python, no broker in the build; or the broker's life is over before the
            last step, as kidx says.
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
                    f"{participant.name} does not come up after step {done + 1} of the trace, as kidx says ({error}):"
                    f" of the {len(operations) - done - 1} steps after it nothing can be said"
                ) from None
            return None, len(operations)
        finally:
            participant.disconnect()
    return None, len(operations)
