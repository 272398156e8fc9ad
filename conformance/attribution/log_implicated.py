"""Clauses that a divergence of a log may violate (implicates), among those that the step exercises.

A step exercises clauses about records, epochs and indexes. If records and offsets are right, the clauses about them are
not implicated. If a batch is rejected that should have been appended, only the clauses about that error are implicated.

If lookups differ, the clauses of the targets that differ are implicated. One ``list_offsets`` has many targets
(timestamps), and exercises clauses of each of them. LO-6 requires the first record with at least the timestamp. In some
states Kafka violates LO-6, and an OBSERVED clause describes Kafka's result. In such a state, the result that LO-6
requires is no violation, but a third result is one.
"""

from __future__ import annotations

from functools import cache
from pathlib import PurePath
from typing import TYPE_CHECKING, Any, Final

from conformance.attribution.log import ROWS, promised, rules_of_log, visible
from conformance.attribution.log_step import Files, LogStep, TrackedLog
from conformance.attribution.rules import Conditions
from conformance.attribution.tables import rows_of
from conformance.clauses import family, load_clauses
from conformance.operations.log import LOG_ERROR_KINDS
from kidx.layout import ABORTED_TXN, OFFSET_INDEX, TIME_INDEX
from kidx.log.lookup import MAX_TIMESTAMP
from kidx.producers.manager import snapshot_name
from kidx.producers.snapshot import HEAD, problem_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from conformance.clauses import Clause
    from conformance.operations import Operation
    from conformance.operations.log import LogObservation, LogState
    from kidx.dialect import Dialect

_INDEXES: Final = frozenset({OFFSET_INDEX.name, TIME_INDEX.name})
_WHEN: Final = frozenset({"SEG-20"})
"""The clauses about the time at which a segment rolls."""
_WHERE: Final = frozenset({"LG-5", "SEG-23", "LG-6"})
"""The clauses about the offset at which the new segment begins."""
_OF_ABORTED: Final = frozenset({"TX-15"})
"""The clauses about the index record of an aborted transaction."""
_OF_INDEXES: Final[Mapping[str, frozenset[str]]] = {
    "append_as_leader": frozenset({"SEG-5", "SEG-22"}),
    "append_as_follower": frozenset({"SEG-5", "SEG-22"}),
    "roll_log": frozenset({"SEG-22", "SEG-23", "SEG-25"}),
    "truncate_log": frozenset({"SEG-38"}),
    "open_log": frozenset({"SEG-30", "SEG-35", "SEG-36", "SEG-25"}),
}
"""The clauses about the indexes that an operation writes."""

_APPENDS: Final[Mapping[str, str]] = {
    "append_as_leader": "LG-1",
    "append_verified": "LG-1",
    "append_as_follower": "LG-2",
}
"""The operations that append, each with the clause about the batches that the operation writes."""
_ALWAYS: Final = frozenset({"LG-4"})
"""The clauses that apply to every error, whatever its cause is."""


def narrow_clauses(
    exercised: tuple[str, ...],
    operation: Operation,
    expected: tuple[LogObservation, Files],
    actual: tuple[LogObservation, Files],
) -> tuple[str, ...]:
    """Return the clauses that a divergence implicates; by default all clauses that the step exercises.

    OBSERVED clauses, which describe what Kafka happens to do, are retained, because they may explain the divergence;
    those about the outcome alone cannot, where the outcomes are equal.

    Args:
        exercised: The clauses that the step exercises.
        expected: The observation with which the implementation is compared, and the files.
        actual: The implementation's observation and files.
    """
    catalogue = load_clauses()
    expected_outcome, actual_outcome = expected[0].outcome, actual[0].outcome
    if operation.name in _APPENDS and expected_outcome.error is None and actual_outcome.error in LOG_ERROR_KINDS:
        return _implicated_by_error(exercised, operation.name, str(actual_outcome.error))
    about = _matching_difference(operation, expected, actual)
    if not about & set(exercised):
        return exercised
    observed = (clause for clause in exercised if catalogue[clause].level == "OBSERVED")
    about |= {clause for clause in observed if not _is_of_outcome_alone(catalogue[clause])}
    return tuple(clause for clause in exercised if clause in about)


