"""Any broker by its protocol alone: Kafka itself conforms at both levels, and a broker that lies is found out."""

from __future__ import annotations

import pytest
import wire_proxy
from hypothesis import HealthCheck, Phase, seed, settings
from hypothesis.stateful import run_state_machine_as_test
from in_ci import all_but, in_ci
from wire_lives import LIFE, LIVES, REBUILT

from conformance.expectations import Ledger
from conformance.implementations.wire.broker import WireBroker
from conformance.kafka.broker import LocalBroker
from conformance.kafka.broker.ports import HOST
from conformance.kafka.client import Address
from conformance.lockstep.levels.wire import WireLockstep
from conformance.machines.wire import WireMachine
from conformance.runs import wire

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
    """One of nine; CI plants them all."""
    return all_but(list(defects)[::9], defects)


def lived(address, scratch, level, *lives, versions=(1, 8)):
    """A lockstep that has asked everything after the last step of each life, in a few versions."""
    with WireBroker(address) as broker:
        broker.versions = versions
        lockstep = WireLockstep(broker, RELEASE, scratch, level=level)
        for life in lives:
            for number, operation in enumerate(life, start=1):
                lockstep.watches = number == len(life)
                lockstep.perform(operation)
            lockstep.close_topic()
    return lockstep


@pytest.mark.parametrize("level", ["observed", in_ci("must")])
def test_kafka_itself_conforms_in_every_version(address, tmp_path, level):
    with WireBroker(address) as broker:
        lockstep = WireLockstep(broker, RELEASE, tmp_path, level=level)
        run_state_machine_as_test(
            seed(5)(WireMachine.on(lockstep)),
            settings=settings(
                max_examples=2,
                stateful_step_count=6,
                deadline=None,
                database=None,
                phases=(Phase.generate,),
                suppress_health_check=list(HealthCheck),
            ),
        )
        assert broker.versions == tuple(range(1, 12))
    assert lockstep.differences == {}
    assert lockstep.statistics.left == 0
    assert lockstep.statistics.answers > 5_000
    assert {"LO-1", "LO-2b", "LO-6", "LO-10", "LO-24", "LO-25", "LO-26", "FE-1", "FE-2", "FE-3"} <= set(
        lockstep.statistics.clauses
    )


@pytest.mark.parametrize("level", [in_ci("observed"), "must"])
def test_the_lives_that_find_defects_show_none_in_kafka(address, tmp_path, level):
    lockstep = lived(address, tmp_path, level, *LIVES)
    assert lockstep.differences == {}
    assert lockstep.statistics.answers > 400


@pytest.mark.parametrize("defect", some_of(wire_proxy.DEFECTS), ids=lambda defect: defect.__name__)
def test_a_broken_promise_is_found_at_both_levels(proxy, tmp_path, defect):
    with proxy.spoiling(answers=defect):
        for level in ("must", "observed"):
            lockstep = lived(proxy.address, tmp_path / level, level, *LIVES)
            assert proxy.spoilt
            clauses = {clause for clause, _ in lockstep.differences}
            assert clauses
            assert clauses & wire_proxy.DEFECTS[defect]


@pytest.mark.parametrize("defect", some_of(wire_proxy.NOT_KAFKAS), ids=lambda defect: defect.__name__)
def test_what_is_only_kafkas_own_counts_at_the_level_of_what_was_observed(proxy, tmp_path, defect):
    with proxy.spoiling(answers=defect):
        lockstep = lived(proxy.address, tmp_path, "observed", *LIVES)
        assert proxy.spoilt
        assert {clause for clause, _ in lockstep.differences} & wire_proxy.NOT_KAFKAS[defect]


def test_a_record_of_a_later_segment_keeps_the_promise(proxy, tmp_path):
    with proxy.spoiling(answers=wire_proxy.goes_on_to_later_segments):
        assert lived(proxy.address, tmp_path, "must", *LIVES).differences == {}
        assert proxy.spoilt


@pytest.mark.parametrize("defect", some_of(wire_proxy.FETCHES), ids=lambda defect: defect.__name__)
def test_what_a_fetch_says_of_transactions_is_held_to_what_was_done(proxy, tmp_path, defect):
    with proxy.spoiling(fetches=defect):
        lockstep = lived(proxy.address, tmp_path, "must", *LIVES)
        assert proxy.spoilt
        assert {clause for clause, _ in lockstep.differences} & wire_proxy.FETCHES[defect]


def test_batches_that_no_follower_takes_are_a_difference_and_the_next_topic_follows(proxy, tmp_path):
    with proxy.spoiling(fetches=wire_proxy.without_leader_epochs):
        lockstep = lived(proxy.address, tmp_path, "must", REBUILT, LIFE[:1])
        assert proxy.spoilt
    assert set(lockstep.differences) == {("LG-1", "append: appended -> batches that no follower takes")}
    assert (lockstep.statistics.topics, lockstep.statistics.left) == (2, 1)
    assert lived(proxy.address, tmp_path / "unspoilt", "must", REBUILT).differences == {}


def test_an_answer_beside_an_error_is_told(proxy, tmp_path):
    with proxy.spoiling(answers=wire_proxy.unknown_has_epoch):
        (difference,) = lived(proxy.address, tmp_path, "must", LIFE[:1]).differences.values()
        assert proxy.spoilt
    assert difference.shape == (
        "list_offsets refusals: UNKNOWN_TOPIC_OR_PARTITION -> UNKNOWN_TOPIC_OR_PARTITION with an answer"
    )
    divergence = difference.divergence
    assert divergence.actual == f"{divergence.expected}, offset -1, timestamp -1, leader epoch 0"


def test_topics_that_are_left_do_not_end_the_run(proxy, tmp_path, monkeypatch):
    monkeypatch.setattr(wire, "CHUNK", 1)
    name = f"wire:{proxy.address}"
    run = wire.WireRun(name, 1, "dev", "must", tmp_path, lambda _: None, Ledger(()), topics=5, shrink_time=0)
    with proxy.spoiling(fetches=wire_proxy.damaged):
        (result,) = wire.run_wire([RELEASE], run, lambda _: None)
    assert result.details["left"] >= 3
    assert result.examples == 5
