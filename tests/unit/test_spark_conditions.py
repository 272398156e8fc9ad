"""What Spark pushes down, as bounds on offsets and milliseconds: never tighter than the filter."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from pyspark.sql import datasource as spark

from kidx.records import TimestampType, build_batch, iter_batches
from kidx.tables.conditions import Conditions, conditions_of

COLUMNS = {"topic": "topic", "partition": "partition", "offset": "offset", "timestamp": "timestamp"}
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def at(microseconds):
    return EPOCH + timedelta(microseconds=microseconds)


def of(*filters):
    return conditions_of(filters, COLUMNS)


@pytest.mark.parametrize(
    ("filters", "expected"),
    [
        ([spark.EqualTo(("topic",), "a")], Conditions(topics=frozenset("a"))),
        ([spark.In(("topic",), ("a", "b")), spark.In(("topic",), ("b", "c"))], Conditions(topics=frozenset("b"))),
        ([spark.In(("partition",), (1, 2))], Conditions(partitions=frozenset({1, 2}))),
        (
            [spark.GreaterThan(("offset",), 5), spark.LessThanOrEqual(("offset",), 9)],
            Conditions(least_offset=6, largest_offset=9),
        ),
        ([spark.In(("offset",), (7, 3, 5))], Conditions(least_offset=3, largest_offset=7)),
        ([spark.GreaterThanOrEqual(("timestamp",), at(1500))], Conditions(least_time=2)),
        ([spark.GreaterThanOrEqual(("timestamp",), at(2000))], Conditions(least_time=2)),
        ([spark.GreaterThan(("timestamp",), at(2000))], Conditions(least_time=3)),
        ([spark.LessThan(("timestamp",), at(2000))], Conditions(largest_time=1)),
        ([spark.LessThan(("timestamp",), at(2001))], Conditions(largest_time=2)),
        ([spark.LessThanOrEqual(("timestamp",), at(2999))], Conditions(largest_time=2)),
        ([spark.EqualTo(("timestamp",), at(-1000))], Conditions(least_time=-1, largest_time=-1)),
        ([spark.GreaterThan(("timestamp",), datetime(2026, 1, 1))], Conditions()),  # noqa: DTZ001 -- without a zone
        ([spark.Not(spark.EqualTo(("topic",), "a"))], Conditions()),
        ([spark.IsNotNull(("offset",)), spark.StringStartsWith(("topic",), "a")], Conditions()),
        ([spark.EqualTo(("value",), b"a"), spark.EqualTo(("headers", "key"), "a")], Conditions()),
    ],
)
def test_filters_become_bounds(filters, expected):
    assert of(*filters) == expected


def batch_of(times, **how):
    (batch,) = iter_batches(build_batch([(time, b"k", b"v") for time in times], **how))
    return batch


def test_only_batches_that_cannot_have_a_row_are_left_out():
    within = Conditions(least_time=100, largest_time=200)
    assert within.admits_batch(batch_of([150]))
    assert not within.admits_batch(batch_of([50, 99]))
    assert not within.admits_batch(batch_of([201]))
    assert within.admits_batch(batch_of([300, 150])), "a late record can be behind a larger time"
    stamped = batch_of([150, 150], timestamp_type=TimestampType.LOG_APPEND_TIME, log_append_time=300)
    assert not within.admits_batch(stamped)
