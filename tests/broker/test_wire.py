"""Any broker by its protocol alone: Kafka itself conforms at both levels, and a broker that lies is found out."""

from __future__ import annotations

import pytest
import wire_proxy
from machine_runs import run_machine
from server_runs import results_of
from thorough_params import thorough_except, thorough_param
from wire_scenarios import REBUILT, SCENARIO, SCENARIOS

from conformance.expectations import ExpectationTracker
from conformance.implementations.wire.broker import WireBroker
from conformance.kafka.broker import LocalBroker
from conformance.kafka.broker.ports import HOST
from conformance.kafka.client import Address
from conformance.lockstep.scopes.wire import WireLockstep
from conformance.machines.wire import WireMachine
from conformance.runs import server_run
from conformance.runs.wire import WireRun

pytestmark = pytest.mark.broker

RELEASE = "4.3.1"


@pytest.fixture(scope="module")
def address(tmp_path_factory):
    with LocalBroker(RELEASE, base=tmp_path_factory.mktemp("wire")) as broker:
        yield Address(HOST, broker.port)


@pytest.fixture(scope="module")
def proxy(address):
    with wire_proxy.proxy_of(address) as proxy:
        yield proxy


def some_of(defects):
    """Return one defect of nine; CI plants all."""
    return thorough_except(list(defects)[::9], defects)


def lockstep_after(address, scratch, level, *scenarios, versions=(1, 8)):
    """Return a lockstep that has sent every query after the last step of each scenario, in a few versions."""
    with WireBroker(address) as broker:
        broker.versions = versions
        lockstep = WireLockstep(broker, RELEASE, scratch, level=level)
        for scenario in scenarios:
            for number, operation in enumerate(scenario, start=1):
                lockstep.watches = number == len(scenario)
                lockstep.perform(operation)
            lockstep.finish()
    return lockstep


@pytest.mark.parametrize("level", ["observed", thorough_param("must")])
def test_kafka_itself_conforms_in_every_version(address, tmp_path, level):
    with WireBroker(address) as broker:
        lockstep = WireLockstep(broker, RELEASE, tmp_path, level=level)
        run_machine(WireMachine, lockstep, 2, seed=5, steps=6)
        assert broker.versions == tuple(range(1, 12))
    assert lockstep.differences == {}
    assert lockstep.statistics.abandoned == 0
    assert lockstep.statistics.answers > 5_000
    assert {"LO-1", "LO-2b", "LO-6", "LO-10", "LO-24", "LO-25", "LO-26", "FE-1", "FE-2", "FE-3"} <= set(
        lockstep.statistics.clauses
    )


@pytest.mark.parametrize("level", [thorough_param("observed"), "must"])
def test_the_scenarios_that_find_defects_find_none_in_kafka(address, tmp_path, level):
    lockstep = lockstep_after(address, tmp_path, level, *SCENARIOS)
    assert lockstep.differences == {}
    assert lockstep.statistics.answers > 400


@pytest.mark.thorough
@pytest.mark.parametrize("defect", some_of(wire_proxy.DEFECTS), ids=lambda defect: defect.__name__)
def test_a_broken_promise_is_found_at_both_levels(proxy, tmp_path, defect):
    with proxy.spoiling(answers=defect):
        for level in ("must", "observed"):
            lockstep = lockstep_after(proxy.address, tmp_path / level, level, *SCENARIOS)
            assert proxy.spoilt
            clauses = {clause for clause, _ in lockstep.differences}
            assert clauses
            assert clauses & wire_proxy.DEFECTS[defect]


@pytest.mark.parametrize("defect", some_of(wire_proxy.NOT_KAFKAS), ids=lambda defect: defect.__name__)
def test_behaviour_specific_to_kafka_counts_at_level_observed(proxy, tmp_path, defect):
    with proxy.spoiling(answers=defect):
        lockstep = lockstep_after(proxy.address, tmp_path, "observed", *SCENARIOS)
        assert proxy.spoilt
        assert {clause for clause, _ in lockstep.differences} & wire_proxy.NOT_KAFKAS[defect]


@pytest.mark.parametrize("defect", wire_proxy.PROMISED_TO_NOBODY, ids=lambda defect: defect.__name__)
def test_what_no_page_promises_breaks_no_promise(proxy, tmp_path, defect):
    with proxy.spoiling(answers=defect):
        assert lockstep_after(proxy.address, tmp_path, "must", *SCENARIOS).differences == {}
        assert proxy.spoilt


@pytest.mark.parametrize("defect", some_of(wire_proxy.FETCHES), ids=lambda defect: defect.__name__)
def test_transactions_of_a_fetch_are_compared_with_the_executed_ones(proxy, tmp_path, defect):
    with proxy.spoiling(fetches=defect):
        lockstep = lockstep_after(proxy.address, tmp_path, "must", *SCENARIOS)
        assert proxy.spoilt
        assert {clause for clause, _ in lockstep.differences} & wire_proxy.FETCHES[defect]


def test_batches_that_no_follower_accepts_are_a_divergence_and_the_next_topic_follows(proxy, tmp_path):
    with proxy.spoiling(fetches=wire_proxy.without_leader_epochs):
        lockstep = lockstep_after(proxy.address, tmp_path, "must", REBUILT, SCENARIO[:1])
        assert proxy.spoilt
    assert set(lockstep.differences) == {("LG-1", "append: appended -> batches that no follower takes")}
    assert (lockstep.statistics.topics, lockstep.statistics.abandoned) == (2, 1)
    assert lockstep_after(proxy.address, tmp_path / "unspoilt", "must", REBUILT).differences == {}


def test_a_result_together_with_an_error_is_reported(proxy, tmp_path):
    with proxy.spoiling(answers=wire_proxy.unknown_has_epoch):
        (difference,) = lockstep_after(proxy.address, tmp_path, "must", SCENARIO[:1]).differences.values()
        assert proxy.spoilt
    assert difference.shape == (
        "list_offsets refusals: UNKNOWN_TOPIC_OR_PARTITION -> UNKNOWN_TOPIC_OR_PARTITION with an answer"
    )
    divergence = difference.divergence
    assert divergence.actual == f"{divergence.expected}, offset -1, timestamp -1, leader epoch 0"


@pytest.mark.parametrize("defect", wire_proxy.OTHER_ERRORS, ids=lambda defect: defect.__name__)
def test_the_kind_of_an_error_counts_at_level_must_where_the_protocol_promises_it(proxy, tmp_path, defect):
    with proxy.spoiling(answers=defect):
        lockstep = lockstep_after(proxy.address, tmp_path, "must", SCENARIO[:1], versions=(1, 4, 8))
        assert proxy.spoilt
    assert {clause for clause, _ in lockstep.differences} == {wire_proxy.OTHER_ERRORS[defect]}


@pytest.mark.thorough
def test_remaining_topics_do_not_end_the_run(proxy, tmp_path, monkeypatch):
    monkeypatch.setattr(server_run, "CHUNK", 1)
    options = {"max_examples": 5, "level": "must", "shrink_time": 0}
    with proxy.spoiling(fetches=wire_proxy.damaged):
        name = f"wire:{proxy.address}"
        (result,) = results_of(WireRun, [RELEASE], name, tmp_path, ExpectationTracker(()), **options)
    assert result.details["left"] >= 3
    assert result.examples == 5