def with_end_snapshot(
    clauses: tuple[str, ...], expected: tuple[LogObservation, Files], files: Files
) -> tuple[str, ...]:
    """Return the clauses, with LG-33 if an implementation has a snapshot of the log's end, and Kafka has none.

    Args:
        clauses: The clauses that a divergence implicates.
        expected: The observation with which the implementation is compared, and the files.
        files: The implementation's files.
    """
    state, expected_files = expected[0].state, expected[1]
    if state is None or "LG-33" in clauses:
        return clauses
    name = snapshot_name(state.end_offset)
    data = files.get(name)
    if name in expected_files or data is None or problem_of(data):
        return clauses
    is_whole = HEAD.unpack_from(data)[2] == len(state.producers or ())
    return (*clauses, "LG-33") if is_whole else clauses


def _is_of_outcome_alone(clause: Clause) -> bool:
    return bool(clause.excuses) and all(excuse.partition("/")[0] == "outcome" for excuse in clause.excuses)


def _implicated_by_error(exercised: tuple[str, ...], operation: str, error: str) -> tuple[str, ...]:
    """Return the clauses that are implicated if an append fails.

    They are the clauses that require this error for some batches, or, if no clause requires it, the clause about the
    batches that an append writes. OBSERVED clauses are added if one of them may explain the outcome.
    """
    catalogue = load_clauses()
    about_error = (row.clause for row in ROWS if row.is_about(operation, error))
    refusing = {family(clause) for clauses in about_error for clause in clauses.split()} - _ALWAYS
    about = {clause for clause in exercised if family(clause) in refusing} or {_APPENDS[operation]}
    excusing = {clause for clause in exercised if catalogue[clause].level == "OBSERVED"}
    if any({"outcome", "outcome/error"} & catalogue[clause].excuses for clause in excusing):
        about |= excusing
    return tuple(clause for clause in exercised if clause in about) or exercised


def _matching_difference(
    operation: Operation, expected: tuple[LogObservation, Files], actual: tuple[LogObservation, Files]
) -> frozenset[str]:
    """Return the clauses about what differs; empty if it is neither the rolling of the log nor only its indexes."""
    (expected_observation, files), (actual_observation, contents) = expected, actual
    if expected_observation.outcome[:2] != actual_observation.outcome[:2]:
        return frozenset()
    if expected_observation.state != actual_observation.state:
        return (
            _of_rolls(expected_observation.state, actual_observation.state)
            if operation.name in _OF_INDEXES
            else frozenset()
        )
    differing = {PurePath(name).suffix for name in {*files, *contents} if files.get(name) != contents.get(name)}
    if differing == {ABORTED_TXN.name}:
        return _OF_ABORTED
    return _OF_INDEXES.get(operation.name, frozenset()) if differing and differing <= _INDEXES else frozenset()


def _of_rolls(expected: LogState | None, actual: LogState | None) -> frozenset[str]:
    """Return the clauses about rolling, if the states differ only in the division into segments."""
    if expected is None or actual is None or expected.without(["segments"]) != actual.without(["segments"]):
        return frozenset()
    if not (expected.segments and actual.segments):
        return frozenset()
    if len(expected.segments) != len(actual.segments):
        return _WHEN
    return _WHERE if expected.segments[-1][0] != actual.segments[-1][0] else frozenset()


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
    if target >= 0 or (target == MAX_TIMESTAMP and dialect.max_lookup == "read"):
        found |= _DESPITE_CORRUPTION & set(exercised)
    elif target == MAX_TIMESTAMP:  # the offset of a remembered timestamp is Kafka's own (LO-9)
        found -= _DESPITE_CORRUPTION
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
