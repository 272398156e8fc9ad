"""The image of the harness: it checks a broker over the wire."""

from __future__ import annotations

import json
import os
import subprocess

import pytest

from conformance.kafka.broker import LocalBroker
from conformance.kafka.broker.image import require

pytestmark = pytest.mark.docker

RELEASE = "4.3.1"
IMAGE = "kidx/harness"


@pytest.fixture(scope="module", autouse=True)
def image():
    """Require the image: it takes minutes to build, so that CI builds it before."""
    require(IMAGE, "docker/build-harness.sh makes it")


def harness(*words, options=()):
    """Run a command line in a container."""
    return subprocess.run(
        ["docker", "run", "--rm", "--network", "host", *options, IMAGE, *map(str, words)],
        capture_output=True,
        text=True,
        check=False,
    )


def test_a_broker_is_checked_over_the_wire(tmp_path):
    """The report belongs to the user who requested it."""
    (tmp_path / "out").mkdir()
    os.chown(tmp_path / "out", 12345, 12345)
    mounted = ("--user", "12345:12345", "--volume", f"{tmp_path}/out:/work")
    with LocalBroker(RELEASE, base=tmp_path) as broker:
        words = ("run", "-i", f"wire:{broker.bootstrap}", "--kafka", RELEASE, "--max-examples", 2, "--report", "report")
        done = harness(*words, options=mounted)
    assert done.returncode == 0, done.stdout + done.stderr
    events = tmp_path / "out" / "report" / "events.ndjson"
    assert events.stat().st_uid == 12345
    last = json.loads(events.read_text("utf-8").splitlines()[-1])
    assert (last["event"], last["verdict"]) == ("RunFinished", "conforms")
    assert last["steps"] > 10


def test_a_broker_that_does_not_answer_is_exit_code_2():
    done = harness("run", "-i", "wire:127.0.0.1:1", "--kafka", RELEASE)
    assert done.returncode == 2
    assert "127.0.0.1:1" in done.stderr


def test_nothing_runs_as_root():
    done = harness("-c", "import os; print(os.getuid())", options=("--entrypoint", "/opt/kidx/bin/python"))
    assert done.stdout.strip() == "10001", done.stderr


def test_java_is_in_the_image():
    program = "from kidx.java import find_java; print(find_java().version)"
    done = harness("-c", program, options=("--entrypoint", "/opt/kidx/bin/python"))
    assert int(done.stdout.split(".")[0]) >= 17, done.stderr
