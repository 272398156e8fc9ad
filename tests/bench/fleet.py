"""Verification of many segments on Spark and by the plain parallel verifier: cost and memory of Spark.

``python3 bootstrap.py python -m tests.bench.fleet`` prints the whole table. A hundred different segments are written;
every partition has hard links to them, so both read from memory, where Spark's share is largest. The plain verifier
runs in its own process, so that it forks, just before each run on Spark, so that both find the same machine. Both have
loaded their kernels before their clocks start.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from conformance.scratch import scratch_directory
from kidx.spark import fleet
from kidx.spark.fleet.run import VERDICT_BYTES
from kidx.spark.starting import FEW_ROWS, start_session
from kidx.verify import verify_paths
from tests.bench.frame import Rows, bench, machine, processor_seconds
from tests.bench.segments import template, write_segment

SEGMENTS_A_PARTITION = 100
WARM = 1000
RECORDS, VALUE = 100, 150  # in a batch of 16 KiB, as producers send them
HEADS = (
    "segments",
    "plain, s",
    "on Spark, s",
    "more",
    "list, verify, settle, write, s",
    "jobs, stages, tasks",
    "driver + JVM, MB",
    "kept, B each (model)",
)
INTRODUCTION = """`python3 bootstrap.py python -m tests.bench.fleet --markdown reports/fleet.md` verifies the same
segments on Spark and by the plain parallel verifier, which runs just before each run on Spark. Seconds are by the
clock and, in brackets, of processor time. A hundred different segments are written, and every partition has hard
links to them, so both sides read from memory, where the share of Spark is largest. Both have loaded their kernels
before their clocks start. *kept* is the size of the listing and the verdicts per segment, measured and by the model
of `kidx/spark/fleet/run.py`."""


def make(root: Path, segments: int, size: int, each: int = SEGMENTS_A_PARTITION) -> None:
    """Make partitions with this number of segments in ``root/data``."""
    written, base = [], 0
    for number in range(min(segments, each)):
        log = write_segment(root / "written" / str(number), size, records=RECORDS, value_size=VALUE, base_offset=base)
        base += log.stat().st_size // len(template(RECORDS, VALUE)) * RECORDS
        written.append(list(log.parent.iterdir()))
    for partition in range(-(-segments // each)):
        directory = root / "data" / f"topic{partition % 10}-{partition // 10}"
        directory.mkdir(parents=True)
        (directory / "leader-epoch-checkpoint").write_text("0\n1\n0 0\n", "utf-8")
        for files in written[: segments - partition * each]:
            for path in files:
                os.link(path, directory / path.name)
    shutil.rmtree(root / "written")


def peak(process: int | str) -> float:
    """Return the largest resident size of a process in MB."""
    lines = Path(f"/proc/{process}/status").read_text("utf-8").splitlines()
    return next(int(line.split()[1]) / 1024 for line in lines if line.startswith("VmHWM:"))


def timed(work: Callable[[], Any]) -> tuple[Any, float, float]:
    """Run a piece of work; return its result, seconds by the clock, and seconds of processor time."""
    clock, processor = time.perf_counter(), processor_seconds()
    found = work()
    return found, time.perf_counter() - clock, processor_seconds() - processor


def on_spark(spark: Any, root: Path, name: str) -> tuple[Any, float, float, str]:
    """Verify on Spark; return the values of :func:`timed`, and the numbers of jobs, stages and tasks."""
    spark.sparkContext.setJobGroup(str(root / name), name)
    told = timed(lambda: fleet.verify(spark, [root / "data"], out=root / "out", run_id=name))
    tracker = spark.sparkContext.statusTracker()
    jobs = tracker.getJobIdsForGroup(str(root / name))
    stages = [stage for job in jobs for stage in tracker.getJobInfo(job).stageIds]
    tasks = sum(info.numTasks for info in map(tracker.getStageInfo, stages) if info is not None)
    return *told, f"{len(jobs)}, {len(stages)}, {tasks}"


def plain(given: argparse.Namespace) -> bool:
    """With ``--plain``, print the values that :func:`plain_verifier` reads."""
    if given.plain is not None:
        importlib.import_module("kidx.scan.batch_kernels")
        found, *seconds = timed(lambda: verify_paths([given.plain], processes=len(os.sched_getaffinity(0))))
        print(json.dumps([len(found.files), [str(finding) for finding in found.findings], *seconds]))  # noqa: T201
    return given.plain is not None


def plain_verifier(data: Path) -> Any:
    """Run the plain verifier; return its number of files, findings, seconds by the clock, and of processor time."""
    line = [sys.executable, "-m", "tests.bench.fleet", "--plain", str(data)]
    return json.loads(subprocess.run(line, capture_output=True, text=True, check=True).stdout)


def measure(spark: Any, root: Path, segments: int) -> list[str]:
    """Measure one row of the table."""
    files, findings, clock, processor = plain_verifier(root / "data")
    result, *seconds, work = on_spark(spark, root, "bench")
    assert result.summary.files == files
    assert [str(finding) for finding in result.findings()] == findings
    kept = [
        path.stat().st_size for table in ("listing", "verdicts") for path in (root / "out" / table).rglob("*.parquet")
    ]
    jvm = spark.sparkContext._gateway.proc.pid
    return [
        f"{segments:,}",
        f"{clock:.1f} ({processor:.1f})",
        f"{seconds[0]:.1f} ({seconds[1]:.1f})",
        f"{seconds[0] / clock - 1:+.0%} ({seconds[1] / processor - 1:+.0%})",
        ", ".join(f"{step:.1f}" for step in result.seconds.values()),
        work,
        f"{peak(os.getpid()):.0f} + {peak(jvm):.0f}",
        f"{sum(kept) / segments:.0f} ({VERDICT_BYTES})",
    ]


def rows(given: argparse.Namespace) -> Rows:
    """Yield a row for each number of segments."""
    yield f"Segments of {given.kilobytes:,} KiB; {machine('pyspark', 'pyarrow')}."
    numbers = given.segments or [1000, 4000, 10_000, 20_000]
    with scratch_directory() as scratch:
        for segments in dict.fromkeys((WARM, *numbers)):
            make(scratch / str(segments), segments, given.kilobytes << 10)
        cores = len(os.sched_getaffinity(0))
        spark, *start = timed(lambda: start_session(f"local[{cores},4]", local_settings=FEW_ROWS))
        _, *warm, _ = on_spark(spark, scratch / str(WARM), "warm")
        yield (
            f"Start of Spark: {start[0]:.1f} s ({start[1]:.1f} s); first run, with {WARM:,} segments:"
            f" {warm[0]:.1f} s ({warm[1]:.1f} s)."
        )
        for segments in numbers:
            yield measure(spark, scratch / str(segments), segments)
        spark.stop()


if __name__ == "__main__":
    sizes = {"segments": [int], "kilobytes": (1024, "size of each segment's log")}
    hidden = (Path, argparse.SUPPRESS)
    bench(__doc__, HEADS, rows, "Verification of a fleet on Spark", INTRODUCTION, apart=plain, plain=hidden, **sizes)
