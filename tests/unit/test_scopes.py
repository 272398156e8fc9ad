"""One lockstep for all levels: what holds of index files holds of segments and logs too."""

from __future__ import annotations

import pytest

from conformance.implementations.kidx.index import ReferenceIndex
from conformance.implementations.kidx.log import ReferenceLog
from conformance.implementations.kidx.segment import ReferenceSegment
from conformance.lockstep import DivergenceError
from conformance.lockstep.scopes.index import IndexLockstep
from conformance.lockstep.scopes.log import LogLockstep
from conformance.lockstep.scopes.segment import SegmentLockstep
from conformance.operations import Operation, Outcome
from conformance.operations.outcomes import FAILURE, OUT_OF_MEMORY

SETTINGS = {"segment.bytes": 150, "segment.index.bytes": 120, "index.interval.bytes": 0}
LEVELS = [
    pytest.param(IndexLockstep, ReferenceIndex, Operation("open", ("offset", "0.index", 0, 80, True)), id="index"),
    pytest.param(
        SegmentLockstep,
        ReferenceSegment,
        Operation("open_segment", (0, 0, 96, 0, False, 0, False, "", 1000)),
        id="segment",
    ),
    pytest.param(LogLockstep, ReferenceLog, Operation("open_log", (SETTINGS, 0, 0, True, 10_000)), id="log"),
]
pytestmark = pytest.mark.parametrize(("lockstep_type", "reference", "opening"), LEVELS)


def test_an_implementation_without_memory_sits_out_the_example(tmp_path, lockstep_type, reference, opening):
    class WithoutMemory(reference):
        def perform(self, operation):
            return super().perform(operation)._replace(outcome=Outcome(OUT_OF_MEMORY))

    lockstep = lockstep_type([WithoutMemory("4.4.0")], tmp_path)
    lockstep.begin()
    lockstep.perform(opening)
    lockstep.perform(lockstep.scope.close_operation)
    lockstep.end()
    assert lockstep.statistics.out_of_memory == {("kidx 4.4.0", opening.name): 1}


def test_a_failure_at_the_end_of_an_example_is_a_divergence(tmp_path, lockstep_type, reference, opening):
    class FailsAtTheEnd(reference):
        def __init__(self, release):
            super().__init__(release)
            self.failures_between_examples = []

        def end(self):
            self.failures_between_examples.append("ended instead of replying")
            super().end()

    lockstep = lockstep_type([FailsAtTheEnd("4.4.0")], tmp_path)
    lockstep.begin()
    lockstep.perform(opening)
    with pytest.raises(DivergenceError) as error:
        lockstep.end()
    divergence = error.value.divergence
    assert divergence.actual == Outcome(FAILURE, None, "ended instead of replying")
    assert divergence.operation == lockstep.scope.close_operation
    assert error.value.operations == (opening, lockstep.scope.close_operation)


def test_the_harness_corrupts_files_for_participants_that_cannot(tmp_path, lockstep_type, reference, opening):
    class Plain(reference):
        def supports(self, operation):
            return operation in (opening.name, lockstep_type.scope.close_operation.name)

    lockstep = lockstep_type([Plain("4.4.0")], tmp_path)
    assert all(map(lockstep.supports, lockstep.scope.corrupting_operations))
    assert lockstep.supports(opening.name)
    assert not lockstep.supports("no_operation")


def test_a_participant_that_dropped_out_is_not_checked_until_the_next_example(
    tmp_path, lockstep_type, reference, opening
):
    class Forgets(reference):
        def perform(self, operation):
            return super().perform(operation)._replace(state=None)

    lockstep = lockstep_type([Forgets("4.4.0")], tmp_path)
    lockstep.begin()
    lockstep.skip_example("kidx 4.4.0")
    lockstep.perform(opening)
    lockstep.end()
    assert lockstep.failure is None
    lockstep.begin()
    with pytest.raises(DivergenceError) as error:
        lockstep.perform(opening)
    lockstep.end()
    assert error.value.divergence.aspects == ("state",)
