"""Queries for Spark's own Kafka source, run on a broker and on its files: every option and its precedence."""

from __future__ import annotations

import json
import time as clock
from typing import Any, NamedTuple

import pytest

from conformance.kafka.broker import LocalBroker
from conformance.kafka.jar_fetch import fetch, tool_jar
from conformance.kafka.releases import load_release

pytestmark = [pytest.mark.spark, pytest.mark.broker, pytest.mark.thorough]

RELEASE = "3.9.2"
START = 1_700_000_000_000
LIMIT_MS = 20_000
IMPATIENT = {
    "kafkaConsumer.pollTimeoutMs": 3000,
    "fetchOffset.numRetries": 1,
    "fetchOffset.retryIntervalMs": 10,
}
"""Otherwise Spark waits two minutes for an offset that never arrives."""
COLUMNS = "topic", "partition", "offset", "unix_millis(timestamp)", "timestampType", "key", "value"


def per_partition_json(**of_topic: dict[int, int]) -> str:
    """Return Spark's JSON for offsets, or times, of the partitions of each topic; ``_`` in a name is a dot."""
    return json.dumps({name.replace("_", "."): numbers for name, numbers in of_topic.items()})


# Topics: orders, three partitions of 30 records, a second apart; orders.old, whose first 10 of 20 records are deleted;
# stamped, with LogAppendTime; ledger, with transactions; empty. START + 30,000 is after all records of orders.
CASES: dict[str, dict[str, Any]] = {
    "one topic": {"subscribe": "orders"},
    "two topics": {"subscribe": "orders, stamped"},
    "a topic twice": {"subscribe": "orders,orders"},
    "no such topic": {"subscribe": "orders,missing"},
    "an empty topic": {"subscribe": "empty"},
    "no records before the log start": {"subscribe": "orders.old"},
    "a pattern": {"subscribePattern": r"orders.*"},
    "a pattern of a part": {"subscribePattern": r"amp"},
    "a pattern of the whole name": {"subscribePattern": r"^order$"},
    "Java regex syntax": {"subscribePattern": r"\p{Lower}+\.[a-z&&[^x]]+"},
    "Java regex quotes": {"subscribePattern": r"\Qorders.\E(?<rest>o)\p{Alpha}*+"},
    "internal topics match no pattern": {"subscribePattern": r".*"},
    "a pattern that none matches": {"subscribePattern": r"x.*"},
    "a broken pattern": {"subscribePattern": r"("},
    "assigned": {"assign": '{"orders": [0, 2], "stamped": [0]}'},
    "an assigned partition that is missing": {"assign": '{"orders": [0, 7]}'},
    "an assigned topic that is missing": {"assign": '{"missing": [0]}'},
    "subscribe and assign": {"subscribe": "orders", "assign": '{"orders": [0]}'},
    "earliest and latest": {"subscribe": "orders", "startingOffsets": "earliest", "endingOffsets": "latest"},
    "in capitals": {"subscribe": "orders", "startingOffsets": "EARLIEST", "endingOffsets": "Latest"},
    "starting at the latest": {"subscribe": "orders", "startingOffsets": "latest"},
    "ending at the earliest": {"subscribe": "orders", "endingOffsets": "earliest"},
    "offsets": {
        "subscribe": "orders",
        "startingOffsets": per_partition_json(orders={0: 3, 1: -2, 2: 30}),
        "endingOffsets": per_partition_json(orders={0: 20, 1: -1, 2: 30}),
    },
    "latest as a starting offset": {
        "subscribe": "orders",
        "startingOffsets": per_partition_json(orders={0: -1, 1: -1, 2: -1}),
    },
    "earliest as an ending offset": {
        "subscribe": "orders",
        "endingOffsets": per_partition_json(orders={0: -2, 1: -2, 2: -2}),
    },
    "a partition without an offset": {
        "subscribe": "orders",
        "startingOffsets": per_partition_json(orders={0: 3, 1: 4}),
    },
    "an offset without a partition": {
        "subscribe": "orders",
        "startingOffsets": per_partition_json(orders=dict.fromkeys(range(4), 3)),
    },
    "offsets not JSON": {"subscribe": "orders", "startingOffsets": "three"},
    "start after end": {
        "assign": '{"orders": [0]}',
        "startingOffsets": per_partition_json(orders={0: 20}),
        "endingOffsets": per_partition_json(orders={0: 10}),
    },
    "start past the log end": {"assign": '{"orders": [0]}', "startingOffsets": per_partition_json(orders={0: 99})},
    "end past the log end": {"assign": '{"orders": [0]}', "endingOffsets": per_partition_json(orders={0: 99})},
    "start past the log end, loss allowed": {
        "assign": '{"orders": [0]}',
        "startingOffsets": per_partition_json(orders={0: 99}),
        "failOnDataLoss": "false",
    },
    "end past the log end, loss allowed": {
        "assign": '{"orders": [0]}',
        "endingOffsets": per_partition_json(orders={0: 99}),
        "failOnDataLoss": "false",
    },
    "start before the log": {"subscribe": "orders.old", "startingOffsets": per_partition_json(orders_old={0: 2})},
    "start before the log, loss allowed": {
        "subscribe": "orders.old",
        "startingOffsets": per_partition_json(orders_old={0: 2}),
        "failOnDataLoss": "false",
    },
    "times of partitions": {
        "subscribe": "orders",
        "startingOffsetsByTimestamp": per_partition_json(orders={0: START + 4500, 1: START, 2: 0}),
        "endingOffsetsByTimestamp": per_partition_json(orders={0: START + 9000, 1: START + 2000, 2: START + 90_000}),
    },
    "a starting time after all records": {
        "subscribe": "orders",
        "startingOffsetsByTimestamp": per_partition_json(orders=dict.fromkeys(range(3), START + 90_000)),
    },
    "a starting time after all records, latest": {
        "subscribe": "orders",
        "startingOffsetsByTimestamp": per_partition_json(orders=dict.fromkeys(range(3), START + 90_000)),
        "startingOffsetsByTimestampStrategy": "latest",
    },
    "a time of a missing partition": {
        "assign": '{"orders": [0]}',
        "startingOffsetsByTimestamp": per_partition_json(orders={0: START, 1: START}),
    },
    "one time": {"subscribe": "orders", "startingTimestamp": START + 4500, "endingTimestamp": START + 9001},
    "one time after all records": {"subscribe": "orders", "startingTimestamp": START + 90_000},
    "one time after all records, latest": {
        "subscribe": "orders",
        "startingTimestamp": START + 90_000,
        "startingOffsetsByTimestampStrategy": "latest",
    },
    "an unknown strategy": {"subscribe": "orders", "startingOffsetsByTimestampStrategy": "first"},
    "one time goes before times and offsets": {
        "subscribe": "orders",
        "startingTimestamp": START + 25_000,
        "startingOffsetsByTimestamp": per_partition_json(orders=dict.fromkeys(range(3), START)),
        "startingOffsets": per_partition_json(orders={0: 3}),
        "endingTimestamp": START + 28_000,
        "endingOffsetsByTimestamp": per_partition_json(orders=dict.fromkeys(range(3), START)),
        "endingOffsets": per_partition_json(orders={0: 3}),
    },
    "times go before offsets": {
        "subscribe": "orders",
        "startingOffsetsByTimestamp": per_partition_json(orders=dict.fromkeys(range(3), START + 25_000)),
        "startingOffsets": per_partition_json(orders=dict.fromkeys(range(3), 3)),
        "endingOffsetsByTimestamp": per_partition_json(orders=dict.fromkeys(range(3), START + 28_000)),
        "endingOffsets": per_partition_json(orders=dict.fromkeys(range(3), 3)),
    },
    "start by time, end by offset": {
        "assign": '{"orders": [1]}',
        "startingTimestamp": START + 4500,
        "endingOffsets": per_partition_json(orders={1: 12}),
    },
    "invalid timestamp": {"subscribe": "orders", "startingTimestamp": "noon"},
    "aborted records and records of open transactions": {"subscribe": "ledger"},
    "committed records": {"subscribe": "ledger", "kafka.isolation.level": "read_committed"},
    "headers": {"subscribe": "orders", "includeHeaders": "true"},
    "no headers": {"subscribe": "orders", "includeHeaders": "false"},
    "minPartitions above the number of partitions": {"subscribe": "orders", "minPartitions": 5},
    "minPartitions not a number": {"subscribe": "orders", "minPartitions": "many"},
    "no topics selected": {},
}


