"""Smallest trace that exercises each clause, with the result of each release, found by executing all traces."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from conformance.clauses.machines import driven_releases
from conformance.lockstep.divergence import plain
from conformance.machines import MACHINES
from conformance.report.divergence import format_value
from conformance.report.fields import fields_of_state, fields_of_value, in_one_line
from conformance.scratch import scratch_directory
from kidx.dialect import PUBLISHED
from kidx.dialect.release_range import range_of

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from conformance.lockstep import Lockstep
    from conformance.operations import Observation, Operation
    from conformance.operations.trace import Trace

_RELEASES = PUBLISHED.split()


class Shown(NamedTuple):
    """Steps that exercise a clause.

    Attributes:
        steps: number of steps up to the step that exercises the clause.
        name: name of the trace for ``conformance replay``.
        trace: the trace that begins with these steps.
        answers: results of the last of these steps, each as (range of releases, result).
    """

    steps: int
    name: str
    trace: Trace
    answers: tuple[tuple[str, str], ...]


def smallest_traces(traces: Mapping[str, Trace]) -> dict[str, Shown]:
    """Return the shortest beginning of a trace that exercises each clause, by the id of the clause.

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
            for name in members:
                _execute(lockstep, scratch, name, traces[name], found)
    return found


def _execute(lockstep: Lockstep, scratch: Path, name: str, trace: Trace, found: dict[str, Shown]) -> None:
    """Execute a trace, and add it for each clause that no shorter trace exercises."""
    lockstep.begin()
    counted = [dict(group.exercised) for group in lockstep.groups]
    for steps, operation in enumerate(trace.operations, 1):
        lockstep.perform(operation)
        exercised = set[str]()
        for group, before in zip(lockstep.groups, counted, strict=True):
            exercised |= {clause for clause, times in group.exercised.items() if times != before.get(clause)}
            before.update(group.exercised)
        if better := [clause for clause in exercised if clause not in found or steps < found[clause].steps]:
            shown = Shown(steps, name, trace, _answers(lockstep, scratch, trace.machine, operation))
            found.update(dict.fromkeys(better, shown))
    lockstep.end()


def _answers(lockstep: Lockstep, scratch: Path, machine: str, operation: Operation) -> tuple[tuple[str, str], ...]:
    """Return the results of the last operation, each as (range of releases, result)."""
    rules = lockstep.scope.rules
    observations = {rules(group.dialect.release): group.observation for group in lockstep.groups}
    releases: dict[str, list[str]] = {}
    place = re.compile(rf"{re.escape(str(scratch))}/kidx-[\d.]+/")  # an error text may have the path of a file
    driven = driven_releases(machine, _RELEASES)
    for release in driven:
        answer = place.sub("", _answer(machine, operation, observations[rules(release)]))
        releases.setdefault(answer, []).append(release)
    return tuple((range_of(members, driven), answer) for answer, members in releases.items())


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
