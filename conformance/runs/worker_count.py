"""Default number of worker processes, by the size of the run."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from conformance.clauses.machines import MACHINES
from conformance.implementations.forms import is_server

if TYPE_CHECKING:
    from conformance.runs.plan import Plan

_CHECKS_PER_WORKER: Final = 60_000
"""The number of checks (steps times participants) that justify one more process with a start of Python and Java."""


def usable_cpus() -> int:
    """Return the number of CPUs that this process may use."""
    return len(os.sched_getaffinity(0))


def extra_workers_for(plan: Plan, machines: Sequence[str]) -> int:
    """Return the number of worker processes in addition to the current one.

    Args:
        plan: The plan; its ``jobs`` takes precedence.
        machines: The machines of the run.
    """
    if plan.jobs is not None or not machines:
        return (plan.jobs or 1) - 1 if machines else 0
    # The fewer examples of a machine with slow steps take as long as all examples of another machine.
    full_examples = sum(plan.examples_of(name) / MACHINES[name].examples_factor for name in machines)
    participants = len(plan.releases) * len([name for name in plan.implementations if not is_server(name)])
    checks = full_examples * plan.profile.steps * participants
    return max(0, min(usable_cpus() - 1, int(checks // _CHECKS_PER_WORKER)))
