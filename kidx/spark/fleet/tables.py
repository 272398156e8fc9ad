"""What a fleet's verification leaves under its directory, for any number of runs.

===================================== ==============================================================================
``findings/run_id=…/topic=…``         the table of findings, the very rows of ``kidx verify``
``files/run_id=…/topic=…``            a verdict on every file, with broker, size and time
``partitions/run_id=…``               what was read of every partition
``replicas/run_id=…``                 where replicas of a partition differ (:mod:`kidx.spark.fleet.replicas`)
``summary/run_id=…``                  counts by verdict, topic, release, broker and age (``by``, ``value``)
``runs/…``                            what a run was asked, what it has done so far, and its report
===================================== ==============================================================================
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

import pyarrow as pa

from kidx.verify.findings import COLUMNS, Finding, arrow_schema, in_order

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_DDL: Final = {pa.string(): "string", pa.int32(): "int", pa.int64(): "bigint", pa.timestamp("us", "UTC"): "timestamp"}

FINDINGS: Final = arrow_schema()
FILES: Final = pa.schema([
    ("path", pa.string()),
    ("topic", pa.string()),
    ("partition", pa.int32()),
    ("base_offset", pa.int64()),
    ("file", pa.string()),
    ("verdict", pa.string()),
    ("releases", pa.string()),
    ("why", pa.string()),
    ("entries", pa.int64()),
    ("size", pa.int64()),
    ("interval_least", pa.int64()),
    ("interval_most", pa.int64()),
    ("broker", pa.string()),
    ("modified", pa.timestamp("us", "UTC")),
])  # fmt: skip
PARTITIONS: Final = pa.schema([
    ("topic", pa.string()),
    ("partition", pa.int32()),
    ("path", pa.string()),
    ("broker", pa.string()),
    ("segments", pa.int64()),
    ("batches", pa.int64()),
    ("bytes_read", pa.int64()),
])  # fmt: skip
REPLICAS: Final = pa.schema([
    ("topic", pa.string()),
    ("partition", pa.int32()),
    ("path", pa.string()),
    ("other", pa.string()),
    ("offset", pa.int64()),
    ("expected", pa.string()),
    ("actual", pa.string()),
    ("message", pa.string()),
])  # fmt: skip
TABLES: Final = {"findings": FINDINGS, "files": FILES, "partitions": PARTITIONS, "replicas": REPLICAS}


def ddl(schema: pa.Schema) -> str:
    """A schema as Spark's DDL."""
    return ", ".join(f"`{field.name}` {_DDL[field.type]}" for field in schema)


def table_path(out: Path, table: str, run_id: str) -> Path:
    """Where a run's part of a table is."""
    return out / table / f"run_id={run_id}"


def read_table(spark: SparkSession, out: Path, table: str, run_id: str) -> DataFrame:
    """A run's part of a table; columns as :data:`TABLES` has them."""
    schema = TABLES[table]
    # With the schema given Spark does not take a topic called 007 for a number.
    return spark.read.schema(ddl(schema)).parquet(str(table_path(out, table, run_id))).select(*schema.names)


def findings_of(frame: DataFrame) -> list[Finding]:
    """The rows of a findings table in its order."""
    return in_order(Finding(**row.asDict()) for row in frame.select(*COLUMNS).collect())
