"""``-i broker:DIR``: a broker is started from a directory of jars, and checked against the release of the jars."""

from __future__ import annotations

import json

import pytest
from broken_kafka import broken
from kafka_builds import build_at
from kafka_changes import BROKEN, RELEASE

from conformance.operations import Operation
from conformance.operations.trace import Trace

pytestmark = pytest.mark.broker


@pytest.fixture
def run(tmp_path, in_process):
    def command(*words):
        return in_process("conformance", *words, work=tmp_path, environment={"XDG_STATE_HOME": str(tmp_path / "state")})

    return command


@pytest.mark.in_turn(2)
@pytest.mark.parametrize("release", [RELEASE, pytest.param("2.4.1", marks=pytest.mark.thorough)])
@pytest.mark.thorough
def test_a_broker_of_a_build_conforms_to_its_release(release, tmp_path, run):
    build = build_at(tmp_path / "kafka" / "libs", release, "broker").parent
    done = run("run", "-i", f"broker:{build}", "--max-examples", 1, "--json")
    assert done.returncode == 0, done.stdout + done.stderr
    document = json.loads(done.stdout)
    (row,) = document["results"]
    assert (row["implementation"], row["release"], row["machine"]) == (f"broker:{build}", release, "broker")
    assert row["steps"] > 3
    assert row["divergences"] == 0


@pytest.mark.thorough
def test_its_own_classes_are_used(tmp_path, run):
    sound = build_at(tmp_path / "sound", RELEASE, "broker")
    build = broken(sound, BROKEN["entry-at-the-interval"].change, tmp_path / "broken")
    batch = Operation("append_batch", ([[1_700_000_000_000, None, 30]], "none", None))
    settings = {"segment.bytes": 1 << 20, "segment.index.bytes": 100, "index.interval.bytes": 98, "retention.ms": -1}
    steps = (Operation("create_topic", (settings,)), batch, batch, batch)
    trace = Trace("broker", RELEASE, steps).save(tmp_path / "traces")
    fixed = run("replay", trace, "-i", f"broker:{sound}")
    assert (fixed.returncode, fixed.stdout.splitlines()[-1][:5]) == (0, "FIXED"), fixed.stdout + fixed.stderr
    failed = run("replay", trace, "-i", f"broker:{build}")
    assert failed.returncode == 1, failed.stdout + failed.stderr
    assert ".index" in failed.stdout


def test_an_incomplete_distribution_is_reported_in_one_line(tmp_path, run):
    build = build_at(tmp_path / "libs", RELEASE, "index")
    done = run("run", "-i", f"broker:{build}", "--max-examples", 1)
    assert done.returncode == 2, done.stdout + done.stderr
    (line,) = done.stderr.splitlines()
    assert f"the build {build} cannot start a broker: none of its" in line
