"""The broker machine: real brokers conform, a wrong rule is detected, and a trace can be replayed."""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import settings as budget
from server_runs import results_of
from thorough_params import thorough_param

from conformance import cli
from conformance.errors import ToolError
from conformance.events import Diverged
from conformance.expectations import ExpectationTracker, load_expectations
from conformance.implementations.broker.reference import ReferencePartition
from conformance.implementations.broker.subject import BrokerDecision, BrokerTopic
from conformance.implementations.broker.topic import RunningBroker
from conformance.kafka.broker import LocalBroker
from conformance.kafka.client import OffsetResult
from conformance.lockstep.scopes.broker import BrokerLockstep, ExpectedStartFailureError
from conformance.lockstep.scopes.topic import BrokerStatistics, TopicLockstep
from conformance.operations import Operation
from conformance.operations.trace import Trace, TraceError
from conformance.runs.broker import BrokerRun, kill_cycles
from conformance.runs.profiles import ServerBudget
from conformance.runs.replay import replay
from conformance.strategies.broker import settings

KRAFT = "4.4.0"
ZOOKEEPER = "2.4.1"
TOPIC = {"segment.bytes": 1 << 20, "segment.index.bytes": 100, "index.interval.bytes": 100, "retention.ms": -1}
BATCHES = [Operation("append_batch", ([[1_700_000_000_000 + 10 * n, None, 30]], "none", None)) for n in range(6)]
"""Of 98 bytes each, so that every other one has an entry."""


@pytest.mark.broker
@pytest.mark.parametrize("release", [thorough_param(ZOOKEEPER), KRAFT])
def test_a_broker_conforms_step_by_step_and_in_its_files(release, tmp_path):
    events = []
    ledger = ExpectationTracker(load_expectations())
    options = {"amount": ServerBudget(2, 8, 0), "seed": 5, "sink": events.append}
    (result,) = results_of(BrokerRun, [release], "broker", tmp_path, ledger, **options)
    assert [event for event in events if isinstance(event, Diverged)] == []
    assert result.divergences == 0
    assert set(result.verdicts.values()) <= {"conforms", "not-run"}
    assert result.details["answers"] > 500
    assert result.details["segments"] >= 4
    assert result.details["kills"] == result.details["restarts"] == 1
    assert result.clauses["LO-6"] > 100


class _Wider(ReferencePartition):
    """A batch more between two entries of an index."""

    def __init__(self, release, directory, settings, leader_epoch):
        interval = settings["index.interval.bytes"] + 100
        super().__init__(release, directory, settings | {"index.interval.bytes": interval}, leader_epoch)


@pytest.mark.broker
@pytest.mark.thorough
def test_a_wrong_rule_is_detected_and_its_shrunk_trace_replays(tmp_path, monkeypatch, capsys):
    events = []
    monkeypatch.setattr(BrokerRun, "reference", _Wider)
    ledger = ExpectationTracker(load_expectations())
    options = {"amount": ServerBudget(1, 4, 0), "seed": 3, "sink": events.append, "broker": "local", "shrink_time": 5}
    (result,) = results_of(BrokerRun, [KRAFT], "broker", tmp_path / "traces", ledger, **options)
    assert result.divergences == 1
    assert result.details["unexplained"] == 1
    assert "diverges" in result.verdicts.values()
    (diverged,) = [event for event in events if isinstance(event, Diverged)]
    assert diverged.failure["aspects"] == ["bytes"]
    assert {Path(name).suffix for name, _ in diverged.failure["actual"]} == {".index", ".timeindex"}
    assert "SEG-25" in diverged.failure["clauses"]
    operations = Trace.load(diverged.trace).operations
    assert operations[0].name == "create_topic"
    assert len(operations) <= 6  # three batches of the first example would do
    assert diverged.replay == f"conformance replay {diverged.trace} --kafka {KRAFT} -i broker"
    monkeypatch.setattr(sys, "argv", [*diverged.replay.split(), "--json"])
    with pytest.raises(SystemExit) as ended:
        cli.main()
    document = json.loads(capsys.readouterr().out)
    assert ended.value.code == 0
    assert document["verdict"] == "FIXED"
    assert len(document["steps"]) == len(operations)


@pytest.fixture(scope="module")
def participant(tmp_path_factory):
    """Start one broker for the tests that kill it; the last of them prevents another start."""
    with LocalBroker(KRAFT, base=tmp_path_factory.mktemp("killed")) as broker:
        participant = RunningBroker(broker)
        yield participant
        participant.disconnect()


@pytest.mark.broker
@pytest.mark.thorough
def test_a_broker_that_is_killed_during_an_append_keeps_what_it_acknowledged(participant, tmp_path):
    lockstep = BrokerLockstep(participant, tmp_path, prefix="cycle")
    kill_cycles(lockstep, 1, seed=1)
    assert lockstep.statistics.kills == 1
    assert lockstep.statistics.acknowledged > 5
    assert lockstep.failure is None


