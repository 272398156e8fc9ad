"""Replay of a trace of the wire machine, on a running broker or a third-party implementation."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from conformance.errors import ToolError
from conformance.implementations.wire.endpoint import is_wire
from conformance.lockstep.scopes.wire import WireLockstep
from conformance.operations import OK, Observation
from conformance.runs.wire_options import WireOptions
from conformance.scratch import scratch_directory

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from conformance.lockstep import Divergence
    from conformance.operations import Operation
    from conformance.operations.trace import Trace

_DONE = Observation(OK, None)


def replay_on_wire(
    trace: Trace,
    releases: Sequence[str],
    implementations: Sequence[str],
    tell: Callable[[int, Operation, Observation | None, Divergence | None], None],
    options: WireOptions | None = None,
    level: Literal["must", "api", "observed"] = "observed",
) -> tuple[Divergence | None, int]:
    """Execute the steps in one topic of each broker, and compare all results after each of them.

    Returns:
        The first divergence or None, and the number of steps until then.

    Raises:
        ToolError: An implementation is not a broker, or the connection is lost.
    """
    for name in implementations:
        if not is_wire(name):
            raise ToolError(f"a trace of the wire machine needs -i wire:HOST:PORT or -i subject:NAME, not {name}")
        for release in releases:
            with (options or WireOptions()).open(name) as broker, scratch_directory() as scratch:
                lockstep = WireLockstep(broker, release, scratch, level="must" if level == "must" else "observed")
                for number, operation in enumerate(trace.operations):
                    lockstep.perform(operation)
                    found = next(iter(lockstep.differences.values()), None)
                    if found is not None:
                        tell(number, operation, None, found.divergence)
                        return found.divergence, number + 1
                    tell(number, operation, _DONE, None)
                lockstep.close_topic()
    return None, len(trace.operations)
