"""The log directories that are damaged: one after a clean stop, one after ``kill -9``, the same for every case.

A partition has the same batches as every other: four segments before the clean stop, three after it. The broker writes
no recovery point between the clean stop and the kill, so that the three count as not flushed.
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
SEGMENTS: Final = {"clean": 4, "killed": 3}
"""Segments of a partition before the clean stop, and after it."""
BATCHES: Final = 6
"""In a segment, of two records each."""
SEGMENT_OFFSETS: Final = 2 * BATCHES
END: Final[Mapping[Shutdown, int]] = {"clean": 4 * SEGMENT_OFFSETS, "killed": 7 * SEGMENT_OFFSETS}
"""Where every undamaged partition ends."""
RECOVERY_POINT: Final = END["clean"]
HOUR_MS: Final = 3_600_000
LOG_DIRS: Final = ("data", "other")
"""Of the broker; the first also holds KRaft's own log."""

_SETTINGS: Final = {
    "segment.index.bytes": "1200",
    "index.interval.bytes": "200",
    "segment.ms": str(HOUR_MS),
    "retention.ms": "-1",
    "message.timestamp.type": "CreateTime",
}


def broker_at(
    release: str, directory: Path, kind: type[LocalBroker] = LocalBroker, *, is_prepared: bool = False
) -> LocalBroker:
    """Return a broker with two log directories below ``directory``, not started.

    Args:
        release: of the broker.
        directory: of it.
        kind: class of the broker.
        is_prepared: its directories are to be damaged; it notes no recovery point by itself.
    """
    first, *_ = dirs = [directory / name for name in LOG_DIRS]
    config: dict[str, Any] = {
        "log.dirs": ",".join(map(str, dirs)),
        "metadata.log.dir": first,
        "log.flush.offset.checkpoint.interval.ms": HOUR_MS,
        "log.flush.start.offset.checkpoint.interval.ms": HOUR_MS,
        "log.initial.task.delay.ms": HOUR_MS if is_prepared else 30_000,  # before the first checkpoints, too
        "metadata.log.max.record.bytes.between.snapshots": 1024,
        "log.cleaner.backoff.ms": 1000,
    }
    return kind(release, directory, config)


@dataclass(slots=True)
class Prepared:
    """The two directories of one release.

    Attributes:
        release: of the broker.
        directories: of a broker, by how it was stopped.
    """

    release: str
    directories: dict[Shutdown, Path] = field(default_factory=dict)


def prepare(release: str, base: Path, partitions: int) -> Prepared:
    """Run one broker and return what it leaves.

    Args:
        release: of the broker.
        base: where to put the directories.
        partitions: how many partitions there are.

    Raises:
        BrokerError: the broker does not do what it is asked.
    """
    result = Prepared(release)
    living = base / "living"
    broker = broker_at(release, living, is_prepared=True)
    with broker:
        with broker.connect() as client:
            client.create_topic(TOPIC, _SETTINGS, partitions=partitions)
            _fill(client, broker, partitions, 0, SEGMENTS["clean"])
        broker.stop()
        result.directories["clean"] = _copied(living, base / "clean")
        broker.start()
        with broker.connect() as client:
            _fill(client, broker, partitions, SEGMENTS["clean"], SEGMENTS["killed"])
        broker.kill()
        broker.close(keep=True)  # ZooKeeper, too
        result.directories["killed"] = _copied(living, base / "killed")
    shutil.rmtree(living)
    return result


def _copied(source: Path, target: Path) -> Path:
    shutil.copytree(source, target)
    return target


def _fill(client: Client, broker: LocalBroker, partitions: int, first: int, segments: int) -> None:
    """Append to each partition as its own idempotent producer."""
    for partition in range(partitions):
        client.await_leader(TOPIC, partition)
        for number in range(first * BATCHES, (first + segments) * BATCHES):
            segment, batch = divmod(number, BATCHES)
            stamp = EPOCH_MS + segment * 2 * HOUR_MS + 25 * batch
            value = f"{number:04d}".encode() * 20
            data = build_batch(
                [(stamp, None, value), (stamp + 10, None, value)],
                producer_id=1000 + partition,
                producer_epoch=0,
                base_sequence=2 * number,
            )
            appended = client.append(TOPIC, data, partition=partition)
            if appended.error is not None or appended.offset != 2 * number:
                raise BrokerError(f"{TOPIC}-{partition}: {appended}", broker.log)
