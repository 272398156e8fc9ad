"""Conditions of Spark's plans, and what they leave to read."""

from __future__ import annotations

import tempfile
from datetime import UTC, datetime, timedelta
from pathlib import Path

import duckdb
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from lying_logs import BEYOND, SEGMENTS, write_log
from pyspark.sql import datasource as spark

import kidx
from kidx.records import Codec, TimestampType, build_batch, iter_batches
from kidx.tables.predicates import Predicates, predicates_of

# -- Filters that Spark pushes down, as bounds on offsets and milliseconds: never tighter than the filter ----------


COLUMNS = {"topic": "topic", "partition": "partition", "offset": "offset", "timestamp": "timestamp"}
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def at(microseconds):
    return EPOCH + timedelta(microseconds=microseconds)


def of(*filters):
    return predicates_of(filters, COLUMNS)


@pytest.mark.parametrize(
    ("filters", "expected"),
    [
        ([spark.EqualTo(("topic",), "a")], Predicates(topics=frozenset("a"))),
        ([spark.In(("topic",), ("a", "b")), spark.In(("topic",), ("b", "c"))], Predicates(topics=frozenset("b"))),
        ([spark.In(("partition",), (1, 2))], Predicates(partitions=frozenset({1, 2}))),
        (
            [spark.GreaterThan(("offset",), 5), spark.LessThanOrEqual(("offset",), 9)],
            Predicates(min_offset=6, max_offset=9),
        ),
        ([spark.In(("offset",), (7, 3, 5))], Predicates(min_offset=3, max_offset=7)),
        ([spark.GreaterThanOrEqual(("timestamp",), at(1500))], Predicates(min_time=2)),
        ([spark.GreaterThanOrEqual(("timestamp",), at(2000))], Predicates(min_time=2)),
        ([spark.GreaterThan(("timestamp",), at(2000))], Predicates(min_time=3)),
        ([spark.LessThan(("timestamp",), at(2000))], Predicates(max_time=1)),
        ([spark.LessThan(("timestamp",), at(2001))], Predicates(max_time=2)),
        ([spark.LessThanOrEqual(("timestamp",), at(2999))], Predicates(max_time=2)),
        ([spark.EqualTo(("timestamp",), at(-1000))], Predicates(min_time=-1, max_time=-1)),
        ([spark.GreaterThan(("timestamp",), datetime(2026, 1, 1))], Predicates()),  # noqa: DTZ001 -- without a zone
        ([spark.Not(spark.EqualTo(("topic",), "a"))], Predicates()),
        ([spark.IsNotNull(("offset",)), spark.StringStartsWith(("topic",), "a")], Predicates()),
        ([spark.EqualTo(("value",), b"a"), spark.EqualTo(("headers", "key"), "a")], Predicates()),
    ],
)
def test_filters_become_bounds(filters, expected):
    assert of(*filters) == expected


def test_spark_offers_no_disjunction():
    """As docs/spark.md says; if this fails, conditions with ``or`` on one column can be pushed down."""
    assert not hasattr(spark, "Or")


def batch_of(times, **how):
    (batch,) = iter_batches(build_batch([(time, b"k", b"v") for time in times], **how))
    return batch


def test_only_batches_that_cannot_have_a_row_are_skipped():
    within = Predicates(min_time=100, max_time=200)
    for stated in (-1, 99, 150, 300):
        assert within.admits_batch(batch_of([150], max_timestamp=stated)), "only the records show their times"
    for time, is_within in ((99, False), (100, True), (200, True), (201, False)):
        stamped = batch_of([150, 150], timestamp_type=TimestampType.LOG_APPEND_TIME, log_append_time=time)
        assert within.admits_batch(stamped) is is_within
        assert [within.min_time <= record.timestamp <= within.max_time for record in stamped] == [is_within] * 2
    old = batch_of([150], magic=1, codec=Codec.GZIP, max_timestamp=300)
    assert within.admits_batch(old)


# -- A condition that is pushed down selects the rows that it selects above the source, whatever the headers state -


READ_COLUMNS = ("key", "value", "topic", "partition", "offset", "timestamp", "timestampType")
BOUND = st.none() | st.integers(-2, 42) | st.sampled_from([BEYOND, BEYOND + 1])
OFFSET = st.none() | st.integers(0, 60)


def above(table, offsets, times):
    """Select rows of a table by their columns."""
    microseconds = table["timestamp"].cast(pa.int64()).to_pylist()
    return table.filter(
        pa.array(
            [
                is_within(offset, offsets) and is_within(None if time is None else time // 1000, times)
                for offset, time in zip(table["offset"].to_pylist(), microseconds, strict=True)
            ],
            pa.bool_(),
        )
    )


def is_within(value, bounds):
    first, end = bounds
    if value is None:
        return first is None and end is None
    return (first is None or value >= first) and (end is None or value < end)


def ascending(bounds):
    first, end = bounds
    return bounds if first is None or end is None or first <= end else (end, first)


@settings(max_examples=settings.default.max_examples // 2)
@given(
    segments=SEGMENTS,
    offsets=st.tuples(OFFSET, OFFSET).map(ascending),
    times=st.tuples(BOUND, BOUND).map(ascending),
    columns=st.lists(st.sampled_from(READ_COLUMNS), min_size=1, unique=True),
    compiled=st.booleans(),
    isolation=st.sampled_from(["read_uncommitted", "read_committed"]),
    block=st.sampled_from([1, 200, 1 << 15]),
)
def test_pushed_equals_not_pushed(segments, offsets, times, columns, compiled, isolation, block):
    with pytest.MonkeyPatch.context() as patch, tempfile.TemporaryDirectory() as place:
        patch.setattr("kidx.tables.split_reader.worth_compiling", lambda _: compiled)
        patch.setattr("kidx.storage.SETTLED", -3600.0)  # the second query uses what the first one has checked
        patch.setattr("kidx.tables.record_times._SMALLEST_BLOCK", block)
        patch.setenv("XDG_CACHE_HOME", f"{place}/cache")
        root = f"{place}/logs"
        write_log(Path(root) / "t-0", segments)
        everything = kidx.read(root, isolation=isolation).read_all()
        expected = above(everything, offsets, times).select(columns)
        given_bounds = {"offsets": offsets, "times": times, "isolation": isolation}
        for _ in range(2):
            assert kidx.read(root, columns=columns, **given_bounds).read_all() == expected
        pushed = kidx.read(root, columns=columns, **given_bounds)  # noqa: F841 -- named in the query
        assert duckdb.sql("select * from pushed").to_arrow_table().to_pylist() == expected.to_pylist()


def test_a_header_with_the_timestamp_minus_one_hides_no_record(tmp_path):
    """As other brokers and mirrors write it."""
    write_log(tmp_path / "t-0", [[("plain", [5, 9], -1), ("plain", [7], None)]])
    assert kidx.read(tmp_path, columns=["offset"], times=(6, None)).read_all()["offset"].to_pylist() == [1, 2]
    assert kidx.read(tmp_path, columns=["offset"], times=(None, 6)).read_all()["offset"].to_pylist() == [0]


def test_a_time_that_no_column_has_is_in_no_range(tmp_path):
    write_log(tmp_path / "t-0", [[("plain", [5, BEYOND], None)]])
    assert kidx.read(tmp_path, columns=["timestamp"]).read_all()["timestamp"].null_count == 1
    assert kidx.read(tmp_path, columns=["offset"], times=(6, None)).read_all().num_rows == 0
