"""Broker under mixed load, for tests of programs that read its files at the same time."""

from __future__ import annotations

import contextlib
import threading
import time
from collections import Counter

from conformance.kafka.broker import BrokerError, LocalBroker
from conformance.kafka.client import kafka_python

LIMIT_MS = 60_000
TOPICS = {"streamed": 2, "prealloc": 1}
CONFIG = {
    "log.retention.check.interval.ms": "1000",
    "log.segment.delete.delay.ms": "500",
    "file.delete.delay.ms": "500",
}
HIGH_WATERMARKS_SECONDS = 6
"""Maximum time in seconds until a broker, which does so every 5 s, has written the high watermarks."""


def traffic(
    bootstrap: str, seconds: float, rate: int, settings: dict[str, str], *, may_expire: bool = False
) -> dict[str, int]:
    """Write to all topics at a rate, create and delete other topics, and return the end of each partition.

    The producer is idempotent: a batch that is sent again after a restart of the broker is in the log only once.

    Args:
        bootstrap: address of the broker.
        seconds: duration.
        rate: records per second.
        settings: topic configurations.
        may_expire: True if records may expire in the producer, as on a machine that is too busy for the rate; False if
            all records must be written.
    """
    kafka = kafka_python()
    admin = kafka.KafkaAdminClient(bootstrap_servers=bootstrap, request_timeout_ms=LIMIT_MS)
    for topic, partitions in TOPICS.items():
        config = settings | ({"preallocate": "true"} if topic == "prealloc" else {})
        options = {"num_partitions": partitions, "replication_factor": 1, "configs": config}
        admin.create_topics({topic: options}, timeout_ms=LIMIT_MS, wait_for_metadata=True)
    stop = threading.Event()
    made: list[str] = []

    def churn() -> None:
        producer = kafka.KafkaProducer(bootstrap_servers=bootstrap, request_timeout_ms=LIMIT_MS)
        while not stop.wait(0.5):
            name = f"churn-{len(made)}"
            made.append(name)
            try:
                admin.create_topics({name: {"num_partitions": 2, "replication_factor": 1}}, timeout_ms=LIMIT_MS)
                producer.send(name, b"short-lived", partition=0)
                producer.flush(LIMIT_MS / 1000)
                if len(made) > 2:
                    admin.delete_topics([made[-3]], timeout_ms=LIMIT_MS)
            except kafka.errors.KafkaError as error:  # the broker is being restarted
                print_line(f"{name}: {type(error).__name__}")
        producer.close()

    churning = threading.Thread(target=churn)
    churning.start()
    options = {"request_timeout_ms": LIMIT_MS, "delivery_timeout_ms": 5 * LIMIT_MS, "max_block_ms": 5 * LIMIT_MS}
    producer = kafka.KafkaProducer(
        bootstrap_servers=bootstrap, acks="all", enable_idempotence=True, linger_ms=5, **options
    )
    expired: list[BaseException] = []
    places = [(topic, number) for topic, partitions in TOPICS.items() for number in range(partitions)]
    begin, sent = time.monotonic(), Counter[str]()
    while (now := time.monotonic() - begin) < seconds:
        while sum(sent.values()) < now * rate:
            topic, number = places[sum(sent.values()) % len(places)]
            producer.send(topic, b"v" * 100, partition=number).add_errback(expired.append)
            sent[f"{topic}-{number}"] += 1
        time.sleep(0.01)
    producer.flush()
    producer.close()
    stop.set()
    churning.join()
    admin.close()
    if expired:
        assert may_expire, expired[:3]
        print_line(f"{len(expired):,} records expired in the producer: {expired[0]}")
    ends = ends_of(bootstrap, places)
    assert expired or ends == sent
    took = time.monotonic() - begin
    print_line(f"{len(made)} topics made, and most of them deleted; {rate} records a second wanted")
    total = sum(ends.values())
    print_line(f"{total:,} records in {took:,.0f} s, {total / took:,.0f} per second: {ends}")
    return ends


def ends_of(bootstrap: str, places: list[tuple[str, int]]) -> dict[str, int]:
    """Return the end of each partition, from the broker, because an expired record may be in the log nevertheless."""
    kafka = kafka_python()
    consumer = kafka.KafkaConsumer(bootstrap_servers=bootstrap, request_timeout_ms=LIMIT_MS)
    try:
        found = consumer.end_offsets([kafka.TopicPartition(topic, number) for topic, number in places])
    finally:
        consumer.close()
    return {f"{place.topic}-{place.partition}": end for place, end in found.items()}


def start_again(broker: LocalBroker) -> None:
    """Start a broker that was stopped or killed; try again if the first attempt fails, as on a busy machine."""
    for _ in range(3):
        with contextlib.suppress(BrokerError):
            return broker.start()
    return broker.start()


def print_line(line: str) -> None:
    """Print a line and flush it."""
    print(time.strftime("%H:%M:%S"), line, flush=True)  # noqa: T201
