"""A real broker as a local process: its answers are in its files, and it is always stopped.

Broker and ZooKeeper are Java processes; the tests of how they are held on to use them only where it matters.
"""

from __future__ import annotations

import os
import shutil
import signal
import socket
import struct
import subprocess
import sys
from pathlib import Path

import pytest
from broker_scenario import TOPIC, create, produce, run_scenario
from partition_files import Partition
from thorough_params import thorough_param

from conformance.errors import ToolError
from conformance.kafka.broker import BrokerError, LocalBroker, default_mode, local, modes_of
from conformance.kafka.broker.ports import HOST, free_ports
from conformance.kafka.broker.process import JavaProcess
from conformance.kafka.broker.workload import grid, plan
from conformance.kafka.client import Address, Client, UnreachableError
from conformance.kafka.polling import Deadline
from conformance.kafka.releases import RELEASES
from kidx import dialect_of

KRAFT = "4.3.1"
ZOOKEEPER = "2.4.1"

broker_test = pytest.mark.broker
both = pytest.mark.parametrize("release", [KRAFT, thorough_param(ZOOKEEPER)])


def ask_metadata(port):
    with Client(Address(HOST, port)) as client:
        return client.metadata()


def processes_of(directory: Path) -> list[str]:
    """Return the command lines of all processes that were started for something in ``directory``."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            command = (entry / "cmdline").read_bytes()
        except OSError:
            continue  # it has just ended
        if os.fsencode(directory) in command and entry.name != str(os.getpid()):
            found.append(command.replace(b"\0", b" ").decode())
    return found


def wait_until_gone(directory: Path) -> None:
    deadline = Deadline(10)
    while left := processes_of(directory):
        assert deadline.pause(), f"still running: {left}"


# -- the scenario ----------------------------------------------------------------------------------------------------


@broker_test
@pytest.mark.thorough
@pytest.mark.parametrize("release", [KRAFT, ZOOKEEPER])
def test_the_answers_of_a_broker_are_found_through_its_index_files(release, tmp_path):
    with LocalBroker(release, base=tmp_path) as broker:
        result = run_scenario(broker)
        assert result.ok, "\n".join(map(str, result.mismatches))
        assert result.records == 600
        assert result.segments > 10
        assert result.offset_entries > 100
        assert result.time_entries > 50
        assert result.answers > 1000
        check_that_damage_is_noticed(broker.log_dir / f"{TOPIC}-0", release, tmp_path / "copy")
        directory = broker.directory
    assert not directory.exists()
    assert not processes_of(directory)


def check_that_damage_is_noticed(partition: Path, release: str, copy: Path) -> None:
    """Check that a change of a few bytes is detected."""

    def clauses(damage):
        shutil.copytree(partition, copy)
        damage(next(path for path in sorted(copy.glob("*.timeindex")) if path.stat().st_size > 24))
        with Partition(copy, dialect_of(release)) as damaged:
            found = {mismatch.clause for mismatch in damaged.mismatches()}
        shutil.rmtree(copy)
        return found

    def overwrite(path, position, data):
        with path.open("r+b") as file:
            file.seek(position)
            file.write(data)

    def index(path):
        return path.with_suffix(".index")

    assert not clauses(lambda _: None)
    assert "SEG-24" in clauses(lambda path: os.truncate(path, path.stat().st_size - 12))
    assert "TI-11" in clauses(lambda path: os.truncate(path, path.stat().st_size + 5))
    assert {"TI-3", "TI-11"} <= clauses(lambda path: os.truncate(path, path.stat().st_size + 12))
    assert "SEG-6" in clauses(lambda path: overwrite(path, path.stat().st_size - 4, struct.pack(">i", 1 << 30)))
    assert "OI-3" in clauses(lambda path: os.truncate(index(path), index(path).stat().st_size + 8))
    assert "SEG-5" in clauses(lambda path: overwrite(index(path), 4, struct.pack(">i", 1)))
    assert "RB-4" in clauses(lambda path: os.truncate(path.with_suffix(".log"), 500))


# -- life and death of a broker --------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def pair(tmp_path_factory):
    """Start two brokers with the same settings."""
    base = tmp_path_factory.mktemp("pair")
    with LocalBroker(ZOOKEEPER, base=base) as one, LocalBroker(KRAFT, base=base) as other:
        yield {ZOOKEEPER: one, KRAFT: other}
    wait_until_gone(base)


@pytest.mark.thorough
@broker_test
def test_two_brokers_side_by_side_do_not_meet(pair):
    one, other = pair.values()
    assert one.directory != other.directory
    first, second = ask_metadata(one.port), ask_metadata(other.port)
    assert first.cluster_id != second.cluster_id
    assert first.brokers == {1: (HOST, one.port)}
    assert second.brokers == {1: (HOST, other.port)}
    with one.connect() as client:
        client.create_topic("mine", {})
        client.await_leader("mine")
    assert (one.log_dir / "mine-0").is_dir()
    assert not (other.log_dir / "mine-0").exists()


@pytest.mark.thorough
@broker_test
@both
def test_a_killed_broker_restarts_with_its_data_and_on_its_port(pair, release):
    broker = pair[release]
    batches = plan(seed=1, records=40)
    targets = [grid({m.timestamp for b in batches if b.partition == n for m in b.messages}) for n in range(2)]
    bootstrap = broker.bootstrap
    with broker.connect() as client:
        create(client, "t", {"retention.ms": "-1"})
        produce(client, "t", batches)
        before = [client.answers("t", each, partition=n) for n, each in enumerate(targets)]
    assert any(answer.offset is not None for answer in before[0])
    broker.kill()
    assert not broker.running
    assert not (broker.log_dir / ".kafka_cleanshutdown").exists()
    broker.start()
    assert broker.bootstrap == bootstrap
    with broker.connect() as client:
        for partition in range(len(targets)):
            client.await_leader("t", partition)
        after = [client.answers("t", each, partition=n) for n, each in enumerate(targets)]
    assert [[answer[:3] for answer in each] for each in after] == [[answer[:3] for answer in each] for each in before]


REFUSED_AT_ONCE = {"log.segment.bytes": "small"}
FAILS_STARTING = {"metric.reporters": "no.such.Reporter"}


@broker_test
@pytest.mark.parametrize(
    ("release", "config"),
    [
        (ZOOKEEPER, REFUSED_AT_ONCE),
        thorough_param(KRAFT, FAILS_STARTING),
        thorough_param(KRAFT, REFUSED_AT_ONCE),
        thorough_param(ZOOKEEPER, FAILS_STARTING),
    ],
)
def test_a_broker_that_cannot_start_is_an_error_that_names_its_log(release, config, tmp_path):
    (complaint,) = config.values()
    with pytest.raises(BrokerError) as caught, LocalBroker(release, config=config, base=tmp_path):
        pytest.fail("it started")
    error = caught.value
    assert str(error.log) in str(error)
    assert release in str(error)
    assert "\n" not in str(error)
    assert complaint in error.tail
    assert complaint in error.log.read_text("utf-8")
    assert any(str(error.log.parent) in note for note in error.__notes__)
    assert not processes_of(tmp_path)


@broker_test
@pytest.mark.thorough
def test_a_broker_that_does_not_get_ready_is_an_error_and_not_a_hang(tmp_path, monkeypatch):
    monkeypatch.setattr("conformance.kafka.broker.broker.START_LIMIT", 0.5)
    with (
        pytest.raises(BrokerError, match=r"was not ready within 0.5 s"),
        LocalBroker("3.9.2", base=tmp_path),
    ):
        pytest.fail("it started")
    assert not processes_of(tmp_path)


@broker_test
@pytest.mark.thorough
def test_a_broker_that_dies_is_detected_and_its_directory_retained(tmp_path):
    broker = LocalBroker("3.9.2", base=tmp_path)

    def live_and_die():
        with broker:
            broker.check()
            os.killpg(broker._process.pid, signal.SIGKILL)
            deadline = Deadline(10)
            while broker.running:
                assert deadline.pause()
            with pytest.raises(BrokerError, match="died"):
                broker.check()

    with pytest.raises(BrokerError, match="died with status 137") as caught:
        live_and_die()
    assert caught.value.log.exists()
    assert broker.directory.is_dir()
    wait_until_gone(tmp_path)


@broker_test
@pytest.mark.thorough
def test_a_broker_does_not_outlive_a_killed_harness(tmp_path):
    script = (
        "import sys, time\n"
        "from conformance.kafka.broker import LocalBroker\n"
        f"broker = LocalBroker({ZOOKEEPER!r}, base={str(tmp_path)!r})\n"
        "broker.start()\n"
        "print(broker.port, flush=True)\n"
        "sys.stdin.read()\n"
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    with subprocess.Popen(
        [sys.executable, "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment
    ) as harness:
        port = int(harness.stdout.readline())
        assert ask_metadata(port).brokers == {1: (HOST, port)}
        assert len(processes_of(tmp_path)) >= 4  # broker and ZooKeeper, each under its supervisor
        harness.kill()
    wait_until_gone(tmp_path)
    with pytest.raises(UnreachableError):
        ask_metadata(port)


@broker_test
@pytest.mark.thorough
def test_a_given_directory_is_retained_and_restarts_and_a_taken_port_is_replaced(tmp_path, monkeypatch):
    calls = []

    def first_the_taken_one(count):
        calls.append(count)
        found = free_ports(count)
        return [taken.getsockname()[1], *found[1:]] if len(calls) == 1 else found

    directory = tmp_path / "mine"
    monkeypatch.setattr(local, "free_ports", first_the_taken_one)
    with socket.create_server((HOST, 0)) as taken, LocalBroker("3.9.2", directory) as broker:
        assert len(calls) == 2
        assert broker.port != taken.getsockname()[1]
        with broker.connect() as client:
            client.create_topic("t", {})
            client.await_leader("t")
        cluster_id = ask_metadata(broker.port).cluster_id
    assert (directory / "data" / "t-0").is_dir()
    with LocalBroker("3.9.2", directory) as broker:
        assert ask_metadata(broker.port).cluster_id == cluster_id


# -- without a broker ------------------------------------------------------------------------------------------------


def sleeper(directory: Path) -> JavaProcess:
    command = [sys.executable, "-c", "import time; print('up', flush=True); time.sleep(600)", directory]
    process = JavaProcess(command, log=directory / "log", directory=directory)
    deadline = Deadline(20)
    while "up" not in process.log.read_text():
        assert deadline.pause()
    return process


def test_a_process_is_terminated_or_killed_and_the_way_is_returned(tmp_path):
    process = sleeper(tmp_path)
    assert process.running
    process.terminate()
    assert process.wait(10)
    assert process.exit_status == 128 + signal.SIGTERM
    process.terminate()  # nothing happens

    process = sleeper(tmp_path)
    assert process.log_start > 0
    assert not process.wait(0.01)
    process.kill()
    assert process.exit_status == 128 + signal.SIGKILL
    assert not processes_of(tmp_path)


def test_a_process_dies_with_its_supervisor(tmp_path):
    process = sleeper(tmp_path)
    os.kill(process.pid, signal.SIGKILL)
    assert process.wait(10)
    wait_until_gone(tmp_path)


def test_an_exit_status_is_passed_on(tmp_path):
    process = JavaProcess([sys.executable, "-c", "raise SystemExit(3)"], log=tmp_path / "log", directory=tmp_path)
    assert process.wait(20)
    assert process.exit_status == 3


def test_every_locked_release_has_a_mode():
    for release in RELEASES:
        assert default_mode(release) in modes_of(release)
    assert modes_of("2.4.1") == ("zookeeper",)
    assert modes_of("3.9.2") == ("kraft", "zookeeper")
    assert modes_of("4.3.1") == ("kraft",)
    with pytest.raises(ToolError, match="does not run with zookeeper"):
        LocalBroker("4.3.1", mode="zookeeper")
