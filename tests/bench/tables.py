"""``kafka_segments`` beside a source of constant batches with the same columns, in one session: what is left to gain.

``python3 bootstrap.py python -m tests.bench.tables --megabytes 256``. Each query is performed once, and then as
often as ``--times``; the best counts. ``kidx.read`` does the same without Spark, in one process.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from pathlib import Path

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from rich.console import Console

import kidx
from kidx.spark import session
from kidx.tables.columns import ROWS, arrow_schema, columns_in
from kidx.tables.contents import columns_of
from tests.bench.segments import FIRST_TIMESTAMP, write_segment
from tests.bench.telling import machine, tell

RECORDS, VALUE = 100, 150
COLUMNS = {"all columns": None, "offset, timestamp": "offset bigint, timestamp timestamp", "offset": "offset bigint"}


class Constant(DataSource):
    """The same batch again and again, as fast as Spark takes it."""

    @classmethod
    def name(cls):
        return "constant_batches"

    def schema(self):
        return self.options.get("columns") or columns_of("records")

    def reader(self, schema):
        del schema
        return ConstantReader(self.schema(), int(self.options["rows"]), int(self.options["tasks"]))


class ConstantReader(DataSourceReader):
    def __init__(self, columns, rows, tasks):
        self.columns, self.rows, self.tasks = columns, rows, tasks

    def partitions(self):
        return [InputPartition(number) for number in range(self.tasks)]

    def read(self, partition):
        del partition
        values = {
            "key": b"00000001",
            "value": b"v" * VALUE,
            "topic": "t",
            "partition": 0,
            "offset": 7,
            "timestamp": FIRST_TIMESTAMP * 1000,
            "timestampType": 0,
        }
        schema = arrow_schema(columns_in(self.columns))
        one = pa.RecordBatch.from_pylist([{name: values[name] for name in schema.names}] * ROWS, schema)
        for _ in range(-(-self.rows // self.tasks // ROWS)):
            yield one


def best(perform, times):
    perform()
    seconds = []
    for _ in range(times):
        started = time.perf_counter()
        perform()
        seconds.append(time.perf_counter() - started)
    return min(seconds)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--megabytes", type=int, default=256)
    parser.add_argument("--times", type=int, default=3)
    arguments = parser.parse_args()
    tasks = os.cpu_count() or 1
    with tempfile.TemporaryDirectory() as place:
        for number in range(tasks):
            size = (arguments.megabytes << 20) // tasks
            write_segment(Path(place) / f"t-{number}", size, records=RECORDS, value_size=VALUE)
        count = sum(batch.num_rows for batch in kidx.read(place, columns=["offset"]))
        spark = session()
        spark.dataSource.register(Constant)
        rows = []
        for label, columns in COLUMNS.items():
            ours = spark.read.format("kafka_segments").option("maxPartitionBytes", 1 << 40)
            theirs = spark.read.format("constant_batches").options(rows=count, tasks=tasks, columns=columns or "")
            ours, theirs = (ours.schema(columns) if columns else ours).load(place), theirs.load()
            noop = [each.write.format("noop").mode("overwrite") for each in (ours, theirs)]
            names = [column.split()[0] for column in columns.split(", ")] if columns else None
            taken = (
                best(noop[0].save, arguments.times),
                best(noop[1].save, arguments.times),
                best(lambda names=names: sum(b.num_rows for b in kidx.read(place, columns=names)), arguments.times),
            )
            rows.append([label, *(f"{count / seconds / 1e6:.2f}" for seconds in taken), f"{taken[1] / taken[0]:.0%}"])
        counting = spark.read.format("kafka_segments").schema("offset bigint").load(place)
        rows.append(["count()", f"{count / best(counting.count, arguments.times) / 1e6:.2f}", "", "", ""])
        spark.stop()
    heads = ["query", "kafka_segments", "constant batches", "kidx.read, one process", "of the limit"]
    console = Console()
    console.print(
        f"{count:,} records of {VALUE + 8} bytes, {tasks} tasks, million records a second; {machine('pyspark')}"
    )
    tell(console, heads, rows)


if __name__ == "__main__":
    main()
