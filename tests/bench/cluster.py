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

from rich.console import Console

from conformance.scratch import scratch_directory
from kidx.spark import fleet, session
from tests.bench.fleet import make, peak
from tests.bench.segments import FIRST_TIMESTAMP, write_segment
from tests.bench.table_report import machine, print_table, write_page
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


def do(what: str, master: str, root: Path) -> None:
    os.environ["PYSPARK_PYTHON"] = sys.executable
    settings = {"driver__host": "127.0.0.1", "driver__memory": "460m", "executorEnv__PYTHONPATH": str(ROOT)}
    spark = session(master, **{f"spark__{name}": value for name, value in settings.items()})
    print(json.dumps((on_fleet if what == "fleet" else on_segment)(spark, root)))  # noqa: T201
    spark.stop()


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--segments", type=int, default=10_000)
    parser.add_argument("--kilobytes", type=int, default=64, help="size of each segment's log")
    parser.add_argument("--megabytes", type=int, default=1024, help="size of the large segment")
    parser.add_argument("--markdown", type=Path, metavar="FILE", help="write the table to a file, too")
    for name in ("do", "master", "root"):
        parser.add_argument(f"--{name}", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.do:
        do(given.do, given.master, Path(given.root))
        return
    console, rows = Console(width=160), list[list[str]]()
    where = (
        f"{given.segments:,} segments of {given.kilobytes} KiB; one of {given.megabytes:,} MiB; {machine('pyspark')}."
    )

    def measure(what: str, master: str, name: str) -> None:
        for row in ask(what, master, root):
            rows.append([row[0], name, *row[2:]])
            console.print(*rows[-1], sep="; ")

    with scratch_directory() as root:
        make(root, given.segments, given.kilobytes << 10)
        write_segment(root / "large" / "large-0", given.megabytes << 20, records=100, value_size=150)
        for cores in (1, 2):
            measure("segment", f"local[{cores}]", f"local[{cores}]")
        with Standalone(root, environment(root, sys.executable)) as cluster:
            cluster.start_master()
            cluster.start_worker()
            measure("segment", cluster.url, "one worker")
            cluster.start_worker()
            measure("segment", cluster.url, "two workers")
            measure("fleet", cluster.url, "two workers")
    print_table(console, HEADS, rows)
    if given.markdown is not None:
        write_page(given.markdown, "A standalone cluster with two workers", f"{INTRODUCTION}\n\n{where}", HEADS, rows)


if __name__ == "__main__":
    main()
