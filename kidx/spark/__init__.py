"""Segments as Spark tables, and verification of fleets, for more data than one machine can read.

``spark.read.format("kafka_segments").load(path)`` reads log directories with the columns and options of Spark's own
Kafka source. The contents other than ``records`` are in :mod:`kidx.tables.contents`, the options in
:mod:`kidx.tables.options`. If kidx is installed, Spark finds the source without further steps; :func:`register`
registers it explicitly::

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
    """Register ``kafka_segments`` with a session of any origin."""
    from pyspark.errors import AnalysisException  # noqa: PLC0415 -- part of an extra

    from kidx.spark.source import KafkaSegmentsSource  # noqa: PLC0415 -- part of an extra

    try:
        spark.dataSource.register(KafkaSegmentsSource)
    except AnalysisException as error:
        # Spark 4.0 has found the source itself, and registers nothing under a name that it has found.
        if error.getCondition() != "DATA_SOURCE_ALREADY_EXISTS":
            raise


def session(master: str | None = None, **settings: Any) -> SparkSession:
    """Return a Spark session that can read segments, also on a machine without Java: see :mod:`kidx.spark.starting`."""
    from kidx.spark.starting import start_session  # noqa: PLC0415 -- part of an extra

    return start_session(master, **settings)
