"""The segment machine without Kafka at hand: it drives kidx itself, and kidx with a defect that must be found."""

from __future__ import annotations

import json
from collections import Counter

import pytest
from machine_runs import run_machine

from conformance.attribution.rules import ANY
from conformance.attribution.tables import rows_of
from conformance.clauses import load_clauses
from conformance.errors import NotDrivenError, ToolError
from conformance.implementations.kidx.segment import ReferenceSegment
from conformance.lockstep import DivergenceError
from conformance.machines.segment import SegmentMachine
from conformance.operations import Operation, Outcome, every_signature
from conformance.operations.outcomes import OUT_OF_MEMORY
from conformance.operations.segment import (
    SEGMENT_ERROR_KINDS,
    SEGMENT_OPS,
    IndexState,
    SegmentObservation,
    SegmentState,
)
from conformance.operations.trace import Trace
from conformance.runs.replay import load_regression_traces, replay, replay_operations
from kidx.dialect import DIALECTS, dialect_of
from kidx.segment import LogSegment

OPEN = Operation("open_segment", (0, 0, 96, 0, False, 0, False, "", 1000))


def run(lockstep, examples: int, seed: int = 1) -> None:
    run_machine(SegmentMachine, lockstep, examples, seed=seed, steps=30)


class Forgetful(LogSegment):
    """Never appends the last time entry."""

    def _append_last_time_entry(self) -> None:
        pass


class MutantSegment(ReferenceSegment):
    log_segment = Forgetful


@pytest.mark.thorough
def test_the_reference_agrees_with_itself(tmp_path, thorough):
    """Every rule runs, and most clauses are exercised, in the oldest and the newest dialect."""
    lockstep = SegmentMachine.new_lockstep(
        [ReferenceSegment("2.4.1"), ReferenceSegment("4.4.0")], tmp_path, releases=["3.9.2"]
    )
    run(lockstep, 60 if thorough else 30)
    assert [group.dialect.release for group in lockstep.groups] == ["2.4.1", "3.9.2", "4.4.0"]
    performed = lockstep.statistics.exercised("2.4.1")
    assert {"SEG-1", "SEG-3", "SEG-20", "SEG-24a", "SEG-30", "SEG-38", "SEG-50a", "SEG-52"} <= set(performed)
    assert not lockstep.statistics.dropped
    assert lockstep.supports("open_segment")
    assert not lockstep.supports("open")


def test_a_defect_is_found(tmp_path):
    """A segment that forgets the last time entry is found, by its state or by the bytes of the .timeindex."""
    with pytest.raises(DivergenceError) as failure:
        run(SegmentMachine.new_lockstep([MutantSegment("3.9.2")], tmp_path), 120)
    assert {"bytes", "state"} & set(failure.value.divergence.aspects)


def test_a_tolerated_participant_drops_out_of_the_example(tmp_path):
    """It is not driven on, and what it was excused for is counted."""
    lockstep = SegmentMachine.new_lockstep([MutantSegment("3.9.2")], tmp_path, on_divergence=lambda _: True)
    lockstep.begin()
    lockstep.perform(OPEN)
    lockstep.perform(Operation("largest_timestamp", (5,)))
    lockstep.perform(Operation("append_from_file", (ONE, 0)))
    lockstep.perform(Operation("close_segment"))
    assert lockstep.statistics.dropped["kidx 3.9.2", "SEG-24b"] == 1
    lockstep.perform(Operation("close_segment"))
    lockstep.compare_directories()
    lockstep.end()


class WithoutMemory(ReferenceSegment):
    """Participant whose heap is too small for every operation."""

    def perform(self, operation):
        return SegmentObservation(Outcome(OUT_OF_MEMORY), super().perform(operation).state)


def test_a_step_without_enough_memory_was_not_executed(tmp_path):
    """The implementation is credited with no clause; a sound one is."""
    lockstep = SegmentMachine.new_lockstep([WithoutMemory("3.9.2"), ReferenceSegment("3.9.2")], tmp_path)
    without, sound = lockstep.primary.subjects
    replay_operations(lockstep, [OPEN, Operation("append_from_file", (ONE, 0)), Operation("close_segment")])
    assert sum(sound.credited.values()) > 3
    assert +without.credited == Counter()
    assert lockstep.statistics.out_of_memory == {("kidx 3.9.2", "open_segment"): 1}


