"""The log directory of a running broker, queried by topic and time: what the consumer of the same records got."""

from __future__ import annotations

import random

import pytest

from conformance.kafka.broker import LocalBroker
from kidx.spark.metrics import totals

pytestmark = [pytest.mark.spark, pytest.mark.broker]

RELEASE = "3.9.2"
START = 1_700_000_000_000
LIMIT_MS = 20_000
RECORDS = 12_000


@pytest.fixture(scope="module")
def broker(tmp_path_factory):
    from conformance.kafka.client import kafka_python

    with LocalBroker(RELEASE, base=tmp_path_factory.mktemp("broker")) as running:
        yield running, kafka_python()


def produce(kafka, bootstrap):
    """Write two partitions of a topic with CreateTime, one with LogAppendTime, and one with transactions."""
    admin = kafka.KafkaAdminClient(bootstrap_servers=bootstrap, request_timeout_ms=LIMIT_MS)
    small = {"segment.bytes": "200000", "index.interval.bytes": "2000"}
    tiny = small | {"segment.bytes": "2000"}
    stamped = small | {"message.timestamp.type": "LogAppendTime"}
    for topic, partitions, config in (("events", 2, small), ("stamped", 1, stamped), ("ledger", 1, tiny)):
        options = {"num_partitions": partitions, "replication_factor": 1, "configs": config}
        admin.create_topics({topic: options}, timeout_ms=LIMIT_MS, wait_for_metadata=True)
    admin.close()
    draw = random.Random(8)  # noqa: S311
    common = {"bootstrap_servers": bootstrap, "request_timeout_ms": LIMIT_MS, "acks": "all"}
    producer = kafka.KafkaProducer(**common, compression_type="gzip", linger_ms=5, batch_size=4000)
    for n in range(RECORDS):
        key = None if n % 7 == 0 else b"k%d" % (n % 50)
        value = None if key and n % 11 == 0 else draw.randbytes(100)
        headers = [("trace", b"%d" % n), ("trace", b""), ("söme", b"\x00\xff")] if n % 3 == 0 else []
        time = START + 1000 * n - draw.randrange(400)
        producer.send("events", value, key, headers, partition=n % 2, timestamp_ms=time)
        if n % 20 == 0:
            producer.send("stamped", b"s%d" % n, partition=0)
    producer.close()
    writer = kafka.KafkaProducer(**common, transactional_id="ledger", linger_ms=5)
    writer.init_transactions()
    for n in range(6):
        writer.begin_transaction()
        for each in range(20):
            writer.send("ledger", b"%d-%d" % (n, each), partition=0, timestamp_ms=START + 1000 * n)
        writer.flush()
        if n % 2:
            writer.abort_transaction()
        else:
            writer.commit_transaction()
    writer.close()
    late = kafka.KafkaProducer(**common, transactional_id="late")
    late.init_transactions()
    late.begin_transaction()
    for name in ("open", "open too"):
        late.send("ledger", name.encode(), partition=0).get(timeout=20)
    producer = kafka.KafkaProducer(**common)
    producer.send("ledger", b"after", partition=0).get(timeout=20)
    producer.close()
    return late


def consumed(kafka, bootstrap, topic, partitions, *, times=None, isolation="read_uncommitted"):
    """Return all records, or those from one time to another, as the consumer returns them."""
    consumer = kafka.KafkaConsumer(
        bootstrap_servers=bootstrap,
        group_id=None,
        enable_auto_commit=False,
        isolation_level=isolation,
        request_timeout_ms=LIMIT_MS,
    )
    try:
        all_of = [kafka.TopicPartition(topic, n) for n in range(partitions)]
        consumer.assign(all_of)
        begin, end = consumer.beginning_offsets(all_of), consumer.end_offsets(all_of)
        if times is not None:
            for bounds, time in ((begin, times[0]), (end, times[1])):
                found = consumer.offsets_for_times(dict.fromkeys(all_of, time))
                bounds.update({each: answer.offset for each, answer in found.items() if answer is not None})
        for each in all_of:
            consumer.seek(each, begin[each])
        found = []
        while any(consumer.position(each) < end[each] for each in all_of):
            for each, records in consumer.poll(timeout_ms=1000).items():
                found += [plain(record) for record in records if record.offset < end[each]]
        return sorted(found, key=lambda row: row[:3])
    finally:
        consumer.close()


def plain(record):
    headers = list(record.headers) or None
    return (
        record.topic, record.partition, record.offset, record.timestamp, record.timestamp_type,
        record.key, record.value, headers,
    )  # fmt: skip


def by_place(rows):
    return sorted(rows, key=lambda row: row[:3])


@pytest.mark.thorough
def test_spark_sees_the_records_of_a_consumer(broker, segments, tmp_path):
    running, kafka = broker
    bootstrap = running.bootstrap
    undecided = produce(kafka, bootstrap)

    def ask(name, topic, **options):
        frame = segments(running.log_dir, subscribe=topic, includeHeaders=True, metrics=tmp_path / name, **options)
        columns = "topic", "partition", "offset", "unix_millis(timestamp)", "timestampType", "key", "value", "headers"
        rows = [as_plain(row) for row in frame.selectExpr(*columns).collect()]
        return by_place(rows), totals(tmp_path / name)

    everything, full = ask("full", "events")
    assert everything == consumed(kafka, bootstrap, "events", 2)
    assert len(everything) == RECORDS

    times = START + 2_000_000, START + 2_060_000
    narrow, some = ask("narrow", "events", startingTimestamp=times[0], endingTimestamp=times[1])
    assert narrow == consumed(kafka, bootstrap, "events", 2, times=times)
    assert 50 < len(narrow) < 70
    print(f"{len(narrow)} of {RECORDS} records: {some.bytes_read} bytes read instead of {full.bytes_read}")  # noqa: T201
    assert some.bytes_read * 5 < full.bytes_read

    assert ask("stamped", "stamped")[0] == consumed(kafka, bootstrap, "stamped", 1)
    for isolation, count in (("read_uncommitted", 123), ("read_committed", 60)):
        rows, _ = ask(isolation, "ledger", isolationLevel=isolation)
        assert rows == consumed(kafka, bootstrap, "ledger", 1, isolation=isolation)
        assert len(rows) == count
    assert list((running.log_dir / "ledger-0").glob("*.snapshot"))
    undecided.abort_transaction()
    undecided.close()
    rows, _ = ask("decided", "ledger", isolationLevel="read_committed")
    assert rows == consumed(kafka, bootstrap, "ledger", 1, isolation="read_committed")
    assert len(rows) == 61


def as_plain(row):
    def binary(value):
        return None if value is None else bytes(value)

    headers = None if row[7] is None else [(header["key"], binary(header["value"])) for header in row[7]]
    return (*row[:5], binary(row[5]), binary(row[6]), headers)
