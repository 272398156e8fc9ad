"""Which clauses are at stake where a log's answers differ: those of the targets that are answered otherwise.

One call asks for many targets, and so exercises a clause for each of them. Where Kafka breaks the promise of LO-6 in
its own way, an answer that keeps it breaks no promise, and one that does neither is not excused by Kafka's way.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from conformance.attribution.log import ROWS, promised, rules_of_log, visible
from conformance.attribution.log_step import Files, LogStep, TrackedLog
from conformance.attribution.rules import Conditions
from conformance.clauses import load_clauses
from kidx.log.lookup import MAX_TIMESTAMP

if TYPE_CHECKING:
    from conformance.operations import Operation
    from conformance.operations.log import LogObservation, LogState
    from kidx.dialect import Dialect

_LEAST: Final = TrackedLog()
_MOST: Final = TrackedLog(furthest_start=1 << 63, has_lost_indexes=True)
"""Between these is what was tracked when the question was asked, which is not known any more."""
_OF_ANSWERS: Final = frozenset(row.clause for row in ROWS if "list_offsets" in row.operations.split())
"""Other clauses that such a step exercises are about the state after it."""
_EPOCH: Final = 3
"""The place of the leader epoch in what is read of a batch (:func:`conformance.operations.batches.first_batch`)."""
_BEHIND_DAMAGE: Final = frozenset({"LG-70"})
"""At stake in any look-up behind a damaged index, whether or not it is this target that the reference finds."""


def clauses_at_stake(
    exercised: tuple[str, ...],
    operation: Operation,
    dialect: Dialect,
    before: LogState | None,
    after: tuple[LogObservation, Files],
    expected: LogObservation,
    actual: LogObservation,
) -> tuple[str, ...]:
    """The clauses at stake in a difference; all that the step exercises, unless it is one of answers.

    Args:
        exercised: the clauses that the step exercises.
        operation: what was done.
        dialect: whose catalogue counts.
        before: the state before it.
        after: the reference's observation, and the files after it.
        expected: what the subject is held to, perhaps with less in it.
        actual: the observation that differs.
    """
    mine, theirs = expected.outcome, actual.outcome
    if operation.name == "read_log" and mine.value and mine.value != theirs.value:
        return _of_read(mine.value, theirs.value, exercised)
    if operation.name.startswith("append_as_") and expected.state != actual.state:  # no epoch of a batch shows there
        return tuple(clause for clause in exercised if clause != "LG-82")
    if operation.name != "list_offsets" or mine.error or theirs.error or len(mine.value) != len(theirs.value):
        return exercised
    answers = zip(operation.args[0], mine.value, theirs.value, strict=True)
    steps = [
        (LogStep(([target],), _LEAST, before, (answer,), after[0].state, after[1], after[1], {target: answer}), other)
        for target, answer, other in answers
        if answer != other
    ]
    each = [_of_one(step, other, exercised, dialect) for step, other in steps]
    # What breaks a promise is told first; what only Kafka does shows in other steps as well.
    broken = [clauses for clauses in each if not any(map(_excuses, clauses))]
    stake = frozenset[str]().union(*(broken or each))
    return tuple(sorted(stake, key=(*exercised, *sorted(stake)).index)) or exercised


def _of_read(mine: tuple[int, ...], theirs: tuple[int, ...] | None, exercised: tuple[str, ...]) -> tuple[str, ...]:
    """The clauses at stake where another batch is read, or none, or one with other fields than it should have."""
    if not theirs or mine[0] != theirs[0]:
        beside = {"LG-1", "LG-82"}
    else:
        beside = {"LG-80"} if mine[_EPOCH] != theirs[_EPOCH] else {"LG-80", "LG-82"}
    return tuple(clause for clause in exercised if clause not in beside)


def _of_one(step: LogStep, other: Any, exercised: tuple[str, ...], dialect: Dialect) -> frozenset[str]:
    """The clauses at stake where one target is answered with ``other``."""
    least, most = (
        set(rules_of_log(dialect.release).exercised_in("list_offsets", None, Conditions(step._replace(before=tracked))))
        for tracked in (_LEAST, _MOST)
    )
    found = _OF_ANSWERS & (least | (most & set(exercised)))
    (target,) = step.args[0]
    if target >= 0 or target == MAX_TIMESTAMP:
        found |= _BEHIND_DAMAGE & set(exercised)
    kafkas_own = frozenset(filter(_excuses, found))
    if target < 0 and target != MAX_TIMESTAMP:
        return found
    right = promised(target, visible(step))
    if not kafkas_own:  # only a damaged index leads Kafka to a record that is not the right one
        (answer,) = step.value
        return found if answer is None or tuple(answer[:2]) == right else found | _BEHIND_DAMAGE
    is_kept = (other and tuple(other[:2])) == right
    return kafkas_own if is_kept else found - kafkas_own


def _excuses(clause: str) -> bool:
    return "outcome" in load_clauses()[clause].excuses
