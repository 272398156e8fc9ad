"""Brokers in real containers: images are built, brokers started and queried, their files compared, and they die."""

from __future__ import annotations

import os
import socket
import subprocess
import sys

import pytest
from broker_scenario import run_scenario

from conformance import cli
from conformance.kafka.broker import BrokerError, LocalBroker, container, new_broker
from conformance.kafka.broker.container import ContainerBroker
from conformance.kafka.broker.image import USER_ID, build, connect, image_name
from conformance.kafka.broker.ports import HOST, free_ports
from conformance.kafka.client import Address, Client
from conformance.kafka.polling import Deadline

pytestmark = pytest.mark.docker

KRAFT = "4.3.1"
ZOOKEEPER = "2.4.1"
both = pytest.mark.parametrize("release", [KRAFT, ZOOKEEPER])


@pytest.fixture(scope="module", autouse=True)
def images():
    return {release: build(release) for release in (KRAFT, ZOOKEEPER)}


@pytest.fixture
def engine():
    client = connect()
    yield client
    client.close()


def containers_of(engine, directory):
    """Return all containers, ended ones too, that have a directory of ours mounted."""
    return [
        each
        for each in engine.containers.list(all=True, filters={"label": "io.kidx=broker"}, ignore_removed=True)
        if any(str(directory) in mount["Source"] for mount in each.attrs["Mounts"])
    ]


def run(monkeypatch, *arguments):
    monkeypatch.setattr(sys, "argv", ["conformance", *map(str, arguments)])
    with pytest.raises(SystemExit) as ended:
        cli.main()
    return ended.value.code


@both
def test_the_answers_of_a_broker_are_found_through_its_index_files(release, engine, tmp_path):
    with ContainerBroker(release, base=tmp_path) as broker:
        (running,) = containers_of(engine, broker.directory)
        assert running.attrs["Config"]["Labels"]["io.kidx.release"] == release
        assert running.attrs["Config"]["User"].split(":")[0] not in ("", "0", "root")
        result = run_scenario(broker)
        assert result.ok, "\n".join(map(str, result.mismatches))
        assert result.segments > 10
        assert result.answers > 1000
        assert {path.stat().st_uid for path in broker.log_dir.rglob("*")} == {os.getuid() or USER_ID}
    assert not broker.directory.exists()
    assert not containers_of(engine, tmp_path)


@both
def test_a_killed_broker_restarts_with_its_data_and_on_its_port(release, engine, tmp_path):
    with ContainerBroker(release, base=tmp_path) as broker:
        bootstrap = broker.bootstrap
        with broker.connect() as client:
            client.create_topic("t", {})
            # A broker knows of a topic before it has made its directory, and serves before it knows what it leads.
            client.await_leader("t")
        broker.kill()
        assert not broker.running
        assert not containers_of(engine, tmp_path)
        assert (broker.log_dir / "t-0").is_dir()
        assert not (broker.log_dir / ".kafka_cleanshutdown").exists()
        broker.start()
        assert broker.bootstrap == bootstrap
        with broker.connect() as client:
            client.await_leader("t")
            assert client.list_offset("t", -1).offset == 0


def test_a_broker_that_dies_is_an_error_that_names_its_log_and_its_directory_is_retained(engine, tmp_path):
    broker = ContainerBroker(KRAFT, base=tmp_path)

    def live_and_die():
        with broker:
            (running,) = containers_of(engine, broker.directory)
            running.kill()
            deadline = Deadline(10)
            while broker.running:
                assert deadline.pause()
            broker.check()

    with pytest.raises(BrokerError, match="died with status 137") as caught:
        live_and_die()
    assert caught.value.log == broker.directory / "broker.log"
    assert "Kafka Server started" in caught.value.log.read_text("utf-8")
    assert not containers_of(engine, tmp_path)


