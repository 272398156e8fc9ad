"""The broker machine: real brokers conform, a wrong rule does not pass, and a trace can be performed again."""

from __future__ import annotations

import json
import sys

import pytest
from hypothesis import given
from hypothesis import settings as budget

from conformance import cli
from conformance.broker_lockstep import BrokerLockstep
from conformance.broker_run import Budget, Run, run_brokers
from conformance.broker_strategies import settings
from conformance.events import Diverged
from conformance.expectations import Ledger, load_expectations
from conformance.implementations.broker import RunningBroker
from conformance.implementations.broker_reference import ReferencePartition
from conformance.kafka.broker import LocalBroker
from conformance.lockstep import DivergenceError
from conformance.operations import Operation
from conformance.trace import Trace, TraceError
from kidx.log import UnifiedLog

KRAFT = "4.4.0"
ZOOKEEPER = "2.4.1"
TOPIC = {"segment.bytes": 1 << 20, "segment.index.bytes": 100, "index.interval.bytes": 100, "retention.ms": -1}
BATCHES = [Operation("append_batch", ([[1_700_000_000_000 + 10 * n, None, 30]], "none", None)) for n in range(6)]
"""Of 98 bytes each, so that every other one has an entry."""


@pytest.mark.broker
@pytest.mark.parametrize("release", [ZOOKEEPER, KRAFT])
def test_a_broker_conforms_step_by_step_and_in_what_it_leaves(release, tmp_path):
    events = []
    run = Run(5, Budget(2, 8, restarts=0), tmp_path, events.append, Ledger(load_expectations()))
    (result,) = run_brokers([release], run)
    assert [event for event in events if isinstance(event, Diverged)] == []
    assert result.divergences == 0
    assert set(result.verdicts.values()) <= {"conforms", "not-run"}
    assert result.details["answers"] > 500
    assert result.details["segments"] >= 4
    assert result.details["kills"] == result.details["restarts"] == 1
    assert result.clauses["LO-6"] > 100


class _LogOfAnotherRule(UnifiedLog):
    """LO-6 with > in place of >=."""

    def fetch_offset_by_timestamp(self, target):
        return super().fetch_offset_by_timestamp(target if target < 0 else target + 1)


class _Later(ReferencePartition):
    unified_log = _LogOfAnotherRule


class _Wider(ReferencePartition):
    """A batch more between two entries of an index."""

    def __init__(self, release, directory, settings, leader_epoch):
        interval = settings["index.interval.bytes"] + 100
        super().__init__(release, directory, settings | {"index.interval.bytes": interval}, leader_epoch)


def perform_all(lockstep):
    for operation in (Operation("create_topic", (TOPIC,)), *BATCHES):
        lockstep.perform(operation)


@pytest.mark.broker
def test_a_reference_with_a_wrong_rule_does_not_pass_and_its_trace_replays(tmp_path, monkeypatch, capsys):
    with LocalBroker(KRAFT, base=tmp_path) as broker:
        party = RunningBroker(broker)
        found = {}
        for reference in (_Later, _Wider):
            lockstep = BrokerLockstep(party, tmp_path, reference=reference, prefix=reference.__name__)
            with pytest.raises(DivergenceError) as caught:
                perform_all(lockstep)
            found[reference] = caught.value
        party.hang_up()
    assert found[_Later].divergence.aspects == ("outcome",)
    assert "LO-6" in found[_Later].divergence.clauses
    assert found[_Wider].divergence.aspects == ("bytes",)
    assert [name for name, _ in found[_Wider].divergence.actual] == [
        "00000000000000000000.index",
        "00000000000000000000.timeindex",
    ]
    trace = Trace("broker", KRAFT, found[_Wider].operations).save(tmp_path)
    monkeypatch.setattr(sys, "argv", ["conformance", "replay", str(trace), "--json"])
    with pytest.raises(SystemExit) as ended:
        cli.main()
    document = json.loads(capsys.readouterr().out)
    assert ended.value.code == 0
    assert document["verdict"] == "FIXED"
    assert len(document["steps"]) == len(found[_Wider].operations)


# -- without a broker ------------------------------------------------------------------------------------------------


def refused(monkeypatch, capsys, *arguments):
    monkeypatch.setattr(sys, "argv", ["conformance", "run", *arguments])
    with pytest.raises(SystemExit) as ended:
        cli.main()
    printed = capsys.readouterr()
    assert ended.value.code == 2
    assert printed.err.count("\n") == 1
    return printed.err


def test_a_machine_that_drives_none_of_the_implementations_is_refused(monkeypatch, capsys):
    assert "needs -i broker" in refused(monkeypatch, capsys, "--machine", "broker")
    assert "the offset machine needs -i jvm" in refused(monkeypatch, capsys, "-i", "broker", "--machine", "offset")


def test_a_trace_of_a_broker_begins_with_its_topic(tmp_path):
    create, append = Operation("create_topic", (TOPIC,)), BATCHES[0]
    assert Trace.load(Trace("broker", KRAFT, (create, append)).save(tmp_path)).operations[0].name == "create_topic"
    for steps in ((append, create), (create, Operation("roll_log", ())), (create, create)):
        with pytest.raises(TraceError, match=r"create_topic|no such operation"):
            Trace.load(Trace("broker", KRAFT, steps).save(tmp_path))


@budget(max_examples=20)
@given(old=settings(ZOOKEEPER), new=settings(KRAFT))
def test_the_settings_of_a_topic_are_ones_that_the_release_takes(old, new):
    assert old["segment.bytes"] >= 1500
    assert new["segment.bytes"] >= 1 << 20
    assert old["segment.index.bytes"] >= 12
