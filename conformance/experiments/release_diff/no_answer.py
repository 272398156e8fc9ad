"""A step that does not come back while two sides are compared."""

from __future__ import annotations

from typing import TYPE_CHECKING

from conformance.runs.no_answer import no_answer

if TYPE_CHECKING:
    from conformance.experiments.release_diff.comparison import Plan
    from conformance.lockstep.watchdog import Hang
    from conformance.operations import Json


def stuck_trace(plan: Plan, stuck: Hang, limit: float, shrink_time: float) -> Json:
    """Shrinks and saves the steps; machine, failure, trace and replay commands as JSON."""
    old, new = plan.sides
    side = new if " in place of " in stuck.divergence.participant else old
    told = no_answer(stuck, plan.traces, limit, shrink_time, (side.specification, side.release))
    document = told.to_json() | {"verdict": "differs", "replay": [each.replay(told.trace) for each in plan.sides]}
    del document["steps"]
    return document