@pytest.mark.broker
@pytest.mark.thorough
def test_a_log_beyond_recovery_prevents_both_from_starting(participant, tmp_path):
    """LG-19: what was acknowledged lies there, and neither the broker nor kidx can load it."""
    rows = [[[1_700_000_000_000 + number, None, 60]] for number in range(6)]
    batches = [Operation("append_batch", (each, "none", None)) for each in rows]
    lockstep = BrokerLockstep(participant, tmp_path, prefix="beyond")
    lockstep.perform(Operation("create_topic", (TOPIC | {"segment.index.bytes": 48},)))
    for operation in (*batches[:3], Operation("restart_broker", ()), *batches[3:]):
        lockstep.perform(operation)
    with pytest.raises(ExpectedStartFailureError, match="is full"):
        lockstep.perform(Operation("kill_broker", ()))
    assert "full time index" in participant.broker.output
    assert lockstep.statistics.refused_starts == lockstep.statistics.clauses["LG-19"] == 1


@pytest.mark.broker
@pytest.mark.thorough
def test_a_replay_whose_broker_dies_before_the_last_step_is_not_fixed():
    """As kidx predicts, the broker does not start: later steps of the trace were not executed."""
    topic = Operation("create_topic", (TOPIC | {"segment.index.bytes": 48},))
    rows = [[[1_700_000_000_000 + number, None, 60]] for number in range(6)]
    batches = [Operation("append_batch", (each, "none", None)) for each in rows]
    steps = [topic, *batches[:3], Operation("restart_broker", ()), *batches[3:], Operation("kill_broker", ())]
    trace = Trace("broker", KRAFT, (*steps, *batches[:2]))
    with pytest.raises(ToolError, match=r"does not start after step 9 .*: the 2 steps after it cannot"):
        replay(trace, [KRAFT], ["broker"])


def test_tolerated_or_skipped_steps_count_for_no_clause(tmp_path):
    """A difference that is known takes the topic out; neither it nor anything after it counts for its clauses."""
    broker = SimpleNamespace(name=f"broker {KRAFT}", release=KRAFT)
    lockstep = BrokerLockstep(broker, tmp_path, on_divergence=lambda divergence: "LO-1" in divergence.clauses)
    topic = lockstep.add_topic()
    topic.operations.append(BATCHES[0])
    topic.compare_values("outcome", 1, 1, ("LO-2",))
    topic.compare_values("outcome", 1, 2, ("LO-1",))
    topic.compare_values("outcome", 3, 3, ("LO-3",))
    topic.compare_answers("read_committed", [OffsetResult(-1, 5)], [OffsetResult(-1, 5)])
    assert not topic.active
    assert lockstep.statistics.expected == 1
    assert dict(lockstep.statistics.clauses) == {"LO-2": 1}


class _Decides(BrokerTopic):
    """Topic of a broker that leads in an arbitrary epoch."""

    def perform(self, operation):  # noqa: ARG002
        self.decided = BrokerDecision(epoch=7)
        return {}


class _Steps(TopicLockstep):
    """Compares what operations show, and nothing else."""

    def compare(self, *, every=False, moment="running"):
        pass


def test_the_reference_adopts_decisions_of_the_broker(tmp_path):
    broker = SimpleNamespace(name=f"broker {KRAFT}", release=KRAFT)
    topic = _Steps(_Decides(broker, "one"), tmp_path, statistics=BrokerStatistics())
    topic.perform(Operation("create_topic", (TOPIC,)))
    assert topic.reference.epoch == 7
    assert topic.operations == [Operation("create_topic", (TOPIC,))]


@pytest.mark.broker
@pytest.mark.thorough
def test_a_broker_that_does_not_start_is_a_result_and_the_next_release_continues(tmp_path, monkeypatch):
    events = []
    monkeypatch.setattr("conformance.kafka.broker.broker.START_LIMIT", 0.2)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))  # a broker that fails leaves its directory
    options = {"amount": ServerBudget(1, 1, 0), "sink": events.append, "broker": "local"}
    results = results_of(BrokerRun, ["3.9.2", KRAFT], "broker", tmp_path, ExpectationTracker(()), **options)
    assert [result.release for result in results] == ["3.9.2", KRAFT]
    assert [result.divergences for result in results] == [1, 1]
    assert "was not ready within 0.2 s" in results[1].details["error"]
    assert len([event for event in events if isinstance(event, Diverged)]) == 2


# -- without a broker ------------------------------------------------------------------------------------------------


def refused(monkeypatch, capsys, *arguments):
    monkeypatch.setattr(sys, "argv", ["conformance", "run", *arguments])
    with pytest.raises(SystemExit) as ended:
        cli.main()
    printed = capsys.readouterr()
    assert ended.value.code == 2
    assert printed.err.count("\n") == 1
    return printed.err


def test_a_machine_that_drives_none_of_the_implementations_is_rejected(monkeypatch, capsys):
    assert "requires -i broker" in refused(monkeypatch, capsys, "--machine", "broker")
    assert "the offset machine requires -i jvm" in refused(monkeypatch, capsys, "-i", "broker", "--machine", "offset")


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
