"""Topic of a broker with tiered storage: many small segments, most of them only in remote storage."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, Final, NamedTuple

from aiokafka import AIOKafkaConsumer, TopicPartition

from conformance.studies.tiers.prepared import tiered_broker
from kidx.records import Codec, build_batch

if TYPE_CHECKING:
    from pathlib import Path

    from conformance.kafka.client import Client, OffsetResult

TOPIC: Final = "many"
FIRST: Final = 4_000_000_000_000
"""Timestamp of the first records in milliseconds, which is later than the timestamps of transaction markers."""
_SETTINGS: Final = {
    "remote.storage.enable": "true",
    "index.interval.bytes": "1",
    "segment.index.bytes": "48",  # a segment ends when its time index is full
    "retention.ms": "-1",
    "retention.bytes": "-1",
    "local.retention.bytes": "2000",
    "message.timestamp.type": "CreateTime",
    "message.timestamp.after.max.ms": str((1 << 63) - 1),
}
_VERSIONS: Final = {-1: 4, -2: 4, -3: 7, -4: 8, -5: 9, -6: 11}
_LIMIT_SECONDS: Final = 240
_STEADY_SECONDS: Final = 5
_CODECS: Final = (Codec.NONE, Codec.NONE, Codec.GZIP, Codec.ZSTD, Codec.LZ4)


class Answered(NamedTuple):
    """Results of a broker, and the records that its consumers read.

    Attributes:
        answers: results of ListOffsets, by target.
        read: records by isolation level: offset, timestamp, key and value.
    """

    answers: dict[int, OffsetResult]
    read: dict[str, list[tuple[int, int, bytes | None, bytes | None]]]


def run(release: str, directory: Path, *, segments: int) -> Answered:
    """Fill a topic, wait until its old segments are only in remote storage, query everything, and stop the broker."""
    with tiered_broker(release, directory) as broker:
        with broker.connect() as client:
            stamps = _produce(client, batches=5 * segments)
            _await_local_deletion(client, segments)
            refused = client.delete_records(TOPIC, 3)  # the log begins within a remote segment
            assert refused is None
            offered = client.versions("ListOffsets")
            answers = {
                target: client.list_offset(TOPIC, target, version=version)
                for target, version in _VERSIONS.items()
                if version in offered
            }
            targets = sorted({stamp + delta for stamp in stamps for delta in (-1, 0, 1)})
            answers |= {target: _patiently(client, target) for target in targets}
        read = {
            isolation: asyncio.run(_consume(broker.bootstrap, isolation))
            for isolation in ("read_uncommitted", "read_committed")
        }
        broker.stop()
        broker.close(keep=True)
    return Answered(answers, read)


def _produce(client: Client, batches: int) -> list[int]:
    """Append batches with mostly ascending timestamps, late records and aborted transactions; return the timestamps."""
    client.create_topic(TOPIC, _SETTINGS)
    client.await_leader(TOPIC)
    producer = client.init_producer("aborts")
    stamps = []
    sequence = 0
    for number in range(batches):
        first = FIRST + number * 100 - 350 * (number % 7 == 3)
        own = [first, first + 40, first + 10]
        stamps += own
        records = [(stamp, str(number).encode(), bytes([number % 251]) * (20 + number % 60)) for stamp in own]
        if number % 23 == 5:
            client.join_transaction(TOPIC, "aborts", producer)
            batch = build_batch(
                records,
                producer_id=producer.producer_id,
                producer_epoch=producer.producer_epoch,
                base_sequence=sequence,
                is_transactional=True,
            )
            sequence += len(records)
            appended = client.append(TOPIC, batch, transactional_id="aborts")
            assert appended.error is None, appended
            client.end_and_await_marker(TOPIC, "aborts", producer, commit=number % 2 == 0)
            continue
        appended = client.append(TOPIC, build_batch(records, codec=_CODECS[number % len(_CODECS)]))
        assert appended.error is None, appended
    return stamps


def _await_local_deletion(client: Client, segments: int) -> None:
    """Wait until the local log start offset no longer changes."""
    ends, since, start = time.monotonic() + _LIMIT_SECONDS, time.monotonic(), 0
    while time.monotonic() < since + _STEADY_SECONDS or start < segments:
        assert time.monotonic() < ends, f"the local log still begins at {start}"
        time.sleep(0.1)
        offset = client.list_offset(TOPIC, -4, version=8).offset
        if offset is not None and offset != start:
            start, since = offset, time.monotonic()


def _patiently(client: Client, target: int) -> OffsetResult:
    """Query a target, and repeat the query after a timeout, which a busy machine causes."""
    answer = client.list_offset(TOPIC, target)
    return client.list_offset(TOPIC, target) if answer.error == "REQUEST_TIMED_OUT" else answer


async def _consume(bootstrap: str, isolation: str) -> list[tuple[int, int, bytes | None, bytes | None]]:
    """Return the records that a consumer reads from the beginning to the end."""
    partition = TopicPartition(TOPIC, 0)
    consumer = AIOKafkaConsumer(
        bootstrap_servers=bootstrap, isolation_level=isolation, enable_auto_commit=False, fetch_max_wait_ms=2000
    )
    await consumer.start()
    try:
        consumer.assign([partition])
        await consumer.seek_to_beginning(partition)
        end = (await consumer.end_offsets([partition]))[partition]
        found: list[tuple[int, int, bytes | None, bytes | None]] = []
        while await consumer.position(partition) < end:
            records = (await consumer.getmany(partition, timeout_ms=5000)).get(partition, [])
            found += [(each.offset, each.timestamp, each.key, each.value) for each in records]
        return found
    finally:
        await consumer.stop()
