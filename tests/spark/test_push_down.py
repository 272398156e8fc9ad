"""Selective queries, which read a small part of the bytes, and return the same rows as reading everything."""

from __future__ import annotations

import time
from itertools import product
from pathlib import Path

import pytest
from lying_logs import BEYOND, KINDS, write_log

from kidx.spark.metrics import totals
from kidx.storage import LocalReader

pytestmark = pytest.mark.spark

GOLDEN = Path(__file__).parents[1] / "golden" / "3.9.2"
START = 1_700_000_000_000
OFF = "spark.sql.python.filterPushdown.enabled"


@pytest.fixture
def asked(segments, tmp_path):
    """Return the offsets that a query returns, and the bytes that it read."""
    number = iter(range(100))

    def ask(path, condition="true", **options):
        directory = tmp_path / f"metrics-{next(number)}"
        frame = segments(path, metrics=directory, pushDown=True, **options).where(condition)
        return sorted(row.offset for row in frame.select("offset").collect()), totals(directory)

    return ask


def await_settled(root):
    """Wait until a change of the logs would show in their times."""
    for path in root.rglob("*.log"):
        with LocalReader(str(path)) as reader:
            while not reader.version():
                time.sleep(0.1)


def at(second):
    return f"timestamp_millis({START + 1000 * second})"


@pytest.mark.thorough
def test_options_of_time_read_by_the_index(asked, long_log):
    everything, full = asked(long_log)
    assert everything == list(range(40_000))
    narrow, some = asked(long_log, startingTimestamp=START + 17_000_000, endingTimestamp=START + 17_100_000)
    assert narrow == list(range(17_000, 17_100))
    assert full.bytes_read > 4_000_000
    assert some.bytes_read * 20 < full.bytes_read
    assert (full.rows, some.rows) == (40_000, 100)


@pytest.mark.thorough
def test_conditions_on_columns_are_pushed_down(asked, long_log, spark):
    condition = f"timestamp >= {at(39_000)} and timestamp < {at(39_100)}"
    await_settled(long_log)
    pushed, some = asked(long_log, condition)
    spark.conf.set(OFF, "false")
    try:
        kept, full = asked(long_log, condition)
    finally:
        spark.conf.set(OFF, "true")
    assert pushed == kept == list(range(39_000, 39_100))
    assert [each.split()[:2] for each in some.pushed] == [["timestamp", ">="], ["timestamp", "<"]]
    assert full.pushed == ()
    assert some.log_bytes >= full.log_bytes * 0.99, "no header is trusted"
    again, little = asked(long_log, condition)
    assert again == pushed
    assert little.bytes_read * 10 < full.bytes_read, "the times of all records were checked before"
    for bounds in (condition, f"timestamp between {at(39_000)} and {at(39_099)}"):
        sure, less = asked(long_log, bounds, timestampDisorderMs=0)
        assert sure == list(range(39_000, 39_100))
        assert less.bytes_read * 20 < full.bytes_read
    of_offsets, few = asked(long_log, "offset > 12000 and offset <= 12010 and topic = 'long' and partition in (0, 3)")
    assert of_offsets == list(range(12_001, 12_011))
    assert few.bytes_read * 20 < full.bytes_read
    assert asked(long_log, "topic = 'other'")[1].log_bytes == 0


def test_conditions_are_of_one_query(segments, spark):
    """Spark would give the rows of one condition to all queries of a DataFrame."""
    frame = segments(GOLDEN)
    every = frame.groupBy("topic").count().collect()
    of_topic = dict(map(tuple, every))
    one, other = sorted(of_topic)[:2]
    assert frame.where(f"topic = '{one}'").count() == of_topic[one]
    assert frame.count() == sum(of_topic.values())
    both = frame.where(f"topic = '{one}'").union(frame.where(f"topic = '{other}'"))
    assert dict(map(tuple, both.groupBy("topic").count().collect())) == {name: of_topic[name] for name in (one, other)}
    frame.createOrReplaceTempView("conditions")
    assert spark.table("conditions").where(f"topic = '{other}'").count() == of_topic[other]
    assert spark.table("conditions").count() == sum(of_topic.values())


