"""Smallest trace that shows or exercises each clause, with the results of the releases, found by executing traces."""

from __future__ import annotations

import re
from enum import IntEnum
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

from conformance.clauses import load_clauses
from conformance.clauses.machines import driven_releases
from conformance.lockstep.divergence import plain
from conformance.machines import MACHINES
from conformance.report.divergence import format_value
from conformance.report.fields import fields_of_state, fields_of_value, in_one_line
from conformance.report.file_entries import first_difference
from conformance.scratch import scratch_directory
from kidx.dialect import PUBLISHED
from kidx.dialect.release_range import range_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from conformance.clauses import Clause
    from conformance.lockstep import Lockstep
    from conformance.lockstep.scope import Group
    from conformance.operations import Observation, Operation
    from conformance.operations.trace import Trace

_RELEASES = PUBLISHED.split()
_FILE_TIME = re.compile(r"(lastModifiedTime=)(\d+)(?:(, largestTime=)\2)?")
"""The time of a file in an error text, also as the largest time of a segment without records."""


def _without_time(found: re.Match[str]) -> str:
    return "…".join(part for part in (found[1], found[3], "") if part is not None)


class Evidence(IntEnum):
    """Evidence of a trace's last step about a clause, the strongest first."""

    SEPARATES = 0
    """The releases in which the clause holds respond or write differently from all others."""
    RECORDED = 1
    """An implementation that violates the clause diverged at this step."""
    EXERCISED = 2
    """The step exercises the clause."""


class Shown(NamedTuple):
    """Steps that exercise a clause.

    Attributes:
        evidence: what the last of these steps says about the clause.
        steps: number of steps up to the step that exercises the clause.
        name: name of the trace for ``conformance replay``.
        trace: the trace that begins with these steps.
        answers: results of the last of these steps, each as (range of releases, result).
    """

    evidence: Evidence
    steps: int
    name: str
    trace: Trace
    answers: tuple[tuple[str, str], ...]

    @property
    def violator(self) -> str:
        """Name of the implementation that diverged in the trace; empty if none did."""
        return str((self.trace.failure or {}).get("participant", "")).partition(" ")[0]


def smallest_traces(traces: Mapping[str, Trace]) -> dict[str, Shown]:
    """Return the shortest beginning of a trace with the best evidence for each clause, by the id of the clause.

    The reference executes the traces in the dialect of every published release.

    Args:
        traces: the traces by their names for ``conformance replay``.
    """
    found: dict[str, Shown] = {}
    of_machine: dict[str, list[str]] = {}
    for name, trace in traces.items():
        of_machine.setdefault(trace.machine, []).append(name)
    for machine, members in of_machine.items():
        with scratch_directory() as scratch:
            lockstep = MACHINES[machine].new_lockstep([], scratch, releases=driven_releases(machine, _RELEASES))
            lockstep.drop_models()
            releases = _releases_of_groups(lockstep, machine)
            for name in members:
                _execute(lockstep, releases, scratch, name, traces[name], found)
    return found


def _execute(
    lockstep: Lockstep,
    releases: Mapping[Group[Any, Any], Sequence[str]],
    scratch: Path,
    name: str,
    trace: Trace,
    found: dict[str, Shown],
) -> None:
    """Execute a trace, and add it for each clause for which no trace before it is better."""
    lockstep.begin()
    counted = [dict(group.exercised) for group in lockstep.groups]
    for steps, operation in enumerate(trace.operations, 1):
        lockstep.perform(operation)
        exercised = set[str]()
        for group, before in zip(lockstep.groups, counted, strict=True):
            exercised |= {clause for clause, times in group.exercised.items() if times != before.get(clause)}
            before.update(group.exercised)
        results = _Results(lockstep, releases, scratch, trace.machine, operation)
        for id_ in exercised:
            if id_ in found and found[id_][:2] <= (Evidence.SEPARATES, steps):
                continue  # this step cannot be better evidence
            clause = load_clauses()[id_]
            by_answers = results.separates(clause, with_files=False)
            by_files = not by_answers and results.separates(clause, with_files=True)
            if by_answers or by_files:
                evidence = Evidence.SEPARATES
            else:
                evidence = Evidence.RECORDED if _diverged(trace, steps, id_) else Evidence.EXERCISED
            if id_ not in found or (evidence, steps) < found[id_][:2]:
                found[id_] = Shown(evidence, steps, name, trace, results.answers(with_files=by_files))
    lockstep.end()


