"""Selective queries, which read a small part of the bytes, and return the same rows as reading everything."""

from __future__ import annotations

import pytest

from kidx.spark.metrics import totals

pytestmark = pytest.mark.spark

START = 1_700_000_000_000
OFF = "spark.sql.python.filterPushdown.enabled"


@pytest.fixture
def asked(segments, tmp_path):
    """Return the offsets that a query returns, and the bytes that it read."""
    number = iter(range(100))

    def ask(path, condition="true", **options):
        directory = tmp_path / f"metrics-{next(number)}"
        frame = segments(path, metrics=directory, **options).where(condition)
        return sorted(row.offset for row in frame.select("offset").collect()), totals(directory)

    return ask


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


@pytest.mark.thorough
def test_conditions_on_columns_are_pushed_down(asked, long_log, spark):
    condition = f"timestamp >= {at(39_000)} and timestamp < {at(39_100)}"
    pushed, some = asked(long_log, condition)
    spark.conf.set(OFF, "false")
    try:
        kept, full = asked(long_log, condition)
    finally:
        spark.conf.set(OFF, "true")
    assert pushed == kept == list(range(39_000, 39_100))
    assert [each.split()[:2] for each in some.pushed] == [["timestamp", ">="], ["timestamp", "<"]]
    assert full.pushed == ()
    assert some.bytes_read * 20 < full.bytes_read
    # After an upper bound older records may follow, unless an option excludes that.
    early = f"timestamp between {at(1000)} and {at(1099)}"
    unsure, more = asked(long_log, early)
    sure, less = asked(long_log, early, timestampDisorderMs=0)
    assert unsure == sure == list(range(1000, 1100))
    assert less.bytes_read * 20 < more.bytes_read
    of_offsets, few = asked(long_log, "offset > 12000 and offset <= 12010 and topic = 'long' and partition in (0, 3)")
    assert of_offsets == list(range(12_001, 12_011))
    assert few.bytes_read * 20 < full.bytes_read
    assert asked(long_log, "topic = 'other'")[1].log_bytes == 0


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


@pytest.mark.thorough
def test_big_segments_are_cut_evenly_where_batches_begin(segments, asked, long_log):
    frame = segments(long_log, maxPartitionBytes=150_000)
    from pyspark.sql.functions import spark_partition_id

    sizes = [row["count"] for row in frame.groupBy(spark_partition_id()).count().collect()]
    assert len(sizes) >= 25
    assert max(sizes) < 2 * min(sizes)
    assert asked(long_log, maxPartitionBytes=150_000)[0] == list(range(40_000))
    assert segments(long_log, minPartitions=9).rdd.getNumPartitions() >= 9
