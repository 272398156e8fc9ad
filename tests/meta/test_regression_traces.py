"""Regression traces: they are replayed first, and test the right results."""

from __future__ import annotations

import json
from importlib.resources import files

import pytest

from conformance.events import Replayed
from conformance.implementations.kidx.index import ReferenceIndex
from conformance.kafka.releases import RELEASES
from conformance.machines import MACHINES
from conformance.runs.replay import load_regression_traces, replay, replay_operations

KINDS = ("offset", "time", "transaction")


@pytest.mark.parametrize(
    "trace", [trace for kind in KINDS for trace in load_regression_traces(kind)], ids=lambda trace: trace.id
)
def test_the_reference_and_the_model_agree_in_every_dialect(trace):
    assert replay(trace, RELEASES, []).verdict == "FIXED"


def test_every_regression_trace_belongs_to_a_machine_and_is_named_by_its_id():
    for file in (files("conformance") / "traces").iterdir():
        machine = file.name.removesuffix(".ndjson")
        assert machine in MACHINES
        ids = [json.loads(line)["id"] for line in file.read_text("utf-8").splitlines()]
        assert ids == sorted({trace.id for trace in load_regression_traces(machine)})
        assert all(trace.machine == machine and trace.title for trace in load_regression_traces(machine))


class OffByOne(ReferenceIndex):
    def perform(self, operation):
        seen = super().perform(operation)
        if operation.name == "lookup" and seen.outcome.value:
            return seen._replace(outcome=seen.outcome._replace(value=(0, 0)))
        return seen


def test_they_come_before_anything_new(run_machine):
    """A known defect is reported immediately, with the trace that found it first; the others continue."""
    found = run_machine("offset", replays=True, examples=10, stop_at_first=True, wrong=OffByOne, sound=ReferenceIndex)
    first = next(event for event in found.events if not isinstance(event, type(found.events[0])))
    assert first is found.divergences[0]
    (replayed,) = [event for event in found.events if isinstance(event, Replayed)]
    assert replayed.traces == tuple(trace.id for trace in load_regression_traces("offset"))
    assert len(replayed.diverged) == 1
    assert replayed.diverged[0] in {trace.id for trace in load_regression_traces("offset")}
    assert [divergence.implementation for divergence in found.divergences] == ["wrong"]
    sound = next(result for result in found.results if result.implementation == "sound")
    assert sound.divergences == 0
    assert sound.examples > len(replayed.traces)


ONE_OF_EACH = ("2.4.1", "3.4.1", "3.9.1", "3.9.2", "4.0.1", "4.3.1", "4.4.0")


@pytest.mark.jvm
@pytest.mark.parametrize("machine", KINDS)  # segments and logs take long to load; CI's run replays their traces
def test_kafka_agrees_in_every_dialect(machine, tmp_path):
    """No regression trace is about a difference between Kafka's own classes and the reference."""
    subjects = [MACHINES[machine].subject("jvm", release) for release in ONE_OF_EACH]
    lockstep = MACHINES[machine].new_lockstep(subjects, tmp_path, releases=ONE_OF_EACH)
    for trace in load_regression_traces(machine):
        replay_operations(lockstep, trace.operations)  # raises at the first difference
    assert load_regression_traces(machine)
