"""Filters that Spark pushes down, as bounds on offsets and milliseconds: never tighter than the filter."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from pyspark.sql import datasource as spark

from kidx.records import Codec, TimestampType, build_batch, iter_batches
from kidx.tables.predicates import Predicates, predicates_of

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
