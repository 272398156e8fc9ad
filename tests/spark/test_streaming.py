"""``readStream`` over a directory that grows: each record once, over restarts, new segments and new partitions."""

from __future__ import annotations

from collections import Counter

import pytest
from streaming_query import begin
from thorough_params import thorough_param

from kidx.records import build_batch

pytestmark = pytest.mark.spark


@pytest.fixture
def disk(tmp_path):
    (tmp_path / "data" / "t-0").mkdir(parents=True)
    return tmp_path / "data"


def append(disk, partition, base, first, batches, *, torn=0):
    """Append batches of three records each to a log; the last one may be half written."""
    log = disk / f"t-{partition}" / f"{base:020d}.log"
    log.parent.mkdir(exist_ok=True)
    records = [(1_700_000_000_000, b"k", b"v")] * 3
    data = b"".join(build_batch(records, base_offset=first + 3 * number) for number in range(batches))
    with log.open("ab") as file:
        file.write(data[: len(data) - torn])
    return data[len(data) - torn :] if torn else b""


@pytest.mark.thorough
def test_each_record_arrives_once_over_restarts(spark, disk, tmp_path):
    def take():
        stream = spark.readStream.format("kafka_segments").option("subscribe", "t").load(str(disk))
        assert stream.isStreaming
        sink = stream.select("partition", "offset").writeStream.format("parquet")
        sink = sink.option("checkpointLocation", str(tmp_path / "checkpoint")).option("path", str(tmp_path / "out"))
        query = begin(sink)
        try:
            yield query
            query.processAllAvailable()
        finally:
            query.stop()

    def taken():
        rows = spark.read.parquet(str(tmp_path / "out")).collect()
        return Counter((row.partition, row.offset) for row in rows)

    rest = append(disk, 0, 0, 0, 4, torn=10)  # a batch that the broker is writing
    for _ in take():
        assert taken() == Counter((0, offset) for offset in range(9))
        with (disk / "t-0" / f"{0:020d}.log").open("ab") as file:
            file.write(rest)
        append(disk, 0, 0, 12, 2)
    assert taken() == Counter((0, offset) for offset in range(18))
    append(disk, 0, 18, 18, 3)  # a new segment, and a new partition, while nothing runs
    append(disk, 1, 0, 0, 2)
    for _ in take():
        pass
    everything = Counter([*((0, offset) for offset in range(27)), *((1, offset) for offset in range(6))])
    assert taken() == everything
    for _ in take():
        pass
    assert taken() == everything
    (disk / "t-0" / f"{0:020d}.log").unlink()
    append(disk, 0, 18, 27, 1)
    for _ in take():
        pass
    assert taken() == everything + Counter((0, offset) for offset in range(27, 30))


@pytest.mark.thorough
def test_records_that_arrive_during_a_query_arrive_once(spark, disk):
    """It runs in memory, within one query; the test above uses a checkpoint, and several segments and partitions."""
    rest = append(disk, 0, 0, 0, 2, torn=10)
    stream = spark.readStream.format("kafka_segments").option("subscribe", "t").load(str(disk))
    following = begin(stream.select("partition", "offset").writeStream.format("memory").queryName("followed"))
    try:
        before = spark.table("followed").count()
        with (disk / "t-0" / f"{0:020d}.log").open("ab") as file:
            file.write(rest)
        following.processAllAvailable()
        rows = Counter((row.partition, row.offset) for row in spark.table("followed").collect())
    finally:
        following.stop()
    assert before == 3
    assert rows == Counter((0, offset) for offset in range(6))


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("option", "value"),
    [("content", "batches"), thorough_param("endingOffsets", '{"t": {"0": 1}}'), thorough_param("replicas", "all")],
)
def test_unsupported_streams_are_rejected_by_name(option, value, spark, disk):
    append(disk, 0, 0, 0, 1)
    stream = spark.readStream.format("kafka_segments").option(option, value)

    def follow():
        begin(stream.load(str(disk)).writeStream.format("noop"))

    with pytest.raises(Exception, match="readStream") as raised:
        follow()
    assert "spark.read" in str(raised.value)


@pytest.mark.thorough
def test_limits_are_respected_and_available_now_reads_only_existing_records(spark, disk, tmp_path):
    """Limits have the form of Spark 4.2; micro-batches are counted by the progress of the query."""
    append(disk, 0, 0, 0, 20)
    stream = spark.readStream.format("kafka_segments").option("subscribe", "t").option("maxOffsetsPerTrigger", 25)
    writer = stream.load(str(disk)).select("offset").writeStream.format("parquet").trigger(availableNow=True)
    writer = writer.option("checkpointLocation", str(tmp_path / "checkpoint")).option("path", str(tmp_path / "out"))
    for _ in range(5):
        query = writer.start()
        try:
            query.awaitTermination()
            break
        except Exception as error:
            if "worker failed to connect back" not in str(error):
                raise
    assert [progress.numInputRows for progress in query.recentProgress if progress.numInputRows] == [25, 25, 10]
    rows = [row.offset for row in spark.read.parquet(str(tmp_path / "out")).collect()]
    assert sorted(rows) == list(range(60))
    source = query.lastProgress.sources[0]
    assert source.latestOffset == '{"t-0": 60}'
