"""Topics that were deleted, or deleted and created again, just before a kill: nothing of them is lost."""

import time

import pytest

from conformance.kafka.broker import BrokerError
from conformance.kafka.broker.workload import EPOCH_MS
from conformance.kafka.client import PartitionQuery
from conformance.studies.start_damage.observing import LOG_DIRS, TOPIC, _UnchangedBroker, broker_at
from kidx.discovery import HIGH_WATERMARKS, parse_partition
from kidx.records import build_batch
from kidx.startup import predict
from kidx.verify import verify_paths

GONE = 30
BEFORE, AFTER = 300, 20


def append(client, topic, records, partition=0):
    client.await_leader(topic, partition)
    data = build_batch([(EPOCH_MS, None, b"x") for _ in range(records)])
    assert client.append(topic, data, partition=partition).error is None


def killed_after_deletions(release, root):
    """Delete a topic of many partitions, delete another and create it again, and kill the broker immediately."""
    broker = broker_at(release, root)
    with broker, broker.connect() as client:
        client.create_topic(TOPIC, {}, partitions=1)
        client.create_topic("gone", {}, partitions=GONE)
        client.create_topic("again", {}, partitions=1)
        for number in range(GONE):
            append(client, "gone", 2, number)
        append(client, "again", BEFORE)
        place = next(root / name for name in LOG_DIRS if (root / name / "again-0").is_dir())
        deadline = time.monotonic() + 30
        while f"again 0 {BEFORE}" not in (place / HIGH_WATERMARKS).read_text():
            assert time.monotonic() < deadline
            time.sleep(0.05)
        client.delete_topic("again")
        client.delete_topic("gone")
        for _ in range(50):
            try:
                client.create_topic("again", {}, partitions=1)
                append(client, "again", AFTER)
                break
            except BrokerError:
                time.sleep(0.1)
        broker.kill()
        broker.close(keep=True)


@pytest.mark.broker
@pytest.mark.thorough
@pytest.mark.timeout(600)
@pytest.mark.in_turn(3)
@pytest.mark.parametrize("release", ["3.9.2", "4.3.1", "4.4.0"])
def test_what_was_deleted_before_a_kill_is_no_loss(release, tmp_path):
    root = tmp_path / "broker"
    killed_after_deletions(release, root)
    (root / LOG_DIRS[0] / "backup-2024").mkdir()
    (root / LOG_DIRS[0] / "posthog-1").mkdir()
    paths = [root / name for name in LOG_DIRS]
    result = verify_paths(paths, release=release, processes=1)
    found = predict(paths, result, release)
    assert found.answer.startswith("yes"), found.lines()
    assert found.lost == (), found.lines()
    renamed = {each.directory for each in found.of("renamed")}
    assert {"backup-2024", "posthog-1"} <= {path.name for path in renamed}
    broker = broker_at(release, root, _UnchangedBroker)
    broker.start()
    with broker.connect() as client:
        client.await_leader("again", 0)
        (answer,) = client.request_offsets([PartitionQuery("again", -1, 0)])
        assert answer.to_result(-1).offset == AFTER
    broker.close(keep=True)
    for path in renamed:
        assert not path.exists() or path.name == "again-0", path
    strays = {parse_partition(each.name)[:2] for path in paths for each in path.glob("*-stray")}
    assert {parse_partition(path.name)[:2] for path in renamed} == strays
