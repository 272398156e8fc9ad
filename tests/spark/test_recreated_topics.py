"""Topics that a real broker deletes and creates again, while a stream runs and while it is down."""

from __future__ import annotations

import re
import time
from collections import Counter

import pytest
from streaming_query import begin

from conformance.kafka.broker import LocalBroker
from conformance.kafka.client import kafka_python
from kidx.errors import ToolError
from kidx.spark.source import SegmentsReader
from kidx.spark.streaming import StreamReader
from kidx.tables.options import read_options

pytestmark = [pytest.mark.spark, pytest.mark.broker, pytest.mark.thorough]

LIMIT_MS = 60_000
READ = 100


class Topics:
    """Topics of a broker."""

    def __init__(self, broker):
        self.kafka = kafka_python()
        self.bootstrap, self.directory = broker.bootstrap, broker.log_dir
        self.admin = self.kafka.KafkaAdminClient(bootstrap_servers=self.bootstrap, request_timeout_ms=LIMIT_MS)

    def create(self, topic, partitions, records):
        """Create a topic with a number of records in each partition, and wait until all can be read."""
        options = {"num_partitions": partitions, "replication_factor": 1, "configs": {"segment.bytes": str(1 << 20)}}
        self.admin.create_topics({topic: options}, timeout_ms=LIMIT_MS, wait_for_metadata=True)
        producer = self.kafka.KafkaProducer(bootstrap_servers=self.bootstrap, acks="all", max_block_ms=LIMIT_MS)
        for number in range(partitions * records):
            producer.send(topic, b"%d" % number, partition=number % partitions)
        producer.flush()
        producer.close()
        places = [f"{topic} {number} {records}" for number in range(partitions)]
        marks = self.directory / "replication-offset-checkpoint"
        self.wait(lambda: marks.exists() and set(places) <= set(marks.read_text().splitlines()))

    def delete(self, topic):
        self.admin.delete_topics([topic], timeout_ms=LIMIT_MS)
        self.wait(lambda: not any(re.fullmatch(rf"{topic}-\d+", path.name) for path in self.directory.iterdir()))

    @staticmethod
    def wait(condition):
        until = time.monotonic() + LIMIT_MS / 1000
        while not condition():
            assert time.monotonic() < until
            time.sleep(0.1)


def follower(directory, topic, **given):
    options = read_options({"path": str(directory), "subscribe": topic, **given}, may_stream=True)
    return StreamReader(SegmentsReader(None, options), options)


def planned(stream, start, end):
    found = Counter()
    for task in stream.partitions(start, end):
        for split in task.value:
            name = f"{split.segment.topic}-{split.segment.partition}"
            found[name] += min(split.stop_offset, end[name]) - split.first_offset
    return found


@pytest.mark.parametrize("release", ["4.3.1"])
def test_a_topic_that_a_broker_creates_again_is_data_loss(release, spark, tmp_path):
    with LocalBroker(release, base=tmp_path, config={"replica.high.watermark.checkpoint.interval.ms": "500"}) as broker:
        topics = Topics(broker)
        cases = {"shorter": (2, 40), "equal": (2, READ), "longer": (2, 130), "more": (3, 40), "fewer": (1, 130)}
        before = {}
        for name in cases:
            topics.create(name, 2, READ)
            stream = follower(broker.log_dir, name)
            before[name] = stream.latestOffset(stream.initialOffset())
            topics.delete(name)
        for name, (partitions, records) in cases.items():
            topics.create(name, partitions, records)
            with pytest.raises(ToolError) as raised:
                follower(broker.log_dir, name).latestOffset(before[name])
            old = before[name]["identities"][f"{name}-0"]
            assert f"{name}-0 was read up to offset {READ}, and is another topic now" in str(raised.value)
            assert re.search(rf"with the offsets 0 to {records}: topic id \S{{22}} instead of {old}", str(raised.value))
            loose = follower(broker.log_dir, name, failOnDataLoss="false")
            end = loose.latestOffset(before[name])
            assert planned(loose, before[name], end) == {f"{name}-{n}": records for n in range(partitions)}

        def follow(**options):
            stream = spark.readStream.format("kafka_segments").option("subscribe", "t").options(**options)
            sink = stream.load(str(broker.log_dir)).select("partition", "offset", "value").writeStream.format("parquet")
            sink = sink.option("checkpointLocation", str(tmp_path / "checkpoint")).option("path", str(tmp_path / "out"))
            begin(sink.trigger(availableNow=True), "awaitTermination")

        topics.create("t", 1, READ)
        follow()
        topics.delete("t")
        topics.create("t", 1, 500)
        with pytest.raises(Exception, match=rf"t-0 was read up to offset {READ}, and is another topic now"):
            follow()
        follow(failOnDataLoss="false")
        topics.admin.close()
    rows = Counter(row.offset for row in spark.read.parquet(str(tmp_path / "out")).collect())
    assert rows == Counter(range(READ)) + Counter(range(500))
