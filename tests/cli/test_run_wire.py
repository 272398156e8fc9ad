"""End-to-end tests of ``conformance run -i wire:HOST:PORT`` and ``conformance implementations``."""

from __future__ import annotations

import json
import signal

import pytest
import wire_proxy
from interrupted import interrupt

from conformance.kafka.broker import LocalBroker
from conformance.kafka.broker.ports import HOST, free_ports
from conformance.kafka.client import Address, Client
from conformance.operations import Operation
from conformance.operations.trace import Trace

RELEASE = "4.3.1"
SMALL = ("--kafka", RELEASE, "--max-examples", "1", "--max-time", "20", "--allow-incomplete", "--seed", "3")

ALONE = "--skip-feature requires -i wire:HOST:PORT"


@pytest.fixture(scope="module")
def address(tmp_path_factory):
    with LocalBroker(RELEASE, base=tmp_path_factory.mktemp("typed")) as broker:
        yield Address(HOST, broker.port)


@pytest.mark.broker
@pytest.mark.thorough
def test_a_broker_that_conforms_is_unchanged_afterwards(typed, address):
    with Client(address) as client:
        client.create_topic("mine", {})
        client.await_leader("mine")
        before = set(client.metadata(None).topics)
    done = typed("run", "-i", f"wire:{address}", *SMALL, "--json")
    assert done.returncode == 0
    assert done.stderr.startswith("creates topics named kidx-wire-")
    assert f"on {address}, deletes them at the end, and touches no other topic" in done.stderr
    document = json.loads(done.stdout)
    (result,) = document["results"]
    assert result["machine"] == "wire"
    assert result["divergences"] == 0
    assert result["details"]["answers"] > 1_000
    assert result["verdicts"]["LO-6"] == "conforms"
    with Client(address) as client:
        left = set(client.metadata(None).topics)
    assert {topic for topic in left if topic.startswith("kidx-wire-")} == set()
    assert "mine" in left
    assert left - before <= {"__transaction_state"}


@pytest.mark.broker
@pytest.mark.thorough
@pytest.mark.parametrize(("seconds", "number"), [(3.0, signal.SIGINT), (4.0, signal.SIGTERM), (5.5, signal.SIGINT)])
def test_an_interrupted_run_deletes_its_topics(address, seconds, number):
    """The terminal sends the signal to the whole group. It comes while a request has no response yet."""
    done = interrupt(
        "conformance", "run", "-i", f"wire:{address}", "--kafka", RELEASE, number=number, seconds=seconds, terminal=True
    )
    assert (done.code, done.left) == (128 + number, [])
    with Client(address) as client:
        assert [topic for topic in client.metadata(None).topics if topic.startswith("kidx-wire-")] == []


@pytest.mark.broker
@pytest.mark.thorough
def test_faulty_broker_reported_once_and_trace_replays(typed, address):
    with wire_proxy.proxy_of(address) as proxy:
        with proxy.spoiling(answers=wire_proxy.earliest_is_next):
            done = typed(
                "run", "-i", f"wire:{proxy.address}", *SMALL, "--level", "must", "--max-shrink-time", "60", "--json"
            )
            assert done.returncode == 1
            (told,) = json.loads(done.stdout)["divergences"]
            assert told["clause"] == "LO-1"
            assert told["occurrences"] > 10
            assert len(told["steps"]) <= 2
            replayed = typed(*told["replay"].split()[1:])
            assert replayed.returncode == 1
            assert "FAILED" in replayed.stdout
            replayed = typed(
                *told["replay"].split()[1:], "--skip-feature", "transactions", "--skip-feature", "delete-records"
            )
            assert (replayed.returncode, replayed.stdout.splitlines()[-1][:6]) == (1, "FAILED")
        replayed = typed(*told["replay"].split()[1:])
        assert (replayed.returncode, replayed.stdout.splitlines()[-1][:5]) == (0, "FIXED")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("-i", "wire:nothing"), "'wire:nothing' must be HOST:PORT, not 'nothing'"),
        (
            ("-i", "wire:localhost:9092", "--skip-feature", "files"),
            "--skip-feature: unknown 'files'; choose from delete-records, transactions",
        ),
        (("-i", "wire:localhost:9092", "--command-config", "nothing"), "cannot read the command config nothing"),
        (("-i", "jvm", "--skip-feature", "transactions"), ALONE),
        (("-i", "wire:localhost:9092", "--machine", "broker"), "the broker machine requires -i broker"),
        (("-i", "jvm", "--machine", "wire"), "the wire machine requires -i wire:HOST:PORT"),
        (("-i", "subject:nothing"), "unknown subject 'nothing'"),
    ],
)
def test_invalid_options_are_one_line(typed, arguments, said):
    done = typed("run", *arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert said in done.stderr
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (
            ("-i", "wire:localhost:9092", "--skip-feature", "files"),
            "--skip-feature: unknown 'files'; choose from delete-records, transactions",
        ),
        (("-i", "wire:localhost:9092", "--command-config", "nothing"), "cannot read the command config nothing"),
        (("--skip-feature", "transactions"), ALONE),
    ],
)
def test_a_replay_with_invalid_options_is_one_line(typed, tmp_path, arguments, said):
    path = Trace("wire", RELEASE, (Operation("create_topic", ({},)),), None).save(tmp_path)
    done = typed("replay", str(path), *arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert said in done.stderr
    assert done.stderr.count("\n") == 1


def test_a_missing_broker_is_one_line(typed):
    (port,) = free_ports(1)
    done = typed("run", "-i", f"wire:{HOST}:{port}", "-q")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(f"conformance: the broker at {HOST}:{port} cannot be reached")
    assert done.stderr.count("\n") == 1


def test_the_subjects_are_listed(typed):
    done = typed("implementations", "list", "--json")
    assert done.returncode == 0
    named = {subject["name"]: subject for subject in json.loads(done.stdout)}
    assert {"driven": "wire", "language": "Go"}.items() <= named["kfake"].items()
    assert {"driven": "jvm", "language": "Java"}.items() <= named["fluss"].items()
    assert "kfake" in typed("implementations", "list").stdout
    assert typed("implementations", "build", "nothing").returncode == 2
