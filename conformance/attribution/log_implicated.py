"""Clauses that a divergence may violate if an append fails, a log has rolled differently, or only its indexes differ.

These clauses are called implicated. A step exercises clauses about records, epochs and indexes. If records and offsets
are right, the clauses about them are not implicated. If a batch is rejected that should have been appended, only the
clauses about that error are implicated.
"""

from __future__ import annotations

from pathlib import PurePath
from typing import TYPE_CHECKING, Final

from conformance.attribution.log import ROWS
from conformance.clauses import family, load_clauses
from conformance.operations.log import LOG_ERROR_KINDS
from kidx.layout import ABORTED_TXN, OFFSET_INDEX, TIME_INDEX

if TYPE_CHECKING:
    from collections.abc import Mapping

    from conformance.attribution.log_step import Files
    from conformance.operations import Operation
    from conformance.operations.log import LogObservation, LogState

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

    OBSERVED clauses, which describe what Kafka happens to do, are retained, because they may explain the divergence.

    Args:
        exercised: The clauses that the step exercises.
        operation: The operation of the step.
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
    return tuple(clause for clause in exercised if clause in about or catalogue[clause].level == "OBSERVED")


def _implicated_by_error(exercised: tuple[str, ...], operation: str, error: str) -> tuple[str, ...]:
    """Return the clauses that are implicated if an append fails.

    They are the clauses that require this error for some batches, or, if no clause requires it, the clause about the
    batches that an append writes. OBSERVED clauses are added if one of them may explain the outcome.
    """
    catalogue = load_clauses()
    refusing = {family(row.clause) for row in ROWS if row.is_about(operation, error)} - _ALWAYS
    about = {clause for clause in exercised if family(clause) in refusing} or {_APPENDS[operation]}
    excusing = {clause for clause in exercised if catalogue[clause].level == "OBSERVED"}
    if any("outcome" in catalogue[clause].excuses for clause in excusing):
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
