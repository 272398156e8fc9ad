"""Locksteps of servers for a run or a replay, and the replay of traces on servers."""

from __future__ import annotations

from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any, Final

from conformance.errors import ToolError
from conformance.implementations.forms import directory_of, is_server, machine_of
from conformance.implementations.spec import build_of
from conformance.lockstep import DivergenceError
from conformance.operations import OK, Observation
from conformance.scratch import scratch_directory

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Literal

    from conformance.kafka.broker import Broker
    from conformance.kafka.jar_fetch import Progress
    from conformance.lockstep import Divergence
    from conformance.lockstep.scopes.broker import BrokerLockstep
    from conformance.lockstep.scopes.wire import WireLockstep
    from conformance.operations import Operation
    from conformance.operations.trace import Trace
    from conformance.runs.wire_options import WireOptions

_DONE: Final = Observation(OK, None)
"""The observation of every step, because a server has no state to observe."""
# The modules that need an optional dependency are imported where a server is used.


def replay_on_server(
    trace: Trace,
    release: str,
    implementation: str,
    on_step: Callable[[int, Operation, Observation | None, Divergence | None], None],
    progress: Progress | None = None,
    options: WireOptions | None = None,
    level: Literal["must", "api", "observed"] = "observed",
) -> tuple[Divergence | None, int]:
    """Execute the steps of a trace in one topic, and compare everything after each step.

    A broker of the harness is started before and stopped cleanly after the last step; then its files are compared.

    Returns:
        The first divergence or None, and the number of steps until then.

    Raises:
        BrokerError: The broker did not start, died, or did not execute a request.
        ToolError: The implementation is no server of the trace's machine, or the connection is lost; Java, the jars or
            kafka-python are missing; or the broker cannot start before the last step, as kidx predicts.
    """
    from conformance.lockstep.scopes.broker import ExpectedStartFailureError  # noqa: PLC0415

    operations, done = trace.operations, 0
    with ExitStack() as stack:
        lockstep: Any
        if trace.machine == "wire":
            lockstep = stack.enter_context(_wire_for_replay(implementation, release, level, options))
        else:
            lockstep = stack.enter_context(_broker_for_replay(implementation, release, progress))
        try:
            for operation in operations:
                lockstep.perform(operation)
                on_step(done, operation, _DONE, None)
                done += 1
            lockstep.finish()
        except DivergenceError as error:
            step = min(done, len(operations) - 1)
            on_step(step, operations[step], None, error.divergence)
            return error.divergence, step + 1
        except ExpectedStartFailureError as error:
            if done + 1 < len(operations):
                raise ToolError(
                    f"{lockstep.name} does not start after step {done + 1} of the trace, as kidx predicts ({error}):"
                    f" the {len(operations) - done - 1} steps after it cannot be checked"
                ) from None
    return None, len(operations)


@contextmanager
def broker_lockstep(broker: Broker, **options: Any) -> Iterator[BrokerLockstep]:
    """Start a broker, connect a lockstep to it, and always stop it.

    Args:
        broker: The broker.
        **options: Further arguments of the lockstep.

    Raises:
        BrokerError: The broker does not start, dies, or fails to execute a request.
    """
    from conformance.implementations.broker.topic import RunningBroker  # noqa: PLC0415
    from conformance.lockstep.scopes.broker import BrokerLockstep  # noqa: PLC0415

    with broker, scratch_directory() as scratch:
        participant = RunningBroker(broker)
        try:
            yield BrokerLockstep(participant, scratch, **options)
        finally:
            participant.disconnect()


@contextmanager
def _broker_for_replay(name: str, release: str, progress: Progress | None) -> Iterator[BrokerLockstep]:
    from conformance.kafka.broker import LocalBroker  # noqa: PLC0415
    from conformance.kafka.builds import require_broker  # noqa: PLC0415

    build = build_of(directory_of(name) or "") if is_server(name) else None
    if build is not None:
        require_broker(build)
    with broker_lockstep(LocalBroker(release, progress=progress, build=build)) as lockstep:
        yield lockstep


@contextmanager
def _wire_for_replay(
    name: str, release: str, level: Literal["must", "api", "observed"], options: WireOptions | None
) -> Iterator[WireLockstep]:
    from conformance.lockstep.scopes.wire import WireLockstep  # noqa: PLC0415
    from conformance.runs.wire_options import WireOptions  # noqa: PLC0415

    if machine_of(name) != "wire":
        raise ToolError(f"a trace of the wire machine needs -i wire:HOST:PORT or -i subject:NAME, not {name}")
    with (options or WireOptions()).open(name) as broker, scratch_directory() as scratch:
        compared: Literal["must", "observed"] = "must" if level == "must" else "observed"
        yield WireLockstep(broker, release, scratch, level=compared, stops_at_first=True)
