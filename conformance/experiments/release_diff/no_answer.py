"""A step that does not come back while two sides are compared."""

from __future__ import annotations

from typing import TYPE_CHECKING

from conformance.lockstep.divergence import failure_json
from conformance.machines import MACHINES
from conformance.operations.trace import Trace

if TYPE_CHECKING:
    from conformance.experiments.release_diff.comparison import Plan
    from conformance.lockstep.step_watch import Stuck
    from conformance.operations import Json


def stuck_trace(plan: Plan, stuck: Stuck) -> Json:
    """Saves the steps; machine, failure, trace and replay commands as JSON."""
    machine = _machine_of(stuck)
    failure = failure_json(stuck.divergence)
    trace = Trace(machine, stuck.divergence.release, stuck.operations, failure, "a step gives no answer")
    path = trace.save(plan.traces)
    return {
        "verdict": "differs",
        "machine": machine,
        "failure": failure,
        "trace": str(path),
        "replay": [side.replay(path) for side in plan.sides],
    }


def _machine_of(stuck: Stuck) -> str:
    """The machine whose operations these are: an index file's are named by its kind."""
    first = stuck.operations[0]
    if first.name == "open" and first.args[0] in MACHINES:
        return str(first.args[0])
    return "log" if any(operation.name.endswith("_log") for operation in stuck.operations) else "segment"
