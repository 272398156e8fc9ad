"""Directories of a broker, to be corrupted: one after a clean stop and one after ``kill -9``, the same for every case.

All partitions have the same batches: four segments before the clean stop, and three after it. The broker writes no
recovery point between the clean stop and the kill, so that the last three segments count as not flushed.
"""

from __future__ import annotations

import shutil
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, Literal

from conformance.kafka.broker import BrokerError, LocalBroker
from conformance.kafka.broker.workload import EPOCH_MS
from kidx.records import build_batch

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from conformance.kafka.client import Client

Shutdown = Literal["clean", "killed"]

TOPIC: Final = "damaged"
NEIGHBOUR: Final = "neighbour"
"""Name of another topic, which has larger records."""
NEIGHBOURS: Final = 12
"""Number of partitions of the other topic."""
SEGMENTS: Final = {"clean": 4, "killed": 3}
"""Number of segments of a partition that are written before the clean stop, and between it and the kill."""
BATCHES: Final = 6
"""Number of batches in a segment; each has two records."""
SEGMENT_OFFSETS: Final = 2 * BATCHES
END: Final[Mapping[Shutdown, int]] = {"clean": 4 * SEGMENT_OFFSETS, "killed": 7 * SEGMENT_OFFSETS}
"""Log end offset of every intact partition."""
HOUR_MS: Final = 3_600_000
LAST_MS: Final[Mapping[Shutdown, int]] = {
    shutdown: EPOCH_MS + (end // SEGMENT_OFFSETS - 1) * 2 * HOUR_MS for shutdown, end in END.items()
}
"""First timestamp of the active segment of every intact partition."""
LOG_DIRS: Final = ("data", "other")
"""Log directories of the broker; the first also contains KRaft's own log."""

_SETTINGS: Final = {
    "segment.index.bytes": "1200",
    "index.interval.bytes": "200",
    "segment.ms": str(HOUR_MS),
    "retention.ms": str(20 * 365 * 24 * HOUR_MS),  # older than all records, but a timestamp of 0 is still older
    "message.timestamp.type": "CreateTime",
}


def broker_at(
    release: str, directory: Path, kind: type[LocalBroker] = LocalBroker, *, is_prepared: bool = False
) -> LocalBroker:
    """Return a broker with two log directories below ``directory``; the broker is not started.

    Args:
        release: The release of the broker.
        directory: The broker's directory.
        kind: The class of the broker.
        is_prepared: True if the directories will be corrupted; then the broker writes no recovery point on a schedule.
    """
    first, *_ = dirs = [directory / name for name in LOG_DIRS]
    config: dict[str, Any] = {
        "log.dirs": ",".join(map(str, dirs)),
        "metadata.log.dir": first,
        "log.flush.offset.checkpoint.interval.ms": HOUR_MS,
        "log.flush.start.offset.checkpoint.interval.ms": HOUR_MS,
        # Of the first checkpoints and the first check of retention.
        "log.initial.task.delay.ms": HOUR_MS if is_prepared else 1000,
        "log.retention.check.interval.ms": 1000,
        "metadata.log.max.record.bytes.between.snapshots": 1024,
        "log.cleaner.backoff.ms": 1000,
        # With a new directory.id, partitions may have no leader before this check, which runs every 300 s by default.
        "leader.imbalance.check.interval.seconds": 5,
    }
    return kind(release, directory, config)


@dataclass(slots=True)
class Prepared:
    """Directories of one release.

    Attributes:
        release: The release of the broker.
        directories: The broker's directories after each kind of stop.
    """

    release: str
    directories: dict[Shutdown, Path] = field(default_factory=dict)


def prepare(release: str, base: Path, partitions: int) -> Prepared:
    """Run one broker and return its directories.

    Args:
        release: The release of the broker.
        base: The parent of the directories.
        partitions: The number of partitions.

    Raises:
        BrokerError: The broker rejects a request.
    """
    result = Prepared(release)
    source = base / "source"
    broker = broker_at(release, source, is_prepared=True)
    with broker:
        with broker.connect() as client:
            client.create_topic(TOPIC, _SETTINGS, partitions=partitions)
            client.create_topic(NEIGHBOUR, _SETTINGS, partitions=NEIGHBOURS)
            _fill(client, broker, partitions, 0, SEGMENTS["clean"])
        broker.stop()
        result.directories["clean"] = _copied(source, base / "clean")
        broker.start()
        with broker.connect() as client:
            _fill(client, broker, partitions, SEGMENTS["clean"], SEGMENTS["killed"])
        broker.kill()
        broker.close(keep=True)  # also stops ZooKeeper
        result.directories["killed"] = _copied(source, base / "killed")
    shutil.rmtree(source)
    return result


def _copied(source: Path, target: Path) -> Path:
    shutil.copytree(source, target)
    return target


def _fill(client: Client, broker: LocalBroker, partitions: int, first: int, segments: int) -> None:
    """Append to each partition of both topics as a separate idempotent producer."""
    places = [(TOPIC, partition, 20) for partition in range(partitions)]
    for topic, partition, repeat in [*places, *((NEIGHBOUR, partition, 23) for partition in range(NEIGHBOURS))]:
        client.await_leader(topic, partition)
        for number in range(first * BATCHES, (first + segments) * BATCHES):
            segment, batch = divmod(number, BATCHES)
            stamp = EPOCH_MS + segment * 2 * HOUR_MS + 25 * batch
            value = f"{number:04d}".encode() * repeat
            data = build_batch(
                [(stamp, None, value), (stamp + 10, None, value)],
                producer_id=1000 + partition,
                producer_epoch=0,
                base_sequence=2 * number,
            )
            appended = client.append(topic, data, partition=partition)
            if appended.error is not None or appended.offset != 2 * number:
                reason = appended.error or f"the first offset is {appended.offset}, not {2 * number}"
                raise BrokerError(f"cannot append to {topic}-{partition}: {reason}", broker.log)
