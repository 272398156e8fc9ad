"""Observation of a broker that starts with a corrupt directory: its responses, its log and its files.

Two directories are corrupted, the same for every case: one after a clean stop and one after ``kill -9``. All partitions
have the same batches: four segments before the clean stop, and three after it. The broker writes no recovery point
between the clean stop and the kill, so that the last three segments count as not flushed.
"""

from __future__ import annotations

import re
import shutil
import time
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final, Literal

from conformance.kafka.broker import BrokerError, LocalBroker
from conformance.kafka.broker.workload import EPOCH_MS
from conformance.kafka.client import PartitionQuery
from kidx.dialect import version_of
from kidx.discovery import DELETE, STRAY, parse_partition
from kidx.records import build_batch

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from conformance.kafka.broker.config import Node
    from conformance.kafka.client import Client
    from conformance.kafka.polling import Deadline

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


def topic_properties() -> str:
    """Return the settings of the topics as lines of a file for ``kidx verify --config``."""
    return "".join(
        f"topic.{topic}.{name}={value}\n" for topic in (TOPIC, NEIGHBOUR) for name, value in _SETTINGS.items()
    )


def broker_at(
    release: str, directory: Path, kind: type[LocalBroker] = LocalBroker, *, is_prepared: bool = False
) -> LocalBroker:
    """Return a broker with two log directories below ``directory``; the broker is not started.

    Args:
        directory: The broker's directory.
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
        directories: The broker's directories after each kind of stop.
    """

    release: str
    directories: dict[Shutdown, Path] = field(default_factory=dict)


