"""Traces as they were before shrinking, of 25 planted defects at every level: how short they become.

``unshrunk.json`` holds what one example of the machine did up to the difference, and ``before``: the operations that
were left by shrinking as it was done by several shrinkers, one for each kind of lockstep.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from thorough_params import thorough_except

from conformance.implementations.mutants import MUTANTS, implementation_of
from conformance.lockstep import DivergenceError
from conformance.machines import MACHINES
from conformance.operations import Operation
from conformance.runs.replay import replay_operations
from conformance.runs.shrinking import shrink
from conformance.runs.shrinking.divergence import is_same, shrink_divergence
from conformance.runs.shrinking.reductions import cost, is_valid_sequence
from conformance.scratch import scratch_directory

UNSHRUNK = json.loads((Path(__file__).parent / "unshrunk.json").read_text())


def failure_of(lockstep, operations):
    try:
        replay_operations(lockstep, operations)
    except DivergenceError as error:
        return error
    return None


@pytest.fixture
def lockstep_of():
    """Return a lockstep of the machine of a mutant, with the mutant."""
    with scratch_directory() as scratch:
        yield lambda mutant: MACHINES[mutant.machine].new_lockstep([implementation_of(mutant, mutant.release)], scratch)


def test_every_level_has_a_mutant():
    assert len(UNSHRUNK) > 20
    assert {MUTANTS[name].machine for name in UNSHRUNK} == {"offset", "time", "transaction", "segment", "log"}


@pytest.mark.thorough
@pytest.mark.parametrize("name", thorough_except(list(UNSHRUNK)[::3], UNSHRUNK))
def test_the_trace_of_a_planted_defect_is_as_short_as_before_or_shorter(name, lockstep_of):
    operations = tuple(map(Operation.from_json, UNSHRUNK[name]["steps"]))
    lockstep = lockstep_of(MUTANTS[name])
    failure = failure_of(lockstep, operations)
    found = shrink_divergence(lockstep, failure, seconds=600)
    assert found.shrinking == "minimal"
    assert len(found.operations) <= UNSHRUNK[name]["before"]
    assert is_same(failure_of(lockstep, found.operations).divergence, failure.divergence)
    assert cost(found.operations) <= cost(operations)
    for number in range(1, len(found.operations) - 1):
        rest = found.operations[:number] + found.operations[number + 1 :]
        if not is_valid_sequence(rest):
            continue  # a corruption of a file that is in use
        try:
            other = failure_of(lockstep, rest)
        except (TypeError, ValueError, LookupError):
            continue
        assert other is None or not is_same(other.divergence, failure.divergence), rest


def test_a_divergence_that_does_not_recur_is_reported_and_unchanged(lockstep_of):
    """An implementation that fails once in its life, as one does whose memory was short."""
    name = "stops-one-early"
    operations = tuple(map(Operation.from_json, UNSHRUNK[name]["steps"]))
    failure = failure_of(lockstep_of(MUTANTS[name]), operations)
    with scratch_directory() as scratch:
        sound = MACHINES["offset"].new_lockstep([], scratch, releases=[failure.divergence.release])
        found = shrink_divergence(sound, failure)
    assert found is failure
    assert found.operations == failure.operations
    assert "not reproduced" in found.shrinking


def test_an_expired_time_limit_is_reported(lockstep_of):
    name = "writes-though-read-only"
    operations = tuple(map(Operation.from_json, UNSHRUNK[name]["steps"]))
    lockstep = lockstep_of(MUTANTS[name])
    ticks = iter(range(1 << 20))
    found = shrink_divergence(lockstep, failure_of(lockstep, operations), seconds=5, clock=lambda: next(ticks))
    assert found.shrinking == "not minimal: 5 s were over"
    assert len(found.operations) < len(operations)


def test_shrinking_is_not_counted_among_the_steps_of_the_run(lockstep_of):
    name = "stops-one-early"
    operations = tuple(map(Operation.from_json, UNSHRUNK[name]["steps"]))
    lockstep = lockstep_of(MUTANTS[name])
    failure = failure_of(lockstep, operations)
    before = lockstep.statistics.steps, lockstep.statistics.examples
    shrink_divergence(lockstep, failure)
    assert (lockstep.statistics.steps, lockstep.statistics.examples) == before


def test_the_same_trace_is_shrunk_to_the_same(lockstep_of):
    name = "grows-when-opened"
    operations = tuple(map(Operation.from_json, UNSHRUNK[name]["steps"]))
    lockstep = lockstep_of(MUTANTS[name])

    def still(candidate):
        return failure_of(lockstep, candidate)

    first, second = (shrink(operations, still, seconds=600) for _ in range(2))
    assert first.operations == second.operations
