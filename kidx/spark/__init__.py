"""Where one machine ends: segments as Spark tables, and fleets verified.

``spark.read.format("kafka_segments").load(path)`` reads log directories with the columns and options of Spark's own
Kafka source; what there is besides ``records`` is in :mod:`kidx.tables.contents`, the options in
:mod:`kidx.tables.options`. Where kidx is installed Spark finds the source by itself; :func:`register` does it by hand::

    from kidx import spark as kidx_spark

    spark = kidx_spark.session()
    records = spark.read.format("kafka_segments").option("subscribe", "orders").load("/var/lib/kafka/data")
    records.where("timestamp >= '2026-01-01'").count()
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["register", "session"]


def register(spark: SparkSession) -> None:
    """Makes ``kafka_segments`` known to a session, wherever that comes from."""
    from kidx.spark.source import KafkaSegmentsSource  # noqa: PLC0415 -- part of an extra

    spark.dataSource.register(KafkaSegmentsSource)


def session(master: str | None = None, **settings: Any) -> SparkSession:
    """A Spark session that can read segments, also on a machine without Java: see :mod:`kidx.spark.starting`."""
    from kidx.spark.starting import start_session  # noqa: PLC0415 -- part of an extra

    return start_session(master, **settings)
