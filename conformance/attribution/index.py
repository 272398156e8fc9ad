"""Attribution of the steps on one index: a table for each kind.

:mod:`~conformance.attribution.mapped` has the rows that ``.index`` and ``.timeindex`` share; the others are in a file
of their kind.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Final

from conformance.attribution import mapped, offset, time, transaction
from conformance.attribution.rules import Row, Rules
from conformance.attribution.tracked import Step, TrackedIndex

if TYPE_CHECKING:
    from conformance.operations import Observation, Operation

ROWS: Final[dict[str, tuple[Row, ...]]] = {
    "offset": mapped.rows("append bulk_append") + offset.ROWS,
    "time": mapped.rows("maybe_append bulk_maybe_append") + time.ROWS,
    "transaction": transaction.ROWS,
}
"""By kind of index."""


@cache
def rules_of(release: str) -> dict[str, Rules]:
    """The rules of a release, by kind of index."""
    return {kind: Rules(rows, release) for kind, rows in ROWS.items()}


def clauses_of(operation: Operation, before: TrackedIndex, observation: Observation) -> tuple[str, ...]:
    """The clauses that a step exercises, the most particular first.

    Args:
        operation: what was done.
        before: the tracked state before the step.
        observation: the reference's outcome and state.
    """
    name, args = operation
    outcome, now = observation
    was = before.state
    if name == "open":
        kind = args[0]
    elif was is None or now is None:
        return ()
    else:
        kind = before.kind
    # Step(…) itself costs twice as much.
    step = tuple.__new__(Step, (args, before, was, outcome, now))
    return rules_of(before.release)[kind].exercised(name, outcome.error, step)
