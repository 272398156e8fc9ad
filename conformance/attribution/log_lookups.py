"""Clauses that a divergence in a log's lookups may violate (implicates): the clauses of the targets that differ.

One ``list_offsets`` has many targets (timestamps), and exercises clauses of each of them. LO-6 requires the first
record with at least the timestamp. In some states Kafka violates LO-6, and an OBSERVED clause describes Kafka's result.
In such a state, the result that LO-6 requires is no violation, but a third result is one.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any, Final

from conformance.attribution.log import promised, rules_of_log, visible
from conformance.attribution.log_step import Files, LogStep, TrackedLog
from conformance.attribution.rules import Conditions
from conformance.attribution.tables import rows_of
from conformance.clauses import load_clauses
from kidx.log.lookup import MAX_TIMESTAMP

if TYPE_CHECKING:
    from conformance.operations import Operation
    from conformance.operations.log import LogObservation, LogState
    from kidx.dialect import Dialect

_LEAST: Final = TrackedLog()
_MOST: Final = TrackedLog(furthest_start=1 << 63, has_lost_indexes=True)
"""Bounds of the tracked state at the time of the request; the tracked state itself is no longer available."""
_EPOCH: Final = 3
"""The index of the leader epoch in the fields of a batch (:func:`conformance.operations.batches.first_batch`)."""
_DESPITE_CORRUPTION: Final = frozenset({"LG-70"})
"""Clauses that every lookup after the corruption of an index implicates, even if it finds the right record."""


@cache
def _of_answers() -> frozenset[str]:
    """Return the clauses about results; the others that a ``list_offsets`` exercises are about the state after it."""
    return frozenset(row.clause for row in rows_of("log") if "list_offsets" in row.operations.split())


def implicated_clauses(
    exercised: tuple[str, ...],
    operation: Operation,
    dialect: Dialect,
    before: LogState | None,
    after: tuple[LogObservation, Files],
    expected: LogObservation,
    actual: LogObservation,
) -> tuple[str, ...]:
    """Return the clauses that a divergence implicates; all that the step exercises, unless results of lookups differ.

    Args:
        exercised: The clauses that the step exercises.
        operation: The operation of the step.
        dialect: The dialect of the release whose catalogue applies.
        before: The state before the step; None if no log was open.
        after: The reference's observation, and the files after the step.
        expected: The observation with which the implementation is compared, perhaps without some fields.
        actual: The implementation's observation.
    """
    expected_outcome, actual_outcome = expected.outcome, actual.outcome
    if operation.name == "read_log" and expected_outcome.value and expected_outcome.value != actual_outcome.value:
        return _for_read(expected_outcome.value, actual_outcome.value, exercised)
    if operation.name.startswith("append_as_") and expected.state != actual.state:  # no epoch of a batch shows there
        return tuple(clause for clause in exercised if clause != "LG-82")
    if (
        operation.name != "list_offsets"
        or expected_outcome.error
        or actual_outcome.error
        or len(expected_outcome.value) != len(actual_outcome.value)
    ):
        return exercised
    answers = zip(operation.args[0], expected_outcome.value, actual_outcome.value, strict=True)
    steps = [
        (LogStep(([target],), _LEAST, before, (answer,), after[0].state, after[1], after[1], {target: answer}), other)
        for target, answer, other in answers
        if answer != other
    ]
    each = [_for_target(step, other, exercised, dialect) for step, other in steps]
    # Violations come first; clauses about Kafka's own behaviour are exercised by other steps as well.
    broken = [clauses for clauses in each if not any(map(_excuses, clauses))]
    implicated = frozenset[str]().union(*(broken or each))
    return tuple(sorted(implicated, key=(*exercised, *sorted(implicated)).index)) or exercised


def _for_read(expected: tuple[int, ...], actual: tuple[int, ...] | None, exercised: tuple[str, ...]) -> tuple[str, ...]:
    """Return the clauses that are implicated if a read returns another batch, none, or one with other fields."""
    if not actual or expected[0] != actual[0]:
        unaffected = {"LG-1", "LG-82"}
    else:
        unaffected = {"LG-80"} if expected[_EPOCH] != actual[_EPOCH] else {"LG-80", "LG-82"}
    return tuple(clause for clause in exercised if clause not in unaffected)


def _for_target(step: LogStep, other: Any, exercised: tuple[str, ...], dialect: Dialect) -> frozenset[str]:
    """Return the clauses that are implicated if the implementation's result for one target is ``other``."""
    least, most = (
        set(rules_of_log(dialect.release).exercised_in("list_offsets", None, Conditions(step._replace(before=tracked))))
        for tracked in (_LEAST, _MOST)
    )
    found = _of_answers() & (least | (most & set(exercised)))
    (target,) = step.args[0]
    if target >= 0 or target == MAX_TIMESTAMP:
        found |= _DESPITE_CORRUPTION & set(exercised)
    kafkas_own = frozenset(filter(_excuses, found))
    if target < 0 and target != MAX_TIMESTAMP:
        return found
    right = promised(target, visible(step))
    if not kafkas_own:  # only a corrupt index leads Kafka to a wrong record
        (answer,) = step.value
        return found if answer is None or tuple(answer[:2]) == right else found | _DESPITE_CORRUPTION
    is_right = (other and tuple(other[:2])) == right
    return kafkas_own if is_right else found - kafkas_own


def _excuses(clause: str) -> bool:
    """Return True if the clause permits an outcome that differs from the outcome of Kafka."""
    return "outcome" in load_clauses()[clause].excuses