@pytest.mark.thorough
def test_out_of_order_times_lose_nothing(asked, tmp_path, write_partition):
    """Times that jump back and forth by hours, in batches of different sizes: both bounds, with and without indexes."""
    from kidx.records import build_batch

    times = [(n * 7_919_000) % 86_400_000 + n * 1000 for n in range(3000)]
    batches, base = [], 0
    while base < len(times):
        size = 1 + base % 7
        records = [(time, b"k", b"v" * 50) for time in times[base : base + size]]
        batches.append((base, build_batch(records, base_offset=base)))
        base += len(records)
    half = len(batches) // 2
    root = write_partition(tmp_path / "log" / "t-0", [batches[:half], batches[half:]], interval=500).parent
    for least, largest in ((20_000_000, 21_000_000), (80_000_000, 90_000_000), (0, 5000)):
        expected = [n for n, time in enumerate(times) if least <= time < largest]
        condition = f"timestamp >= timestamp_millis({least}) and timestamp < timestamp_millis({largest})"
        assert asked(root, condition)[0] == expected
        assert asked(root, condition, timestampDisorderMs=86_400_000)[0] == expected


@pytest.fixture(scope="module")
def lying_log(tmp_path_factory):
    """Write a log with batches of every kind, and with every lie in their headers."""
    root = tmp_path_factory.mktemp("lying")
    batches = [
        (kind, [number % 40, (number * 7) % 40], lie)
        for number, (kind, lie) in enumerate(product(KINDS, (None, -1, 0, 20, 1000)))
    ]
    write_log(root / "t-0", [batches[:25], batches[25:]])
    write_log(root / "t-1", [batches[10:40]])
    write_log(root / "u-0", [[("plain", [5, BEYOND], None)]])
    return root


@pytest.mark.thorough
@pytest.mark.parametrize(
    "condition",
    [
        "timestamp >= timestamp_millis(6)",
        "timestamp < timestamp_millis(6)",
        "timestamp between timestamp_millis(7) and timestamp_millis(20)",
        "timestamp = timestamp_millis(21)",
        "timestamp in (timestamp_millis(3), timestamp_millis(30))",
        "timestamp is null or timestamp > timestamp_millis(38)",
        "timestamp <= timestamp_micros(20500) and offset >= 7 and offset < 50 and partition = 0",
        "not timestamp > timestamp_millis(12) and topic in ('t', 'x')",
        "timestamp > timestamp '9999-12-31 00:00:00'",
    ],
)
def test_pushed_equals_not_pushed(condition, lying_log, segments, spark):
    """As ``unit/test_spark_conditions.py``, through Spark."""

    def rows(isolation):
        frame = segments(lying_log, isolationLevel=isolation, pushDown=True).where(condition)
        return sorted((row.topic, row.partition, row.offset) for row in frame.collect())

    for isolation in ("read_uncommitted", "read_committed"):
        pushed = rows(isolation)
        spark.conf.set(OFF, "false")
        try:
            assert pushed == rows(isolation)
        finally:
            spark.conf.set(OFF, "true")


@pytest.mark.thorough
def test_big_segments_are_cut_evenly_where_batches_begin(segments, asked, long_log):
    frame = segments(long_log, maxPartitionBytes=150_000)
    from pyspark.sql.functions import spark_partition_id

    sizes = [row["count"] for row in frame.groupBy(spark_partition_id()).count().collect()]
    assert len(sizes) >= 25
    assert max(sizes) < 2 * min(sizes)
    assert asked(long_log, maxPartitionBytes=150_000)[0] == list(range(40_000))
    assert segments(long_log, minPartitions=9).rdd.getNumPartitions() >= 9