def test_a_broker_that_cannot_start_reports_why(engine, tmp_path):
    with (
        pytest.raises(BrokerError, match="small") as caught,
        ContainerBroker(ZOOKEEPER, config={"log.segment.bytes": "small"}, base=tmp_path),
    ):
        pytest.fail("it started")
    assert "\n" not in str(caught.value)
    assert not containers_of(engine, tmp_path)


def test_a_taken_port_is_replaced_by_another_and_two_brokers_do_not_conflict(tmp_path, monkeypatch):
    calls = []

    def first_the_taken_one(count):
        calls.append(count)
        return [taken.getsockname()[1]] if len(calls) == 1 else free_ports(count)

    monkeypatch.setattr(container, "free_ports", first_the_taken_one)
    with (
        socket.create_server((HOST, 0)) as taken,
        ContainerBroker(KRAFT, base=tmp_path) as one,
        LocalBroker(KRAFT, base=tmp_path) as other,
    ):
        assert len(calls) == 2
        assert one.port != taken.getsockname()[1]
        with one.connect() as first, other.connect() as second:
            assert first.metadata().cluster_id != second.metadata().cluster_id


def test_a_container_does_not_outlive_a_killed_harness(engine, tmp_path):
    script = (
        "import sys\n"
        "from conformance.kafka.broker.container import ContainerBroker\n"
        f"broker = ContainerBroker({ZOOKEEPER!r}, base={str(tmp_path)!r})\n"
        "broker.start()\n"
        "print('ready', flush=True)\n"
        "sys.stdin.read()\n"
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    with subprocess.Popen(
        [sys.executable, "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment
    ) as harness:
        assert harness.stdout.readline() == b"ready\n"
        (running,) = containers_of(engine, tmp_path)
        harness.kill()
    deadline = Deadline(10)
    while running.status == "running":
        assert deadline.pause()
        running.reload()
    running.remove()


def test_the_image_is_healthy_when_its_broker_answers(engine):
    (port,) = free_ports(1)
    published = {"9092/tcp": (HOST, port)}
    environment = {"KAFKA_ADVERTISED_LISTENERS": f"PLAINTEXT://{HOST}:{port}", "KAFKA_NUM_PARTITIONS": "7"}
    running = engine.containers.run(image_name(KRAFT), detach=True, ports=published, environment=environment)
    try:
        deadline = Deadline(60)
        while running.attrs["State"].get("Health", {}).get("Status") != "healthy":
            assert deadline.pause(), running.logs().decode()
            running.reload()
            assert running.status == "running", running.logs().decode()
        with Client(Address(HOST, port)) as client:
            assert client.metadata().brokers == {1: (HOST, port)}
        assert b"num.partitions = 7" in running.logs()
        running.stop(timeout=30)
        assert running.wait()["StatusCode"] == 143
        assert b"Shutdown broker because a log directory" not in running.logs()
    finally:
        running.remove(force=True, v=True)


def test_a_run_says_where_the_broker_ran(monkeypatch, capsys):
    arguments = ("run", "-i", "broker", "--machine", "broker", "--kafka", KRAFT, "--max-examples", "1", "--seed", "1")
    assert run(monkeypatch, *arguments, "--broker", "container") == 0
    assert "broker (container)" in capsys.readouterr().out


def test_an_engine_without_the_image_is_one_line_or_a_local_process(monkeypatch, capsys):
    monkeypatch.setattr("conformance.kafka.broker.image.REPOSITORY", "kidx/no-such-image")
    assert run(monkeypatch, "run", "-i", "broker", "--kafka", KRAFT, "--broker", "container") == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.count("\n") == 1
    assert f"conformance kafka image {KRAFT}" in printed.err
    assert isinstance(new_broker(KRAFT), LocalBroker)


def test_a_missing_base_image_is_one_line(monkeypatch, capsys):
    assert run(monkeypatch, "kafka", "image", KRAFT, "--base", "kidx/no-such-base") == 2
    printed = capsys.readouterr()
    assert printed.err.count("\n") == 1
    assert "docker/build-base.sh" in printed.err