class Answer(NamedTuple):
    """Rows, or None and the error message."""

    rows: list[tuple[Any, ...]] | None
    error: str = ""


@pytest.fixture(scope="module")
def broker(tmp_path_factory):
    from conformance.kafka.client import kafka_python

    kafka = kafka_python()
    with LocalBroker(RELEASE, base=tmp_path_factory.mktemp("broker")) as running:
        bootstrap = running.bootstrap
        admin = kafka.KafkaAdminClient(bootstrap_servers=bootstrap, request_timeout_ms=LIMIT_MS)
        made = {"orders": 3, "orders.old": 1, "stamped": 1, "ledger": 1, "empty": 1}
        for topic, partitions in made.items():
            config = {"index.interval.bytes": "100", "segment.bytes": "2000", "retention.ms": "-1"}
            if topic == "stamped":
                config["message.timestamp.type"] = "LogAppendTime"
            options = {"num_partitions": partitions, "replication_factor": 1, "configs": config}
            admin.create_topics({topic: options}, timeout_ms=LIMIT_MS, wait_for_metadata=True)
        common = {"bootstrap_servers": bootstrap, "request_timeout_ms": LIMIT_MS, "acks": "all"}
        producer = kafka.KafkaProducer(**common, linger_ms=2, batch_size=300)
        for n in range(90):
            key, headers = (None, []) if n % 7 == 0 else (b"k%d" % n, [("trace", b"%d" % n), ("söme", b"")])
            time = START + 1000 * (n // 3)
            producer.send("orders", b"v" * (n % 40), key, headers, partition=n % 3, timestamp_ms=time)
            if n < 20:
                producer.send("orders.old", b"old", partition=0, timestamp_ms=time)
                producer.send("stamped", b"stamped", partition=0)
        producer.close()
        admin.delete_records({kafka.TopicPartition("orders.old", 0): 10}, timeout_ms=LIMIT_MS)
        admin.close()
        for name, ending in (("one", "commit"), ("two", "abort"), ("three", None)):
            # The transaction that is not ended remains open for as long as a broker allows.
            writer = kafka.KafkaProducer(**common, transactional_id=name, transaction_timeout_ms=900_000)
            writer.init_transactions()
            writer.begin_transaction()
            for n in range(4):
                writer.send("ledger", b"%d" % n, name.encode(), partition=0, timestamp_ms=START + n)
            writer.flush()
            if ending is not None:
                getattr(writer, f"{ending}_transaction")()
                writer.close()
        producer = kafka.KafkaProducer(**common)
        producer.send("ledger", b"after", partition=0, timestamp_ms=START).get(timeout=20)
        producer.close()
        # The broker checkpoints log start offsets only once a minute: wait until the file contains this one.
        checkpoint, until = running.log_dir / "log-start-offset-checkpoint", clock.monotonic() + 200
        while not (checkpoint.exists() and "orders.old 0 10" in checkpoint.read_text("utf-8")):
            assert clock.monotonic() < until
            clock.sleep(0.5)
        yield running
        writer.abort_transaction()
        writer.close()


@pytest.fixture(scope="module")
def run_query(spark, broker):
    """Return a function that runs the query of a case with a source."""
    clients = [jar for jar in load_release(RELEASE).jars if jar.name.startswith("kafka-clients-")]
    jars = [tool_jar("connector"), tool_jar("connector-tokens"), tool_jar("commons-pool2"), *fetch(clients)]
    for jar in jars:
        spark.sql(f"ADD JAR '{jar}'")

    def answer(source: str, options: dict[str, Any]) -> Answer:
        options = IMPATIENT | options
        reader = spark.read.format(source).options(**{name: str(value) for name, value in options.items()})
        try:
            if source == "kafka":
                frame = reader.option("kafka.bootstrap.servers", broker.bootstrap).load()
            else:
                frame = reader.load(str(broker.log_dir))
            columns = COLUMNS + (("headers",) if "headers" in frame.columns else ())
            rows = [tuple(row) for row in frame.selectExpr(*columns).collect()]
            return Answer(sorted(rows, key=lambda row: row[:3]))
        except Exception as error:  # noqa: BLE001 -- each source has its own errors
            return Answer(None, str(error))

    return answer


DIFFERENT: dict[str, tuple[set[str] | None, set[str] | None]] = {
    "no topics selected": (None, {"orders", "orders.old", "stamped", "ledger", "__transaction_state"}),
    "an assigned partition that is missing": ({"orders"}, None),
    "start past the log end, loss allowed": (None, set()),
}
"""Topics in the rows of Spark's own source and of kidx's where they differ, as in docs/spark.md; None is an error."""


@pytest.mark.parametrize("case", CASES)
def test_both_sources_return_the_same(case, run_query):
    theirs, ours = (run_query(source, CASES[case]) for source in ("kafka", "kafka_segments"))
    message = f"theirs: {theirs.error[:300]!r}; ours: {ours.error[-300:]!r}"
    if case in DIFFERENT:
        topics = tuple(None if each.rows is None else {row[0] for row in each.rows} for each in (theirs, ours))
        assert topics == DIFFERENT[case], message
    else:
        assert ours.rows == theirs.rows, message
