"""``--bootstrap-server`` and ``--log-dir``: a running broker is queried and its files are read, without changes."""

from __future__ import annotations

import json
import shutil
import socket
import sys

import pytest
from broker_scenario import create, produce

from conformance import cli
from conformance.kafka.broker import LocalBroker
from conformance.kafka.broker.external import mismatch_reason, requests_of
from conformance.kafka.broker.ports import HOST, free_ports
from conformance.kafka.broker.workload import plan, topic_config
from kidx.discovery import read_offset_checkpoint

RELEASE = "2.4.1"

pytestmark = pytest.mark.broker


@pytest.fixture(scope="module")
def broker(tmp_path_factory):
    with LocalBroker(RELEASE, base=tmp_path_factory.mktemp("attached")) as started, started.connect() as client:
        create(client, "t", topic_config(RELEASE))
        produce(client, "t", plan(seed=1, records=300))
        yield started


@pytest.fixture
def run(monkeypatch, capsys):
    def run_command(*arguments):
        monkeypatch.setattr(sys, "argv", ["conformance", "run", *map(str, arguments)])
        with pytest.raises(SystemExit) as ended:
            cli.main()
        printed = capsys.readouterr()
        complaints = [line for line in printed.err.splitlines(keepends=True) if not line.startswith("fetch")]
        return ended.value.code, printed.out, "".join(complaints)

    return run_command


@pytest.fixture
def copy(broker, tmp_path):
    return shutil.copytree(broker.log_dir, tmp_path / "copy")


def content(directory):
    return {path: path.read_bytes() for path in directory.rglob("*") if path.suffix in (".log", ".index", ".timeindex")}


@pytest.mark.thorough
def test_a_running_broker_is_checked_without_changes(broker, run):
    before = content(broker.log_dir)
    code, out, err = run(
        "--bootstrap-server", broker.bootstrap, "--log-dir", broker.log_dir, "--kafka", RELEASE, "--json"
    )
    assert (code, err) == (0, "")
    document = json.loads(out)
    assert document["verdict"] == "conforms"
    (result,) = document["results"]
    assert result["machine"] == "attached"
    assert result["examples"] == 2
    assert result["steps"] > 200
    assert result["details"]["backend"] == broker.bootstrap
    assert result["details"]["left_out"] == {}
    assert result["details"]["index_files"] > 10
    assert content(broker.log_dir) == before
    broker.check()


def test_results_that_are_not_in_the_files_are_a_divergence(broker, copy, run):
    for path in sorted((copy / "t-0").iterdir())[:8]:  # the first segments, so that others come first
        path.unlink()
    code, out, _ = run("--bootstrap-server", broker.bootstrap, "--log-dir", copy, "--kafka", RELEASE)
    assert code == 1
    assert "LO-6" in out
    assert f"--bootstrap-server {broker.bootstrap} --log-dir {copy}" in out


def test_an_index_that_can_mislead_is_a_divergence(broker, copy, run):
    index = next(path for path in sorted((copy / "t-0").glob("*.index")) if path.stat().st_size > 16)
    index.write_bytes(b"\0\0\0\1\0\0\0\1" + index.read_bytes()[8:])
    code, out, _ = run("--bootstrap-server", broker.bootstrap, "--log-dir", copy, "--kafka", RELEASE)
    assert code == 1
    assert index.name in out


def refused(run, *arguments):
    code, out, err = run(*arguments)
    assert (code, out, err.count("\n")) == (2, "", 1)
    return err


def test_a_broker_of_another_release_is_one_line(broker, run):
    error = refused(run, "--bootstrap-server", broker.bootstrap, "--log-dir", broker.log_dir, "--kafka", "3.9.2")
    assert (
        f"the broker at {broker.bootstrap} is not of Kafka 3.9.2: it understands ProduceRequest up to version 8"
        in error
    )


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("cluster.id=AAAAAAAAAAAAAAAAAAAAAA\nbroker.id=1\n", "belongs to the cluster AAAAAAAAAAAAAAAAAAAAAA"),
        ("cluster.id={}\nbroker.id=7\n", "belongs to broker 7, which the cluster"),
        ("cluster.id={}\n", "belongs to broker without an id"),
    ],
)
def test_a_directory_of_another_cluster_or_broker_is_one_line(broker, copy, run, line, said):
    meta = copy / "meta.properties"
    cluster_id = next(each for each in meta.read_text().splitlines() if each.startswith("cluster.id="))[11:]
    meta.write_text(line.format(cluster_id))
    assert said in refused(run, "--bootstrap-server", broker.bootstrap, "--log-dir", copy, "--kafka", RELEASE)


def test_an_invalid_directory_is_one_line(broker, tmp_path, run):
    (tmp_path / "file").touch()
    (tmp_path / "binary").mkdir()
    (tmp_path / "binary" / "meta.properties").write_bytes(b"\xff\xfe")
    for name, said in (
        ("missing", "does not exist"),
        (".", "has no meta.properties"),
        ("file", "cannot read"),
        ("binary", "cannot read"),
    ):
        place = tmp_path / name
        assert said in refused(run, "--bootstrap-server", broker.bootstrap, "--log-dir", place, "--kafka", RELEASE)


def test_an_address_without_a_broker_is_one_line(broker, run):
    (port,) = free_ports(1)
    assert "no broker answers at" in refused(run, "--bootstrap-server", f"{HOST}:{port}", "--log-dir", broker.log_dir)
    with socket.create_server((HOST, 0)) as deaf:
        address = f"{HOST}:{deaf.getsockname()[1]}"
        deaf.close()
        assert address in refused(run, "--bootstrap-server", address, "--log-dir", broker.log_dir)
    for nonsense in ("localhost", "host:port", ":9092", "host:0", "host:99999"):
        assert "HOST:PORT" in refused(run, "--bootstrap-server", nonsense, "--log-dir", broker.log_dir)


def test_missing_or_conflicting_options_are_one_line(broker, run):
    at, of = ("--bootstrap-server", broker.bootstrap), ("--log-dir", broker.log_dir)
    assert "must be given together" in refused(run, *at)
    assert "must be given together" in refused(run, *of)
    assert "requires -i broker" in refused(run, *at, *of, "-i", "jvm")
    assert "one --kafka" in refused(run, *at, *of, "--kafka", "2.4.1", "--kafka", "2.8.2")


def test_supported_versions_distinguish_minor_releases():
    own = {key: request.highest for key, request in requests_of("3.9.2").items()}
    assert mismatch_reason(own, requests_of("3.9.2")) == ""
    assert mismatch_reason({1: own[1]}, requests_of("3.9.2")) == ""
    for other in ("2.4.1", "3.6.2", "4.3.1"):
        assert mismatch_reason(own, requests_of(other))
    assert "does not have" in mismatch_reason({999: 0}, requests_of("3.9.2"))


@pytest.mark.thorough
def test_a_missing_checkpoint_of_a_new_broker_has_no_offsets(tmp_path):
    path = tmp_path / "log-start-offset-checkpoint"
    path.touch()
    assert read_offset_checkpoint(path) == {}
