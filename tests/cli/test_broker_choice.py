"""``--broker``: messages for a user without a Docker engine."""

from __future__ import annotations

import json
import sys

import pytest

from conformance import cli
from conformance.kafka.broker import LocalBroker, choose, new_broker
from conformance.kafka.broker.image import CONTROLLER_PORT, PORT, ZOOKEEPER_PORT
from conformance.kafka.releases import load_release


@pytest.fixture
def run(monkeypatch, capsys):
    def run_command(*arguments):
        monkeypatch.setattr(sys, "argv", ["conformance", *map(str, arguments)])
        with pytest.raises(SystemExit) as ended:
            cli.main()
        printed = capsys.readouterr()
        return ended.value.code, printed.out, printed.err

    return run_command


@pytest.fixture
def no_engine(monkeypatch, tmp_path):
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/no.sock")


@pytest.mark.broker
@pytest.mark.usefixtures("no_engine")
@pytest.mark.parametrize(
    "arguments",
    [
        ("run", "-i", "broker", "--broker", "container"),
        ("record-golden", "--kafka", "4.3.1", "--out", "never", "--broker", "container"),
        ("kafka", "image", "4.3.1"),
    ],
)
def test_without_an_engine_a_container_is_one_line_and_exit_code_2(run, tmp_path, monkeypatch, arguments):
    monkeypatch.chdir(tmp_path)
    code, out, err = run(*arguments)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert "no Docker engine answers (No such file or directory)" in err
    assert not list(tmp_path.iterdir())


@pytest.mark.usefixtures("no_engine")
def test_without_an_engine_auto_is_a_local_process_with_the_reason():
    assert isinstance(new_broker("4.3.1"), LocalBroker)
    assert choose("4.3.1").backend == "local"
    assert "no Docker engine answers" in choose("4.3.1").reason or "testcontainers" in choose("4.3.1").reason
    assert choose("4.3.1", "local").reason == ""


def test_an_unknown_backend_is_one_line(run):
    code, out, err = run("run", "-i", "broker", "--broker", "podman")
    assert (code, out, err.count("\n")) == (2, "", 1)


@pytest.mark.broker
@pytest.mark.parametrize("release", ["4.3.1", "2.4.1"])
def test_a_build_context_has_the_locked_jars_and_the_settings_of_a_broker(release, run, tmp_path):
    code, out, _ = run("kafka", "image", release, "--context", tmp_path / "context", "--json")
    assert code == 0
    assert json.loads(out)["release"] == release
    context = tmp_path / "context"
    jars = load_release(release).group("broker")
    assert {jar.name: jar.stat().st_size for jar in (context / "jars").iterdir()} == {j.name: j.size for j in jars}
    class_path = (context / "configuration" / "java.args").read_text("utf-8")
    positions = [class_path.index(f"/opt/kafka/jars/{jar.name}") for jar in jars]
    assert positions == sorted(positions)
    properties = (context / "configuration" / "server.properties").read_text("utf-8")
    assert f"listeners=PLAINTEXT://0.0.0.0:{PORT}" in properties
    assert str(CONTROLLER_PORT if release == "4.3.1" else ZOOKEEPER_PORT) in properties
    assert {path.name for path in context.iterdir() if path.is_file()} == {"Dockerfile", "start.sh", "healthy.sh"}
    code, _, err = run("kafka", "image", release, "--context", context)
    assert (code, err.count("\n")) == (2, 1)
    assert "is not empty" in err


def test_a_context_is_of_one_release(run, tmp_path):
    code, _, err = run("kafka", "image", "all", "--context", tmp_path)
    assert (code, err) == (2, "conformance: --context accepts one release\n")


@pytest.mark.broker
def test_a_context_directory_that_cannot_be_written_is_one_line(run, tmp_path):
    (tmp_path / "file").touch()
    code, _, err = run("kafka", "image", "4.3.1", "--context", tmp_path / "file" / "context")
    assert (code, err.count("\n")) == (2, 1)
