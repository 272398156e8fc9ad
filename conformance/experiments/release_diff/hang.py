"""Hangs during a comparison of two sides."""

from __future__ import annotations

from typing import TYPE_CHECKING

from conformance.runs.hang_report import report_hang

if TYPE_CHECKING:
    from conformance.experiments.release_diff.sides import Plan
    from conformance.lockstep.watchdog import Hang
    from conformance.operations import Json


def hang_trace(plan: Plan, hang: Hang, limit: float, shrink_time: float) -> Json:
    """Shrink and save the steps of a hang; return machine, failure, trace and replay commands as JSON."""
    old, new = plan.sides
    side = new if " in place of " in hang.divergence.participant else old
    report = report_hang(hang, plan.traces, limit, shrink_time, (side.specification, side.release))
    document = report.to_json() | {"verdict": "differs", "replay": [each.replay(report.trace) for each in plan.sides]}
    del document["steps"]
    return document
