"""Standalone cluster with two workers: a fleet of many segments under one root, and one large segment.

``python3 bootstrap.py python -m tests.bench.cluster --markdown FILE``. The fleet is listed, verified, and
read with a condition; peak memory is of the driver, which has no executor in its process. The large segment is read
whole, with one core and with two; seconds are the second of two reads.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from conformance.scratch import scratch_directory
from kidx.spark import fleet, session
from tests.bench.fleet import make, peak
from tests.bench.frame import Rows, bench, machine
from tests.bench.segments import FIRST_TIMESTAMP, write_segment
from tests.support.standalone import Standalone, environment

ROOT = Path(__file__).parents[2]
HEADS = ("what", "where", "s", "result")
INTRODUCTION = """Made by `python3 bootstrap.py python -m tests.bench.cluster`.

A standalone master with one or two workers of one core and 1 GB each, and a driver in a separate process, are on one
machine. Segments of the fleet are hard links, a hundred in a partition, under one root. The large segment is read whole
(`sum(length(value))`), the second of two times."""


def on_fleet(spark: Any, root: Path) -> list[list[str]]:
    """Verify a fleet, and read 1 % of its time; return rows of the table."""
    found = fleet.verify(spark, [root / "data"], out=root / "out", run_id="first")
    steps = [[step, f"{seconds:.1f}"] for step, seconds in found.seconds.items()]
    tasks = {step: "" for step, _ in steps} | {"verify": f"{found.verdict}, {found.summary.segments:,} segments"}
    rows = [[f"fleet: {step}", "", seconds, tasks[step]] for step, seconds in steps]
    segments = spark.read.format("kafka_segments").options(pushDown=True, minPartitions=8)
    hour = segments.load(str(root / "data")).where(
        f"timestamp >= timestamp_millis({FIRST_TIMESTAMP}) and timestamp < timestamp_millis({FIRST_TIMESTAMP + 2})"
    )
    begun = time.perf_counter()
    number = hour.count()
    rows.append(["fleet: read 2 ms of each segment", "", f"{time.perf_counter() - begun:.1f}", f"{number:,} records"])
    jvm = spark.sparkContext._gateway.proc.pid
    rows.append(["driver's peak, Python + JVM", "", "", f"{peak('self'):.0f} + {peak(jvm):.0f} MB"])
    return rows


def on_segment(spark: Any, root: Path) -> list[list[str]]:
    """Read one segment twice; return a row of the table."""
    cores = spark.sparkContext.defaultParallelism
    for _ in range(2):
        rows = spark.read.format("kafka_segments").option("minPartitions", 2 * cores).load(str(root / "large"))
        begun = time.perf_counter()
        (found,) = rows.selectExpr("sum(length(value))").first()
        seconds = time.perf_counter() - begun
    tasks = rows.rdd.getNumPartitions()
    return [["large segment", "", f"{seconds:.1f}", f"{found:,} bytes of values, {tasks} tasks"]]


def ask(what: str, master: str, root: Path) -> list[list[str]]:
    """Run one of the above in its own driver."""
    line = [sys.executable, "-m", "tests.bench.cluster", "--do", what, "--master", master, "--root", str(root)]
    answer = subprocess.run(line, stdout=subprocess.PIPE, text=True, check=True, cwd=ROOT).stdout
    return json.loads(answer.splitlines()[-1])  # type: ignore[no-any-return]


def do(given: argparse.Namespace) -> bool:
    """With ``--do``, print the rows that :func:`ask` reads."""
    if given.do:
        os.environ["PYSPARK_PYTHON"] = sys.executable
        settings = {"driver__host": "127.0.0.1", "driver__memory": "460m", "executorEnv__PYTHONPATH": str(ROOT)}
        spark = session(given.master, **{f"spark__{name}": value for name, value in settings.items()})
        print(json.dumps((on_fleet if given.do == "fleet" else on_segment)(spark, Path(given.root))))  # noqa: T201
        spark.stop()
    return bool(given.do)


def rows(given: argparse.Namespace) -> Rows:
    """Yield rows of the local master and of clusters."""
    yield f"{given.segments:,} segments of {given.kilobytes} KiB; one of {given.megabytes:,} MiB; {machine('pyspark')}."

    def measured(what: str, master: str, name: str) -> Rows:
        for row in ask(what, master, root):
            yield [row[0], name, *row[2:]]

    with scratch_directory() as root:
        make(root, given.segments, given.kilobytes << 10)
        write_segment(root / "large" / "large-0", given.megabytes << 20, records=100, value_size=150)
        for cores in (1, 2):
            yield from measured("segment", f"local[{cores}]", f"local[{cores}]")
        with Standalone(root, environment(root, sys.executable)) as cluster:
            cluster.start_master()
            cluster.start_worker()
            yield from measured("segment", cluster.url, "one worker")
            cluster.start_worker()
            yield from measured("segment", cluster.url, "two workers")
            yield from measured("fleet", cluster.url, "two workers")


if __name__ == "__main__":
    sizes = {
        "segments": 10_000,
        "kilobytes": (64, "size of each segment's log"),
        "megabytes": (1024, "size of the large segment"),
    }
    hidden = dict.fromkeys(("do", "master", "root"), (str, argparse.SUPPRESS))
    bench(__doc__, HEADS, rows, "A standalone cluster with two workers", INTRODUCTION, apart=do, **sizes, **hidden)
