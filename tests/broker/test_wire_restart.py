"""A broker of ``wire:`` that the run may stop: acknowledged data survives SIGTERM and a kill."""

from __future__ import annotations

import shlex

import pytest
from wire_scenarios import COMMON, HOUR, T, batch

from conformance.kafka.broker import LocalBroker
from conformance.kafka.broker.ports import HOST
from conformance.lockstep.scopes.wire import WireLockstep
from conformance.operations import Operation
from conformance.runs.wire_options import WireOptions

pytestmark = pytest.mark.broker

RELEASE = "4.3.1"
STOP, KILL = Operation("restart_broker"), Operation("kill_broker")
SCENARIO = (
    Operation("create_topic", (COMMON | {"message.timestamp.type": "CreateTime"},)),
    batch(T + 50, T + 80, T + 20, codec="gzip"),
    batch(T + HOUR, producer="a"),
    Operation("delete_before", (1,)),
    STOP,
    batch(T + HOUR + 10, producer="a"),
    Operation("end_transaction", ("a", False)),
    batch(T + 2 * HOUR),
    KILL,
    batch(T + 2 * HOUR + 5, T + 10),
)


@pytest.fixture(scope="module")
def kafka(tmp_path_factory):
    """Return port, directory and command line of a stopped broker."""
    with LocalBroker(RELEASE, base=tmp_path_factory.mktemp("stopped")) as broker:
        broker.stop()
        properties = next(p for p in broker.directory.glob("*.properties") if "process.roles" in p.read_text())
        yield broker.port, broker.directory, broker._java("kafka.Kafka", properties)


def lockstep_after(kafka, scratch, command, scenario):
    port, _, _ = kafka
    with WireOptions(start_command=shlex.join(command)).open(f"wire:{HOST}:{port}") as broker:
        broker.versions = (1, 8)
        lockstep = WireLockstep(broker, RELEASE, scratch)
        for operation in scenario:
            lockstep.watches = operation in (STOP, KILL, scenario[-1])
            lockstep.perform(operation)
        lockstep.finish()
    return lockstep


@pytest.mark.thorough
def test_kafka_has_everything_after_a_stop_and_a_kill(kafka, tmp_path):
    lockstep = lockstep_after(kafka, tmp_path, kafka[2], SCENARIO)
    assert lockstep.differences == {}
    assert (lockstep.statistics.restarts, lockstep.statistics.kills, lockstep.statistics.abandoned) == (1, 1, 0)
    assert {"fetch", "fetch, with a restart", "fetch, with a kill"} <= lockstep.statistics.performed


@pytest.mark.thorough
def test_a_broker_that_forgets_is_found_out(kafka, tmp_path):
    _, directory, command = kafka
    forgetful = ["sh", "-c", f"rm -rf {shlex.quote(str(directory))}/data/kidx-wire-*; exec {shlex.join(command)}"]
    lockstep = lockstep_after(kafka, tmp_path, forgetful, (*SCENARIO[:2], KILL, SCENARIO[-1]))
    assert list(lockstep.differences) == [("FE-1", "kill_broker, with a kill: another end of the log")]
    assert lockstep.statistics.abandoned == 1
