"""``kidx explain`` predicts the segments that a broker's next check of retention deletes, segment by segment."""

import time

import pytest

from conformance.kafka.broker.local import LocalBroker
from kidx.dialect import DIALECTS
from kidx.discovery import parse_segment_file
from kidx.records import build_batch
from kidx.startup.fates import fates

pytestmark = pytest.mark.broker

HOUR_MS = 3_600_000
NEVER = {
    "log.retention.check.interval.ms": HOUR_MS,
    "log.initial.task.delay.ms": HOUR_MS,
    "log.cleaner.enable": "false",
}
"""Settings with which nothing is deleted; the cleaner deletes segments of topics that are compacted, too."""
SOON = {"log.retention.check.interval.ms": 1000, "log.initial.task.delay.ms": 1000, "log.cleaner.backoff.ms": 1000}
COUNT = 25
"""Segments of each topic: each batch is late enough to begin a segment."""
DAYS = [number * 4 for number in range(COUNT)][::-1]
TOPICS = {
    "time": ({"retention.ms": 50 * HOUR_MS}, DAYS),
    "size": ({"retention.ms": -1, "retention.bytes": 9_000}, DAYS),
    "both": ({"retention.ms": 70 * HOUR_MS, "retention.bytes": 12_345}, DAYS),
    "unlimited": ({"retention.ms": -1}, DAYS),
    "compacted": ({"cleanup.policy": "compact", "retention.ms": HOUR_MS, "retention.bytes": 1}, DAYS),
    "of-both-policies": ({"cleanup.policy": "compact,delete", "retention.ms": 30 * HOUR_MS}, DAYS),
    "held-up": ({"retention.ms": 30 * HOUR_MS}, [90, 86, 1, *DAYS[3:]]),
    "all-old": ({"retention.ms": HOUR_MS}, [each + 5 for each in DAYS]),
    "of-the-broker": ({}, [each + 100 for each in DAYS]),
}
"""Settings of each topic, and the age of each batch in hours; the broker's own limit is 130 hours."""


def broker_at(release, root, checks):
    data = root / "data"
    config = {"log.dirs": data, "metadata.log.dir": data}
    config |= {"log.retention.ms": 130 * HOUR_MS, "log.cleaner.min.cleanable.ratio": 1.0}  # nothing is compacted
    return LocalBroker(release, root, config | checks)


def fill(client, now):
    for topic, (settings, ages) in TOPICS.items():
        client.create_topic(topic, {"segment.ms": "1000", **{name: str(value) for name, value in settings.items()}})
        client.await_leader(topic, 0)
        for number, age in enumerate(ages):
            value = b"x" * (300 + 37 * number)
            data = build_batch([(now - age * HOUR_MS, b"%d" % number, value)])
            assert client.append(topic, data).error is None


def bases(directory):
    parsed = (parse_segment_file(path.name) for path in directory.iterdir())
    return {each[0] for each in parsed if each is not None and each[1] == ".log"}


@pytest.mark.thorough
@pytest.mark.timeout(300)
@pytest.mark.parametrize("release", ["3.9.2", "4.3.1"])
def test_the_next_check_of_retention_deletes_what_was_said(release, tmp_path):
    now = int(time.time() * 1000)
    with broker_at(release, tmp_path, NEVER) as broker:
        with broker.connect() as client:
            fill(client, now)
        broker.stop()
        broker.close(keep=True)
    data, properties = tmp_path / "data", {"log.retention.ms": str(130 * HOUR_MS)}
    found = {each.directory: each for each in fates([data], DIALECTS[release], lambda: now + 60_000, properties)}
    assert {path.name.rpartition("-")[0] for path in found} == set(TOPICS)
    before = {path: bases(path) for path in found}
    kept = {path: {fate.base_offset for fate in each.segments if not fate.deleted_by} for path, each in found.items()}
    assert sum(map(len, before.values())) > 100
    assert all(before[path] == {fate.base_offset for fate in each.segments} for path, each in found.items())
    assert {path.name for path in found if kept[path] != before[path]} == {
        f"{name}-0" for name in ("time", "size", "both", "of-both-policies", "held-up", "all-old", "of-the-broker")
    }
    with broker_at(release, tmp_path, SOON) as broker, broker.connect() as client:
        for topic in TOPICS:
            client.await_leader(topic, 0)
        deadline = time.monotonic() + 60
        while any(bases(path) & before[path] != kept[path] for path in found) and time.monotonic() < deadline:
            time.sleep(0.2)
        time.sleep(4)
        assert {path.name: bases(path) & before[path] for path in found} == {
            path.name: each for path, each in kept.items()
        }