def _releases_of_groups(lockstep: Lockstep, machine: str) -> dict[Group[Any, Any], list[str]]:
    """Return the releases of each group, oldest first, in the order of the groups' first releases."""
    rules = lockstep.scope.rules
    groups = {rules(group.dialect.release): group for group in lockstep.groups}
    members: dict[Group[Any, Any], list[str]] = {}
    for release in driven_releases(machine, _RELEASES):
        members.setdefault(groups[rules(release)], []).append(release)
    return members


def _diverged(trace: Trace, steps: int, clause: str) -> bool:
    """Return True if an implementation other than Kafka itself violated the clause at a step of the trace."""
    failure = trace.failure or {}
    is_kafka = str(failure.get("participant", "")).startswith("jvm")
    return not is_kafka and failure.get("step") == steps - 1 and clause in failure.get("clauses", ())


class _Results:
    """Results of all releases after one step.

    Args:
        lockstep: the references, which have executed the step.
        members: the releases of each group.
        scratch: the directory of their files, which an error text may name.
        machine: the machine of the trace.
        operation: the step.
    """

    def __init__(
        self,
        lockstep: Lockstep,
        members: Mapping[Group[Any, Any], Sequence[str]],
        scratch: Path,
        machine: str,
        operation: Operation,
    ) -> None:
        self.members, self.scratch, self.machine, self.operation = members, scratch, machine, operation
        self.by_name, self.names = lockstep.scope.by_name, lockstep.watched

    @cached_property
    def answer_of(self) -> dict[Group[Any, Any], str]:
        """Answer of each group, without the files. Error texts have no directories and no times of files."""
        place = re.compile(rf"{re.escape(str(self.scratch))}/kidx-[\d.]+/")
        texts = {group: _answer(self.machine, self.operation, group.observation) for group in self.members}
        return {group: _FILE_TIME.sub(_without_time, place.sub("", text)) for group, text in texts.items()}

    def separates(self, clause: Clause, *, with_files: bool) -> bool:
        """Return True if releases in which the clause holds and all others have different results.

        Args:
            clause: the clause.
            with_files: True to tell results apart, too, whose files differ.
        """
        inside = [group for group, releases in self.members.items() if any(map(clause.applies_to, releases))]
        outside = [group for group, releases in self.members.items() if not all(map(clause.applies_to, releases))]
        if not inside or not outside or set(inside) & set(outside):
            return False

        def result(group: Group[Any, Any]) -> tuple[str, Any]:
            return self.answer_of[group], group.files if with_files else None

        others = [result(group) for group in outside]
        return not any(result(group) in others for group in inside)

    def answers(self, *, with_files: bool) -> tuple[tuple[str, str], ...]:
        """Return the results, each as (range of releases, result).

        Args:
            with_files: True to tell results apart, too, whose files differ, and to append the first difference.
        """
        rows: dict[tuple[str, tuple[tuple[str, bytes | None], ...]], list[str]] = {}
        for group, releases in self.members.items():
            files = tuple(sorted(self.by_name(group.files, self.names).items())) if with_files else ()
            rows.setdefault((self.answer_of[group], files), []).extend(releases)
        (_, first), *others = rows
        other = next((files for _, files in others if files != first), first)
        return tuple(
            (range_of(releases, _RELEASES), answer + self._content(files, other if files == first else first))
            for (answer, files), releases in rows.items()
        )

    def _content(self, files: Any, other: Any) -> str:
        """Return the content of the files where they differ from others, to be appended to an answer."""
        difference = None if files == other else first_difference(self.machine, plain(files), plain(other))
        return "" if difference is None else f"; {difference.where}: {difference.expected}"


def _answer(machine: str, operation: Operation, seen: Observation) -> str:
    """Return the outcome and the state after it, in one line."""
    outcome = seen.outcome
    if outcome.error is not None:
        answer = f"{outcome.error}: {outcome.text}" if outcome.text else outcome.error
    else:
        value = plain(outcome.value)
        answer = in_one_line(fields_of_value(machine, str(operation), value)) or format_value(value)
    state = in_one_line(fields_of_state(machine, plain(seen.state)))
    return f"{answer}; then {state}" if state else answer
