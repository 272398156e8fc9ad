"""Directory of a broker that every case begins with: topics whose older segments are only in the remote tier."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from conformance.experiments.tiers.tiered_broker import cache_of, tiered_broker
from conformance.kafka.broker import BrokerError
from conformance.kafka.client import PartitionQuery
from conformance.kafka.polling import Deadline
from kidx.records import build_batch

if TYPE_CHECKING:
    from pathlib import Path

    from conformance.kafka.broker import LocalBroker
    from conformance.kafka.client import Client

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