def test_a_replay_without_memory_is_an_error_and_not_fixed(monkeypatch):
    """The result with a larger heap is unknown; another implementation's divergence is reported first."""
    made = {"without": WithoutMemory, "mutant": MutantSegment, "sound": ReferenceSegment}
    monkeypatch.setattr(SegmentMachine, "subject", classmethod(lambda _, name, release, __: made[name](release)))
    trace = Trace(
        "segment",
        "3.9.2",
        (OPEN, *(Operation(*step) for step in (("append_from_file", (ONE, 0)), ("close_segment",)))),
    )
    assert replay(trace, ["3.9.2"], ["sound"]).verdict == "FIXED"
    with pytest.raises(ToolError, match=r"^kidx 3\.9\.2 ran out of memory in 'open_segment' of the trace"):
        replay(trace, ["3.9.2"], ["without"])
    assert replay(trace, ["3.9.2"], ["without", "mutant"]).verdict == "FAILED"


ONE = (
    "000000000000000000000038ffffffff02bf92a173000000000000000000000000006400000000000000"
    "64ffffffffffffffffffffffffffff000000010c000000010000"
)


def test_a_stray_file_is_a_difference(tmp_path):
    """Directories are compared by name as well: an implementation must not leave extra files."""
    lockstep = SegmentMachine.new_lockstep([ReferenceSegment("3.9.2")], tmp_path)
    lockstep.begin()
    lockstep.perform(OPEN)
    (tmp_path / "0" / "stray").touch()
    with pytest.raises(DivergenceError):
        lockstep.compare_directories()
    lockstep.end()


def test_equal_dialects_share_a_reference():
    """All releases of one text behave alike; the releases in between are of the same text."""
    texts = [dialect_of(release).rules("index", "segment") for release in DIALECTS]
    for text in set(texts):
        numbers = [number for number, other in enumerate(texts) if other == text]
        assert numbers == list(range(numbers[0], numbers[-1] + 1)), text


def test_rows_name_operations_results_and_clauses_that_exist():
    catalogue = load_clauses()
    for row in rows_of("segment"):
        assert row.clause in catalogue
        assert set(row.operations.split()) <= set(SEGMENT_OPS), row
        assert set(row.results.split()) <= {ANY, "ok", *SEGMENT_ERROR_KINDS}, row


def test_the_machine_drives_nothing_but_kafka_and_kidx():
    """The line protocol has no segments: a request for one raises with an explanation."""
    with pytest.raises(NotDrivenError, match=r"does not support exec:./mine"):
        SegmentMachine.subject("exec:./mine", "3.9.2")


def test_types_of_steps_are_not_shared_between_vocabularies():
    """A trace needs no kind: the name of an operation says whose it is."""
    assert len(every_signature()) >= len(SEGMENT_OPS) + 28
    operation = Operation("damage_segment_file", (".index", "cut_file", [3]))
    assert Operation.from_json(json.loads(json.dumps(operation.to_json()))) == operation


def test_a_state_as_json():
    """Indexes that were not opened are null."""
    state = SegmentState(1, 2, 3, None, (4, 5), IndexState(0, 12, 96, (0,)), None, 7)
    assert state.to_json()["offset_index"] == {"entries": 0, "max_entries": 12, "length": 96, "last": (0,)}
    assert state.to_json()["time_index"] is None


def test_recorded_traces_hold_in_their_own_release(tmp_path):
    """The reference replays each recorded trace; its last result is the expected one.

    The exception is text of a release's libraries, which the reference lacks: it reads as the newest release.
    """
    traces = load_regression_traces("segment")
    assert len(traces) > 20
    for number, trace in enumerate(traces):
        lockstep = SegmentMachine.new_lockstep([ReferenceSegment(trace.release)], tmp_path / str(number))
        lockstep.begin()
        for operation in trace.operations:
            observation = lockstep.perform(operation)
        lockstep.end()
        if trace.failure and {"SEG-54", "LG-64"} & set(trace.failure["clauses"]):
            continue
        if trace.failure and trace.failure["aspects"][0] == "outcome":
            # Where kidx once differed from the release itself, it is the release that was right.
            right = "actual" if trace.failure["participant"] == f"jvm {trace.release}" else "expected"
            assert observation.outcome.error == trace.failure[right][0]
