"""A broker starts on a copy that was made while it ran, after the steps of ``kidx verify --backup``."""

import shutil
import subprocess
import time

import pytest

from conformance.kafka.broker.workload import EPOCH_MS
from conformance.kafka.client import PartitionQuery
from conformance.studies.start_damage.observing import LOG_DIRS, TOPIC, _UnchangedBroker, broker_at
from kidx.discovery import HIGH_WATERMARKS, LOG
from kidx.records import build_batch
from kidx.startup import predict
from kidx.startup.mounting import Options, prepare
from kidx.verify import verify_paths

COPIED, LATER = 300, 20


def append(client, records):
    client.await_leader(TOPIC, 0)
    data = build_batch([(EPOCH_MS, None, b"x") for _ in range(records)])
    assert client.append(TOPIC, data, partition=0).error is None


def latest(client):
    client.await_leader(TOPIC, 0)
    (answer,) = client.request_offsets([PartitionQuery(TOPIC, -1, 0)])
    return answer.to_result(-1).offset


def copied_while_running(release, root, copy):
    """Copy the directories of a running broker, its logs first and a checkpoint after more records, and kill it."""
    broker = broker_at(release, root)
    with broker, broker.connect() as client:
        client.create_topic(TOPIC, {}, partitions=1)
        append(client, COPIED)
        for name in LOG_DIRS:
            shutil.copytree(root / name, copy / name)
        append(client, LATER)
        place = next(name for name in LOG_DIRS if (root / name / f"{TOPIC}-0").is_dir())
        deadline = time.monotonic() + 30
        while f"{TOPIC} 0 {COPIED + LATER}" not in (root / place / HIGH_WATERMARKS).read_text():
            assert time.monotonic() < deadline
            time.sleep(0.05)
        shutil.copy(root / place / HIGH_WATERMARKS, copy / place)
        broker.kill()
        broker.close(keep=True)
    (path,) = (copy / place / f"{TOPIC}-0").glob(f"*{LOG}")
    torn = build_batch([(EPOCH_MS, None, b"x")], base_offset=COPIED)[:-3]
    end = len(path.read_bytes().rstrip(b"\0"))
    path.write_bytes(path.read_bytes()[:end] + torn)
    (copy / place / ".kafka_cleanshutdown").write_text("0")


def steps_for(paths, release):
    result = verify_paths(paths, release=release, processes=1)
    return prepare(result, predict(paths, result, release), Options(release=release, processes=1))


@pytest.mark.broker
@pytest.mark.thorough
@pytest.mark.timeout(600)
@pytest.mark.in_turn(3)
@pytest.mark.parametrize("release", ["3.9.2", "4.3.1"])
def test_a_broker_serves_a_copy_up_to_the_offset_that_was_computed(release, tmp_path):
    root, copy = tmp_path / "broker", tmp_path / "copy"
    copied_while_running(release, root, copy)
    paths = [copy / name for name in LOG_DIRS]
    found = steps_for(paths, release)
    (ending,) = found.endings
    assert (ending.end, ending.named) == (COPIED, COPIED + LATER), found.lines()
    assert found.steps
    assert found.after.answer == "yes", found.lines()
    for step in found.steps:
        subprocess.run(["sh", "-c", step.command], check=True, capture_output=True)
    assert steps_for(paths, release).exit_code == 0, steps_for(paths, release).lines()
    for name in LOG_DIRS:
        shutil.rmtree(root / name)
        shutil.copytree(copy / name, root / name)
    broker = broker_at(release, root, _UnchangedBroker)
    broker.start()
    with broker.connect() as client:
        assert latest(client) == ending.end
        append(client, 1)
        assert latest(client) == ending.end + 1
    broker.close(keep=True)
