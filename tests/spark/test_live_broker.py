"""A stream of a directory that a busy broker writes to: each record once, over rolls, retention, topics that go."""

from __future__ import annotations

import threading
import time
from collections import Counter

import pytest
from busy_broker import CONFIG, HIGH_WATERMARKS_SECONDS, TOPICS, traffic
from streaming_query import begin

import kidx
from conformance.kafka.broker import LocalBroker

pytestmark = [pytest.mark.spark, pytest.mark.broker, pytest.mark.thorough]

SECONDS = 12
RATE = 2500
LIMIT = 120
SIZES = {"segment.bytes": str(100 << 10), "index.interval.bytes": "4096", "retention.bytes": str(8 << 20)}


def test_each_record_of_a_busy_broker_arrives_once(spark, tmp_path):
    with LocalBroker("3.9.2", base=tmp_path, config=CONFIG) as broker:
        ends = {}
        writing = threading.Thread(target=lambda: ends.update(traffic(broker.bootstrap, SECONDS, RATE, SIZES)))
        writing.start()
        until = time.monotonic() + LIMIT
        while not all(list(broker.log_dir.glob(f"{topic}-0/*.log")) for topic in TOPICS):
            assert time.monotonic() < until
            time.sleep(0.1)
        stream = spark.readStream.format("kafka_segments").option("subscribe", ",".join(TOPICS))
        rows = stream.load(str(broker.log_dir)).selectExpr("topic || '-' || partition as name", "offset")
        sink = rows.writeStream.format("parquet").trigger(processingTime="1 second")
        sink = sink.option("checkpointLocation", str(tmp_path / "checkpoint")).option("path", str(tmp_path / "sink"))
        looks = 0
        for _ in range(2):
            query = begin(sink)
            for content in ("batches", "offset_index", "segments"):
                table = kidx.read(broker.log_dir, content).read_all()
                assert table.num_rows
                errors = table["error"].to_pylist() if content == "batches" else []
                assert not [error for error in errors if error]
                looks += 1
            for isolation in ("read_uncommitted", "read_committed"):
                assert kidx.read(broker.log_dir, topics="prealloc", isolation=isolation, columns=["offset"]).read_all()
            time.sleep(SECONDS / 4)
            assert query.exception() is None
            query.stop()
        writing.join()
        time.sleep(HIGH_WATERMARKS_SECONDS)
        query = begin(sink)
        query.stop()
        files = {name: len(list((broker.log_dir / name).glob("*.log"))) for name in ends}
    found = Counter(tuple(row) for row in spark.read.parquet(str(tmp_path / "sink")).collect())
    assert found == Counter((name, offset) for name, end in ends.items() for offset in range(end))
    assert looks == 6
    assert all(number > 2 for number in files.values())
