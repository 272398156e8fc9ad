"""``kafka_segments`` next to a source of constant batches with the same columns, in one session: the possible gain.

``python3 bootstrap.py python -m tests.bench.tables --megabytes 256``. Each query runs once, and then ``--times`` times,
in turns; medians count. Processor time covers the driver, its JVM and all workers: on a shared machine it is more
reliable than a clock. ``kidx.read`` does the same without Spark, in one process.
"""

from __future__ import annotations

import argparse
import os
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition

import kidx
from kidx.spark import session
from kidx.tables.columns import ROWS, arrow_schema, columns_in
from kidx.tables.contents import columns_of
from tests.bench.frame import Rows, bench, machine, processor_seconds
from tests.bench.segments import FIRST_TIMESTAMP, write_segment

RECORDS, VALUE = 100, 150
HEADS = ("query", "kafka_segments", "constant batches", "kidx.read, one process", "of the limit")
INTRODUCTION = """`python3 bootstrap.py python -m tests.bench.tables --markdown reports/tables.md` reads segments as
tables of Spark. *Constant batches* is a source in Python that yields the same Arrow batch again and again: the
limit of PySpark. *kidx.read* reads the same segments without Spark. Numbers are million records per second by the
clock and, in brackets, per second of processor time of the driver, its JVM and all workers. Medians of {times} runs
in turns."""
COLUMNS = {
    "all columns": None,
    "value": "value binary",
    "offset, timestamp": "offset bigint, timestamp timestamp",
    "offset": "offset bigint",
}


class Constant(DataSource):
    """Source that yields the same batch again and again, as fast as Spark takes it."""

    @classmethod
    def name(cls) -> str:
        return "constant_batches"

    def schema(self) -> str:
        return str(self.options.get("columns") or columns_of("records"))

    def reader(self, schema: Any) -> ConstantReader:
        del schema
        return ConstantReader(self.schema(), int(self.options["rows"]), int(self.options["tasks"]))


class ConstantReader(DataSourceReader):
    def __init__(self, columns: str, rows: int, tasks: int) -> None:
        self.columns, self.rows, self.tasks = columns, rows, tasks

    def partitions(self) -> list[InputPartition]:
        return [InputPartition(number) for number in range(self.tasks)]

    def read(self, partition: Any) -> Iterator[Any]:
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


def medians(works: list[Callable[[], Any]], times: int) -> list[tuple[float, ...]]:
    """Return the median seconds of each piece of work by the clock, and of processor time; they run in turns."""
    taken: list[list[tuple[float, float]]] = [[] for _ in works]
    for turn in range(times + 1):
        for work, seconds in zip(works, taken, strict=True):
            clock, processor = time.perf_counter(), processor_seconds()
            work()
            if turn:
                seconds.append((time.perf_counter() - clock, processor_seconds() - processor))
    return [tuple(statistics.median(each) for each in zip(*seconds, strict=True)) for seconds in taken]


def read_all(place: str, columns: list[str] | None) -> int:
    """Read segments without Spark; return the number of records."""
    return sum(batch.num_rows for batch in kidx.read(place, columns=columns))


def measured(given: argparse.Namespace) -> Rows:
    """Yield a row for each query."""
    tasks = os.cpu_count() or 1
    with tempfile.TemporaryDirectory() as place:
        for number in range(tasks):
            size = (given.megabytes << 20) // tasks
            write_segment(Path(place) / f"t-{number}", size, records=RECORDS, value_size=VALUE)
        count = read_all(place, ["offset"])
        yield f"{count:,} records of {VALUE + 8} bytes, {tasks} tasks; {machine('pyspark', 'pyarrow')}."
        spark = session()
        spark.dataSource.register(Constant)
        for label, columns in COLUMNS.items():
            ours = spark.read.format("kafka_segments").option("maxPartitionBytes", 1 << 40)
            theirs = spark.read.format("constant_batches").options(rows=count, tasks=tasks, columns=columns or "")
            tables = (ours.schema(columns) if columns else ours).load(place), theirs.load()
            works: list[Callable[[], Any]] = [each.write.format("noop").mode("overwrite").save for each in tables]
            names = [column.split()[0] for column in columns.split(", ")] if columns else None
            works.append(partial(read_all, place, names))
            if label == "offset":
                works += [each.count for each in tables]
            found = medians(works, given.times)
            yield told(label, count, found[:3])
            if found[3:]:
                yield told("count()", count, found[3:])
        spark.stop()


def told(label: str, count: int, found: list[tuple[float, ...]]) -> list[str]:
    """Return a row of the table."""
    rates = [f"{count / clock / 1e6:.2f} ({count / processor / 1e6:.2f})" for clock, processor in found]
    clock, processor = (theirs / ours for ours, theirs in zip(*found[:2], strict=True))
    return [label, *rates, *[""] * (3 - len(rates)), f"{clock:.0%} ({processor:.0%})"]


if __name__ == "__main__":
    bench(__doc__, HEADS, measured, "Segments as tables", INTRODUCTION, megabytes=256, times=5)