def prepare(release: str, base: Path, partitions: int) -> Prepared:
    """Run one broker and return its directories.

    Args:
        base: The parent of the directories.

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


_LATEST, _EARLIEST = -1, -2
_OFFLINE: Final = re.compile(r"Stopping serving logs in dir (\S+)|Failed to create or validate data directory (\S+)")
_LOG_FILE: Final = re.compile(r"\d{20}\.log", re.ASCII)
_EQUAL_ROUNDS: Final = 3
"""Number of rounds of queries with the same responses after which the state is final."""
_EQUAL_WITH_ERRORS: Final = 20
"""Number of such rounds if some partitions are not served: the controller checks the leaders every five seconds."""
_PAUSE: Final = 0.5
_MAX_ROUNDS: Final = 40
"""Maximum number of rounds of queries."""


_FIRST_WITH_DELAY: Final = version_of("3.8.0")
"""First release with the setting ``log.initial.task.delay.ms``."""
_FIRST_RETENTION: Final = 32.0
"""Seconds after which an earlier release has checked retention: it begins to after 30 s."""
_MAX_READ: Final = 2000
"""Offset at which reading all records ends."""
_NEW_BATCHES: Final = 3
"""Number of batches that are appended after the start; the second and the third add index entries."""


_Answer = tuple[int | None, int | None, str]
"""Earliest and latest offset of a partition, and the error; an offset that the broker does not return is None."""


@dataclass(frozen=True, slots=True)
class Partition:
    """State of a partition after the start.

    Attributes:
        start: The earliest offset, or None if the broker does not return it.
        end: The latest offset, or None if the broker does not return it.
        error: The error if an offset is missing.
        segments: The size of each ``.log`` in bytes by base offset, by log directory.
        strays: The log directories in which the partition has a ``-stray`` directory.
        deleted: The log directories in which it has a ``-delete`` directory.
        unread: The reason why a consumer does not get the records that a producer appends after the start; empty if it
            gets them all.
        readable: The number of older records that a consumer gets; 0 if they were not read.
    """

    start: int | None = None
    end: int | None = None
    error: str = ""
    segments: Mapping[str, Mapping[int, int]] = field(default_factory=dict)
    strays: tuple[str, ...] = ()
    deleted: tuple[str, ...] = ()
    unread: str = ""
    readable: int = 0


@dataclass(frozen=True, slots=True)
class Observed:
    """Result of a start.

    Attributes:
        started: True if the broker served requests, and kept running; None if it neither did nor ended in time.
        offline: The names of the offline log directories.
        partitions: The partitions by number.
        said: The line of the broker's log that explains why it did not start.
    """

    started: bool | None
    offline: tuple[str, ...] = ()
    partitions: Mapping[int, Partition] = field(default_factory=dict)
    said: str = ""


class _UnchangedBroker(LocalBroker):
    """Broker whose directories are used unchanged: nothing is formatted, even if something is missing."""

    def _format(self, node: Node, properties: Path) -> None:
        pass

    def await_ready(self, node: Node, deadline: Deadline) -> None:
        """Wait until the broker responds."""
        self._node = self._node or node
        while True:
            assert self._process is not None
            if not self._process.running:
                raise self._error(f"did not start but ended with status {self._process.exit_status}")
            try:
                with self.connect() as client:
                    metadata = client.metadata([TOPIC])
                    if metadata.brokers and TOPIC in metadata.topics:
                        return
            except BrokerError:
                pass
            if not deadline.pause():
                raise self._error(f"was not ready within {deadline.limit:g} s")


def observe(
    release: str,
    root: Path,
    numbers: Sequence[int],
    timestamp: int,
    *,
    with_retention: bool = True,
    reads_all: bool = False,
) -> Observed:
    """Start a broker with a directory, observe it, and kill it.

    Args:
        root: The broker's directory.
        numbers: The numbers of the partitions to observe.
        timestamp: The timestamp of the records that are appended.
        with_retention: False to save the wait for retention with a release in which it begins late.
        reads_all: True to count the older records that a consumer gets.
    """
    broker = broker_at(release, root, _UnchangedBroker)
    answers: dict[int, _Answer] = {}
    partitions: dict[int, Partition] = {}
    unread: dict[int, str] = {}
    started: bool | None = False
    try:
        try:
            broker.start()
            if with_retention and version_of(release) < _FIRST_WITH_DELAY:
                time.sleep(_FIRST_RETENTION)
            answers = _answers(broker, numbers)
            partitions = _partitions(root, numbers, answers)  # their sizes before the appends
            served = [number for number, (_, _, error) in answers.items() if not error]
            if reads_all:
                partitions = _read_all(broker, partitions)
            unread = _append_and_read(broker, served, timestamp)
            started = broker.running
        except BrokerError as error:
            started = None if "was not ready" in str(error) else False
        output = broker.output
    finally:
        broker.close(keep=True)
    offline = {"".join(paths).rsplit("/", 1)[-1] for paths in _OFFLINE.findall(output)}
    return Observed(
        started,
        tuple(name for name in LOG_DIRS if name in offline),
        {
            number: replace(partition, unread=unread.get(number, ""))
            for number, partition in (partitions or _partitions(root, numbers, answers)).items()
        },
        "" if started else _reason(output),
    )


def _partitions(root: Path, numbers: Sequence[int], answers: Mapping[int, _Answer]) -> dict[int, Partition]:
    return {number: _partition(root, number, *answers.get(number, (None, None, ""))) for number in numbers}


def _answers(broker: LocalBroker, numbers: Sequence[int]) -> dict[int, _Answer]:
    last: dict[int, _Answer] = {}
    same = 0
    for _ in range(_MAX_ROUNDS):
        if not broker.running:
            return last
        try:
            with broker.connect() as client:
                found = _query(client, numbers)
        except BrokerError:
            time.sleep(_PAUSE)
            continue
        # A broker that returns an error for every partition is often about to exit.
        same = same + 1 if found == last and not all(error for _, _, error in found.values()) else 0
        last = found
        if same >= (_EQUAL_WITH_ERRORS if any(error for _, _, error in found.values()) else _EQUAL_ROUNDS):
            break
        time.sleep(_PAUSE)
    return last


def _query(client: Client, numbers: Sequence[int]) -> dict[int, _Answer]:
    starts, ends = (
        {each.partition: each.to_result(target) for each in client.request_offsets(_queries(numbers, target))}
        for target in (_EARLIEST, _LATEST)
    )
    return {
        number: (starts[number].offset, ends[number].offset, starts[number].error or ends[number].error or "")
        for number in numbers
    }


def _read_all(broker: LocalBroker, partitions: Mapping[int, Partition]) -> dict[int, Partition]:
    """Count the records that a consumer gets, of which each offset of a partition has one."""
    counted = dict(partitions)
    with broker.connect() as client:
        for number, each in partitions.items():
            if not each.error and each.end is not None:
                offsets = range(each.start or 0, min(each.end, _MAX_READ))
                found = client.fetch_each(TOPIC, offsets, number)
                readable = sum(one.offset == offset for one, offset in zip(found, offsets, strict=True))
                counted[number] = replace(each, readable=readable)
    return counted


def _append_and_read(broker: LocalBroker, numbers: Sequence[int], timestamp: int) -> dict[int, str]:
    """Append batches to partitions, and read each; return the reason by partition where that fails."""
    failed: dict[int, str] = {}
    if not broker.running:
        return failed
    data = build_batch([(timestamp, b"key", b"new" * 100)])
    with broker.connect() as client:
        for number in numbers:
            offsets: list[int] = []
            for _ in range(_NEW_BATCHES):
                appended = client.append(TOPIC, data, partition=number)
                if appended.error is not None:
                    failed[number] = appended.error
                    break
                offsets.append(appended.offset)
            for offset, found in zip(offsets, client.fetch_each(TOPIC, offsets, number), strict=True):
                if found.offset != offset:
                    failed.setdefault(number, found.error or f"{found.offset} instead of {offset}")
    return failed


def _queries(numbers: Sequence[int], target: int) -> list[PartitionQuery]:
    return [PartitionQuery(TOPIC, target, number) for number in numbers]


def _partition(root: Path, number: int, start: int | None, end: int | None, error: str) -> Partition:
    segments: dict[str, dict[int, int]] = {}
    marked: dict[str, list[str]] = {STRAY: [], DELETE: []}
    for name in LOG_DIRS:
        for path in sorted((root / name).iterdir()):
            parsed = parse_partition(path.name)
            if parsed is None or parsed[:2] != (TOPIC, number) or not path.is_dir():
                continue
            if parsed[2] in marked:
                marked[parsed[2]].append(name)
            elif not parsed[2]:
                logs = (
                    log for log in path.iterdir() if log.suffix == ".log" and log.is_file() and log.stem.isdecimal()
                )
                segments[name] = {int(log.stem): log.stat().st_size for log in logs}
    return Partition(start, end, error, segments, tuple(marked[STRAY]), tuple(marked[DELETE]))


def _reason(output: str) -> str:
    """Return the first line that reports a fatal error or an exception."""
    lines = output.splitlines()
    fatal = [line for line in lines if re.search(r"FATAL|Exiting Kafka|ERROR|Exception", line)]
    return fatal[0][:400] if fatal else ""
