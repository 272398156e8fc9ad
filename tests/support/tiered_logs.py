"""Recorder of a broker's tiers and their metadata, as an archive: ``python tiered_logs.py RELEASE DIRECTORY``.

``copying`` has a segment whose copy has begun, ``deleting`` one whose deletion has; both have copied and deleted ones.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from conformance.experiments.golden.corpus import pack
from conformance.kafka.polling import Deadline
from conformance.scratch import scratch_directory
from conformance.studies.tiers.prepared import tiered_broker
from kidx.records import build_batch
from kidx.remote.metadata import TOPIC as METADATA
from kidx.remote.metadata import SegmentState, read_metadata
from kidx.storage import Store

if TYPE_CHECKING:
    from conformance.kafka.broker import LocalBroker
    from conformance.kafka.client import Client

TOPIC = "tiered"
SETTINGS = {
    "remote.storage.enable": "true",
    "index.interval.bytes": "1",
    "segment.index.bytes": "48",  # a segment ends when its time index is full
    "retention.ms": "-1",
    "retention.bytes": "-1",
    "local.retention.bytes": "1",
    "message.timestamp.type": "CreateTime",
    "message.timestamp.after.max.ms": str((1 << 63) - 1),
}
FIRST = 4_000_000_000_000
LIMIT_S = 600
KEPT = re.compile(rf"remote/.*|data/{TOPIC}-0/.*|data/{METADATA}-0/.*\.log|data/[^/]*checkpoint|data/meta.properties")


def states(data: Path) -> list[SegmentState | None]:
    """Return the states of the topic's segments according to the metadata."""
    metadata = read_metadata([(Store(str(data)), str(data))])
    return [each.state for partition in metadata.partitions.values() for each in partition.segments.values()]


def catch(broker: LocalBroker, state: SegmentState, directory: Path, deadline: Deadline) -> None:
    """Save both tiers while a segment is in a short-lived state; the broker is paused in the meantime."""
    group = broker._process.pid  # type: ignore[union-attr]
    while True:
        if state in states(broker.log_dir):
            os.killpg(group, signal.SIGSTOP)
            try:
                if state in states(broker.log_dir):
                    save(broker.directory, directory)
                    return
            finally:
                os.killpg(group, signal.SIGCONT)
        if not deadline.left:
            raise AssertionError(f"no segment was seen in the state {state.name}")
        time.sleep(0.002)


def save(source: Path, directory: Path) -> None:
    """Copy the files of both tiers."""
    for path in sorted(source.rglob("*")):
        name = path.relative_to(source).as_posix()
        if path.is_file() and KEPT.fullmatch(name):
            target = directory / name
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, target)


def produce(client: Client, first: int, end: int) -> None:
    """Append batches of two records."""
    for number in range(first, end):
        stamp = FIRST + number * 100
        appended = client.append(TOPIC, build_batch([(stamp, b"k", b"%d" % number), (stamp + 50, None, b"")]))
        assert appended.error is None


def record(release: str, directory: Path) -> None:
    """Run a broker until each state has occurred, and save both tiers below ``directory``."""
    deadline = Deadline(LIMIT_S)

    def wait(condition: Callable[[], bool]) -> None:
        while not condition():
            assert deadline.pause(), "the broker neither copies nor deletes"

    shutil.rmtree(directory, ignore_errors=True)
    with scratch_directory() as scratch, tiered_broker(release, scratch / "broker") as broker:
        with broker.connect() as client:
            client.create_topic(TOPIC, SETTINGS)
            client.await_leader(TOPIC)
            produce(client, 0, 40)
            wait(lambda: states(broker.log_dir).count(SegmentState.COPY_SEGMENT_FINISHED) >= 5)
            wait(lambda: (client.list_offset(TOPIC, -4, version=8).offset or 0) > 24)
            assert client.delete_records(TOPIC, 20) is None
            wait(lambda: SegmentState.DELETE_SEGMENT_FINISHED in states(broker.log_dir))
            produce(client, 40, 100)
            catch(broker, SegmentState.COPY_SEGMENT_STARTED, directory / "copying", deadline)
            assert client.delete_records(TOPIC, 60) is None
            catch(broker, SegmentState.DELETE_SEGMENT_STARTED, directory / "deleting", deadline)
        broker.kill()
    pack(directory)


if __name__ == "__main__":
    record(sys.argv[1], Path(sys.argv[2]))
