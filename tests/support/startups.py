"""Log directories of a KRaft broker, and predictions of its start."""

from __future__ import annotations

import base64
import json
import shutil
import struct

import pytest

from kidx.log import LogConfig, UnifiedLog
from kidx.records import build_batch
from kidx.startup import predict
from kidx.verify import verify_paths

RELEASE = "3.9.2"
EPOCH_MS = 1_700_000_000_000
HOUR_MS = 3_600_000
ID = "UAlnBWn7S5uwafXHT96cYw"
PROPERTIES = "version=1\ncluster.id=c1\nnode.id=1\n"
ELSEWHERE = ", if KRaft's own log is elsewhere"
"""End of the answer for log directories that do not include KRaft's own log."""
CONFIG = LogConfig(segment_ms=HOUR_MS, index_interval_bytes=200, segment_index_bytes=1200)


def fill(directory, segments=4, batches=6, repeat=20, begin=EPOCH_MS):
    """Write a log as a broker does, with a segment per hour and 12 offsets per segment; values repeat a number."""
    with UnifiedLog(directory, CONFIG, dialect=RELEASE, clock=lambda: EPOCH_MS) as log:
        for number in range(segments * batches):
            segment, batch = divmod(number, batches)
            stamp = begin + segment * 2 * HOUR_MS + 25 * batch
            value = b"%04d" % number * repeat
            data = build_batch([(stamp, None, value), (stamp + 10, None, value)])
            log.append_as_leader(data, 0)
    (directory / "partition.metadata").write_text(f"version: 0\ntopic_id: {ID}")


def write_offsets(path, offsets):
    lines = ["0", str(len(offsets)), *(f"orders {number} {offset}" for number, offset in offsets.items())]
    path.write_text("".join(f"{line}\n" for line in lines))


def flip(path, at):
    content = bytearray(path.read_bytes())
    content[at] ^= 1
    path.write_bytes(content)


def start(*paths, release=RELEASE, **options):
    found = predict(paths, verify_paths(paths, release=release, processes=1), release, **options)
    assert json.dumps(found.to_json())
    assert found.lines()[-1] == found.line
    return found


def log(base):
    return f"{base:020d}.log"


def fill_partitions(directory, count):
    """Write the partitions of a topic, and return their directory."""
    for number in range(count):
        fill(directory / f"orders-{number}")
    return directory


def stop_cleanly(filled, target, ends):
    """Make a log directory of a KRaft broker from some partitions, after a clean stop with these end offsets."""
    shutil.copytree(filled, target)
    (target / "meta.properties").write_text(PROPERTIES)
    (target / ".kafka_cleanshutdown").write_text('{"version":0,"brokerEpoch":9}')
    write_offsets(target / "recovery-point-offset-checkpoint", ends)
    return target


def partitions(count):
    """Return a fixture with the directory of some partitions, which no test changes."""

    @pytest.fixture(scope="module")
    def filled(tmp_path_factory):
        return fill_partitions(tmp_path_factory.mktemp("filled"), count)

    return filled


def stopped_broker(count):
    """Return the fixtures ``filled`` and ``data``, a log directory of a KRaft broker after a clean stop."""

    @pytest.fixture
    def data(filled, tmp_path):
        return stop_cleanly(filled, tmp_path / "data", dict.fromkeys(range(count), 48))

    return partitions(count), data


def partition_record(number, replicas, directory_ids=()):
    """Return a PartitionRecord of the topic, all replicas in sync: of version 0, or 1 with ids of log directories."""
    brokers = bytes([len(replicas) + 1]) + b"".join(struct.pack(">i", broker) for broker in replicas)
    topic_id = base64.urlsafe_b64decode(ID + "==")
    ids = bytes([len(directory_ids) + 1]) + b"".join(directory_ids) if directory_ids else b""
    return (
        (b"\1\3\1" if directory_ids else b"\1\3\0")
        + struct.pack(">i", number)
        + topic_id
        + brokers * 2
        + b"\1\1"
        + struct.pack(">iii", replicas[0], 0, 0)
        + ids
        + b"\0"
    )


def change_record(number, replicas):
    """Return a PartitionChangeRecord of version 0 with other replicas, which is tag 2."""
    brokers = bytes([len(replicas) + 1]) + b"".join(struct.pack(">i", broker) for broker in replicas)
    topic_id = base64.urlsafe_b64decode(ID + "==")
    return b"\1\5\0" + struct.pack(">i", number) + topic_id + b"\1\2" + bytes([len(brokers)]) + brokers


def leader_record(number, leader):
    """Return a PartitionChangeRecord of version 0 with another leader, which is tag 1."""
    topic_id = base64.urlsafe_b64decode(ID + "==")
    return b"\1\5\0" + struct.pack(">i", number) + topic_id + b"\1\1\4" + struct.pack(">i", leader)


DISKS = bytes(range(16)), bytes(range(16, 32))
TOPIC_RECORD = b"\1\2\0" + b"\7orders" + base64.urlsafe_b64decode(ID + "==") + b"\0"
REMOVE_TOPIC_RECORD = b"\1\x09\0" + base64.urlsafe_b64decode(ID + "==") + b"\0"


def write_metadata(data, *records):
    metadata = data / "__cluster_metadata-0"
    metadata.mkdir(exist_ok=True)
    content = build_batch([(EPOCH_MS, None, value) for value in (TOPIC_RECORD, *records)])
    (metadata / log(0)).write_bytes(content)
