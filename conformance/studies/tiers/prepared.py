"""Directory of a broker that every case begins with, and its corruptions.

Older segments of its topics are only in the remote tier. A case corrupts the cache of remote index files, or the remote
files themselves. The remote tier is a directory: Kafka's ``LocalTieredStorage``, from the test jar that Kafka
publishes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from conformance.kafka.broker import BrokerError, LocalBroker
from conformance.kafka.client import PartitionQuery
from conformance.kafka.jar_fetch import moved_classes, storage_jar
from conformance.kafka.polling import Deadline
from kidx.records import build_batch
from kidx.remote import DIRECTORY

if TYPE_CHECKING:
    from collections.abc import Mapping

    from conformance.kafka.client import Client

_INTERVAL_MS: Final = 500
_STORAGE: Final = "org.apache.kafka.server.log.remote.storage.LocalTieredStorage"


def tiered_broker(release: str, directory: Path, config: Mapping[str, object] | None = None) -> LocalBroker:
    """Return a broker with a remote tier in ``directory/remote``, not started.

    Args:
        release: One of :attr:`conformance.studies.tiers.study.Tiers.releases`.
        directory: The directory of the broker and of both tiers.
        config: More properties of the broker.

    Raises:
        FetchError: The test jar cannot be fetched.
    """
    tiers: Mapping[str, object] = {
        "remote.log.storage.system.enable": "true",
        "remote.log.storage.manager.class.name": _STORAGE,
        "remote.log.storage.manager.class.path": storage_jar(release),
        "remote.log.storage.manager.impl.prefix": "rsm.config.",
        "rsm.config.dir": directory / "remote",
        "remote.log.metadata.manager.listener.name": "PLAINTEXT",
        "remote.log.metadata.manager.impl.prefix": "rlmm.config.",
        "rlmm.config.remote.log.metadata.topic.num.partitions": 1,
        "rlmm.config.remote.log.metadata.topic.replication.factor": 1,
        "remote.log.manager.task.interval.ms": _INTERVAL_MS,
        "log.retention.check.interval.ms": _INTERVAL_MS,
        "log.initial.task.delay.ms": 100,
    }
    return LocalBroker(release, directory, {**tiers, **(config or {})}, more_jars=moved_classes(release))


def cache_of(directory: Path) -> Path:
    """Return the directory of the cache of remote index files."""
    return directory / "data" / DIRECTORY


def remote_files(directory: Path, suffix: str) -> list[Path]:
    """Return the files of the remote tier with a suffix, in the order of their names."""
    return sorted(directory.glob(f"remote/*/*/*{suffix}"))


PLAIN, SKIPPED = "plain", "skipped"
"""Topic with ascending timestamps; and topic with its largest timestamps in the first remote segment, but below the log
start, so that a lookup by time must not stop at this segment."""

FIRST: Final = 4_000_000_000_000
"""Timestamp of the first record, in milliseconds. It is in the future, after the timestamps of transaction markers."""
_STEP: Final = 1000
"""Milliseconds between two batches."""
_SEGMENT: Final = 1 << 20
"""Smallest ``segment.bytes`` that Kafka 4 accepts."""
_BATCHES: Final = 30
_VALUE: Final = bytes(100_000)
_IN_SEGMENT: Final = 5
"""Number of batches of two records in a segment, without the batches of a transaction."""

_SETTINGS: Final = {
    "remote.storage.enable": "true",
    "segment.bytes": str(_SEGMENT),
    "index.interval.bytes": "100",
    "retention.ms": "-1",
    "retention.bytes": "-1",
    "local.retention.bytes": "1",
    "message.timestamp.type": "CreateTime",
    "message.timestamp.after.max.ms": str((1 << 63) - 1),
}
_STEADY: Final = 60
"""Number of successive equal responses, 50 ms apart, after which the local log start no longer moves."""

LOCAL_START, LOCAL_VERSION = -4, 8
"""Target of the local log start, and the first version of the request that supports it."""


class Record(NamedTuple):
    """Record of the broker, as a lookup by time returns it."""

    timestamp: int
    offset: int


class Prepared(NamedTuple):
    """Contents of the topics.

    Attributes:
        directory: The directory of the stopped broker.
        records: The records by topic, in the order of their offsets.
        starts: The log start of each topic.
    """

    directory: Path
    records: dict[str, list[Record]]
    starts: dict[str, int]

    def expected(self, topic: str, timestamp: int) -> Record | None:
        """Return the earliest record at or above the log start and at or after the timestamp, or None."""
        return next(
            (r for r in self.records[topic] if r.offset >= self.starts[topic] and r.timestamp >= timestamp), None
        )

    @property
    def targets(self) -> list[int]:
        """Timestamps around every second record of the plain topic."""
        return [record.timestamp + 1 for record in self.records[PLAIN][::2]]


def prepare(release: str, directory: Path) -> Prepared:
    """Run a broker until old segments are in the remote tier and the cache has some of them, and stop it.

    Raises:
        BrokerError: The broker rejects a request, or exceeds the time limit.
    """
    broker = tiered_broker(release, directory)
    with broker:
        with broker.connect() as client:
            records = {
                topic: _produce(client, topic, broker.log, ascending=topic == PLAIN) for topic in (PLAIN, SKIPPED)
            }
            for topic in records:
                _await_remote(client, broker, topic)
            # Now the only records of the first segment with late timestamps are before the log start.
            refused = client.delete_records(SKIPPED, 2)
            if refused is not None:
                raise BrokerError(f"cannot delete records of {SKIPPED}: {refused}", broker.log)
            prepared = Prepared(directory, records, {PLAIN: 0, SKIPPED: 2})
            # One segment is not in the cache: a case fetches it.
            for target in prepared.targets[: -_IN_SEGMENT * 3]:
                client.request_offsets([PartitionQuery(PLAIN, target)])
        broker.stop()
        broker.close(keep=True)
    if not any(cache_of(directory).iterdir()):
        raise BrokerError("the broker has not cached any remote index", broker.log)
    return prepared


def _produce(client: Client, topic: str, log: Path, *, ascending: bool) -> list[Record]:
    """Produce the records of a topic, with an aborted transaction in each segment, and return them."""
    client.create_topic(topic, _SETTINGS)
    client.await_leader(topic)
    records: list[Record] = []
    name = f"{topic}-aborts"
    producer = client.init_producer(name)
    for number in range(_BATCHES):
        first = FIRST + number * _STEP if ascending or number else FIRST + 2 * _BATCHES * _STEP
        stamps = [first, first + 10]
        appended = client.append(topic, build_batch([(stamp, None, _VALUE) for stamp in stamps]))
        if appended.error is not None or appended.offset is None:
            raise BrokerError(f"cannot append to {topic}: {appended.error}", log)
        records += [Record(stamp, appended.offset + delta) for delta, stamp in enumerate(stamps)]
        if number % _IN_SEGMENT == 1:
            client.join_transaction(topic, name, producer)
            batch = build_batch(
                [(first + 20, None, b"aborted")],
                producer_id=producer.producer_id,
                producer_epoch=producer.producer_epoch,
                base_sequence=number // _IN_SEGMENT,
                is_transactional=True,
            )
            appended = client.append(topic, batch, transactional_id=name)
            if appended.error is not None or appended.offset is None:
                raise BrokerError(f"cannot append to {topic}: {appended.error}", log)
            records.append(Record(first + 20, appended.offset))
            client.end_and_await_marker(topic, name, producer, commit=False)
    return records


def _await_remote(client: Client, broker: LocalBroker, topic: str) -> None:
    """Wait until no more segments are deleted locally."""
    deadline = Deadline(60)
    start, same = 0, 0
    while same < _STEADY:
        if not deadline.pause():
            raise BrokerError(f"{topic}: its segments are not in the remote tier", broker.log)
        (answer,) = client.request_offsets([PartitionQuery(topic, LOCAL_START)], version=LOCAL_VERSION)
        same = same + 1 if answer.offset == start > 0 else 0
        start = answer.offset if answer.offset is not None else 0


Damage = Callable[[Path], object]
"""Function that corrupts the directory of a stopped broker."""


@dataclass(frozen=True, slots=True)
class Case:
    """One corruption.

    Attributes:
        name: A description of the corruption.
        corrupt: The function that corrupts the directory of the stopped broker.
        fetched_once: The suffix of a remote file. Remote storage returns that file corrupt once, to the running broker,
            and works again before the broker is stopped.
    """

    name: str
    corrupt: Damage | None = None
    fetched_once: str = ""


def _file(name: str) -> Damage:
    return lambda directory: (cache_of(directory) / name).write_bytes(b"hello\n")


def _directory(name: str) -> Damage:
    return lambda directory: (cache_of(directory) / name).mkdir()


def _change(suffix: str, change: Callable[[bytes], bytes]) -> Damage:
    """Change the cached file of the last segment; its base offset is not 0."""

    def damage(directory: Path) -> None:
        file = max(cache_of(directory).glob(f"*{suffix}"), key=lambda path: int(path.name.partition("_")[0]))
        file.write_bytes(change(file.read_bytes()))

    return damage


def _delete(suffix: str) -> Damage:
    def damage(directory: Path) -> None:
        for file in cache_of(directory).glob(f"*{suffix}"):
            file.unlink()

    return damage


def _cut(size: int) -> Callable[[bytes], bytes]:
    return lambda data: data[:-size]


def _append(data: bytes) -> Callable[[bytes], bytes]:
    return lambda content: content + data


def zeroed(data: bytes) -> bytes:
    """Return as many zeros."""
    return bytes(len(data))


def corrupt_remotely(directory: Path, suffix: str) -> Callable[[], object]:
    """Overwrite the newest remote file of the first topic with zeros, and return a function that restores it."""
    partition = remote_files(directory, suffix)[0].parent
    path = max(partition.glob(f"*{suffix}"))
    content = path.read_bytes()
    path.write_bytes(zeroed(content))
    return lambda: path.write_bytes(content)


CASES: Final = (
    Case("nothing"),
    Case("a file README", _file("README")),
    Case("a file .nfs0001", _file(".nfs0001")),
    Case("a file .DS_Store", _file(".DS_Store")),
    Case("a directory lost+found", _directory("lost+found")),
    Case("a file 0_notauuid.index", _file("0_notauuid.index")),
    Case("a file ending in .tmp", _file("0_AAAAAAAAAAAAAAAAAAAAAA.index.tmp")),
    Case("a file ending in .deleted", _file("0_AAAAAAAAAAAAAAAAAAAAAA.index.deleted")),
    *(
        Case(f"a cached {suffix}: {what}", _change(suffix, change))
        for suffix in (".index", ".timeindex", ".txnindex")
        for what, change in (
            ("one byte more", _append(b"x")),
            ("a byte less", _cut(1)),
            ("a tail of zeros", _append(bytes(816))),
            ("zeroed", zeroed),
            ("empty", lambda _: b""),
        )
    ),
    *(Case(f"all cached {suffix} deleted", _delete(suffix)) for suffix in (".index", ".timeindex", ".txnindex")),
    *(
        Case(f"remote storage returns one {suffix} of zeros", fetched_once=suffix)
        for suffix in (".index", ".timeindex", ".txnindex")
    ),
)
