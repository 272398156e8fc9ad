"""A broker that does not respond as the protocol demands: each failure is a divergence with its steps, or one line."""

from __future__ import annotations

import itertools

import pytest
import wire_proxy
from server_runs import results_of
from thorough_params import thorough_except
from wire_scenarios import COMMON, SCENARIO, T, batch

from conformance.errors import ToolError
from conformance.events import Diverged
from conformance.expectations import ExpectationTracker
from conformance.implementations.wire import broker as wire_broker
from conformance.implementations.wire.broker import WireBroker
from conformance.kafka.broker import LocalBroker
from conformance.kafka.broker.ports import HOST
from conformance.kafka.client import Address, Client
from conformance.kafka.client.library import request_class
from conformance.lockstep import DivergenceError
from conformance.lockstep.scopes.wire import WireLockstep
from conformance.operations import Operation
from conformance.runs.profiles import ServerBudget
from conformance.runs.wire import WireRun
from conformance.runs.wire_options import WireOptions

pytestmark = pytest.mark.broker

RELEASE = "4.3.1"
TRANSACTION = (
    Operation("create_topic", (COMMON | {"message.timestamp.type": "CreateTime"},)),
    batch(T + 50),
    batch(T + 80, producer="a"),
    Operation("end_transaction", ("a", True)),
    Operation("delete_before", (1,)),
)
FIRST_WORDS = {
    "Produce": {"append"},
    "Fetch": {"append"},
    "InitProducerId": {"append"},
    "AddPartitionsToTxn": {"append"},
    "EndTxn": {"end_transaction"},
    "DeleteRecords": {"delete_before"},
    "ListOffsets": {"list_offsets", "list_offsets -1", "list_offsets -2", "list_offsets timestamp"},
}
"""For each API, the beginnings of the signatures that a failure of its responses may have."""
CASES = tuple(itertools.product(FIRST_WORDS, wire_proxy.FAILURES))
NAMES = {
    wire_proxy.is_silent: {"TIMED_OUT"},
    wire_proxy.is_late: {"TIMED_OUT"},
    wire_proxy.closes: {"CONNECTION_CLOSED"},
    wire_proxy.dies: {"CONNECTION_CLOSED"},
    wire_proxy.is_garbage: {"UNDECODABLE_ANSWER", "UNKNOWN"},  # some bytes are read as error -1
}


@pytest.fixture(scope="module")
def address(tmp_path_factory):
    with LocalBroker(RELEASE, base=tmp_path_factory.mktemp("failures")) as broker:
        yield Address(HOST, broker.port)


@pytest.fixture
def proxy(address, monkeypatch):
    monkeypatch.setattr(wire_broker, "RETURNS", 0.2)
    with wire_proxy.proxy_of(address) as proxy:
        yield proxy


def key_of(api):
    return request_class(api).API_KEY


def run(proxy, tmp_path, events, examples=2):
    return results_of(
        WireRun,
        [RELEASE],
        f"wire:{proxy.address}",
        tmp_path,
        ExpectationTracker(()),
        sink=events.append,
        amount=ServerBudget(examples, 4, 0, 2_000),
        shrink_time=2,
        wire=WireOptions(limit=wire_proxy.LIMIT),
    )


@pytest.mark.thorough
@pytest.mark.parametrize("case", thorough_except(CASES[::8], CASES), ids=lambda case: f"{case[0]} {case[1].__name__}")
def test_a_missing_response_is_a_divergence_of_its_step(proxy, tmp_path, case):
    api, failure = case
    with WireBroker(proxy.address, limit=wire_proxy.LIMIT) as broker:
        broker.versions = (7,)
        lockstep = WireLockstep(broker, RELEASE, tmp_path)
        with proxy.failing(key_of(api), failure):
            if api == "ListOffsets":  # the leader is awaited with it, too
                proxy.failure = None
                lockstep.perform(TRANSACTION[0])
                proxy.failure = (key_of(api), failure, False)
            for operation in TRANSACTION[1:] if lockstep.topics else TRANSACTION:
                lockstep.perform(operation)
            lockstep.finish()
        assert proxy.spoilt
    ((clause, shape),) = {(each.clause, each.shape) for each in list(lockstep.differences.values())[:1]}
    assert clause
    assert shape.partition(":")[0] in FIRST_WORDS[api]
    assert shape.rpartition(" -> ")[2] in NAMES.get(failure, {"UNDECODABLE_ANSWER"})


def test_one_response_that_never_comes_does_not_end_the_run(proxy, tmp_path):
    events = []
    with proxy.failing(key_of("Produce"), wire_proxy.is_silent, once=True):
        (result,) = run(proxy, tmp_path, events)
    (told,) = (event for event in events if isinstance(event, Diverged))
    assert told.signature == "append: a response -> TIMED_OUT"
    assert "did not answer ProduceRequest within 1 s" in told.failure["actual"]
    assert len(told.steps) == 2
    assert (result.divergences, result.examples) == (1, 2)
    assert result.details["answers"] > 50


def test_a_broker_that_is_silent_again_and_again_ends_the_run_with_its_divergence(proxy, tmp_path):
    events = []
    with proxy.failing(key_of("Produce"), wire_proxy.is_silent):
        (result,) = run(proxy, tmp_path, events, examples=6)
    assert result.divergences == 1
    assert result.examples == 3
    assert "has left 3 requests without a response in time" in result.details["ended"]


def test_a_broker_that_dies_is_a_divergence_and_what_it_keeps_is_named(proxy, address, tmp_path, capsys):
    events = []
    with proxy.failing(key_of("Produce"), wire_proxy.dies):
        (result,) = run(proxy, tmp_path, events)
    (told,) = (event for event in events if isinstance(event, Diverged))
    assert told.shrinking == "the broker is gone: not shrunk"
    assert result.divergences == 1
    said = capsys.readouterr().err
    assert said.startswith(f"left 1 topics on {proxy.address}: remove them with kafka-topics.sh --bootstrap-server")
    (pattern,) = (word.strip("'") for word in said.split() if "kidx-wire-" in word)
    with Client(address) as client:
        (left,) = (topic for topic in client.metadata(None).topics if topic.startswith(pattern.removesuffix(".*")))
        client.delete_topic(left)


@pytest.mark.parametrize("failure", [wire_proxy.closes, wire_proxy.is_garbage], ids=lambda failure: failure.__name__)
def test_a_topic_that_cannot_be_created_is_one_line(proxy, tmp_path, failure):
    with proxy.failing(key_of("CreateTopics"), failure), pytest.raises(ToolError) as raised:
        run(proxy, tmp_path, [])
    assert str(raised.value).startswith(f"the broker at {proxy.address} ")
    assert "CreateTopicsRequest" in str(raised.value)
    assert "\n" not in str(raised.value)


@pytest.mark.thorough
def test_a_replay_tells_a_missing_response_too(proxy, tmp_path):
    with (
        WireBroker(proxy.address, limit=wire_proxy.LIMIT) as broker,
        proxy.failing(key_of("DeleteRecords"), wire_proxy.is_silent),
    ):
        lockstep = WireLockstep(broker, RELEASE, tmp_path, stops_at_first=True)
        lockstep.watches = False
        *before, deletion = SCENARIO[:7]
        for operation in before:
            lockstep.perform(operation)
        with pytest.raises(DivergenceError, match="delete_before"):
            lockstep.perform(deletion)
