"""Many small segments on Spark and by the plain parallel verifier, side by side: what Spark costs, and what it needs.

``python3 bootstrap.py python -m tests.bench.fleet --segments 1000 --segments 10000``. The session is started, and one
partition verified by each, before the clock starts; both then do the same work on the same cores.
"""

from __future__ import annotations

import argparse
import os
import shutil
import tempfile
import time
from pathlib import Path

from rich.console import Console

from kidx.rebuild import rebuild
from kidx.records import SimpleRecord, build_batch
from kidx.spark import fleet, session
from kidx.spark.fleet.sizing import size_of
from kidx.verify import verify_paths
from tests.bench.telling import machine, processor_seconds, tell

SEGMENTS_A_PARTITION = 100
BATCHES = 8


def make(root: Path, segments: int, batch_records: int, each: int = SEGMENTS_A_PARTITION) -> None:
    """Partitions of so many segments: one is written, the others are copies of it under their own offsets."""
    template = root / "template"
    for partition in range(-(-segments // each)):
        directory = root / "data" / f"topic{partition % 10}-{partition // 10}"
        directory.mkdir(parents=True)
        for number in range(min(each, segments - partition * each)):
            base = number * BATCHES * batch_records
            made = template / f"{base:020d}"
            if not made.exists():
                made.mkdir(parents=True)
                records = [SimpleRecord(1_700_000_000_000 + base + n, b"key", b"v" * 64) for n in range(batch_records)]
                batches = [build_batch(records, base_offset=base + n * batch_records) for n in range(BATCHES)]
                log = made / f"{base:020d}.log"
                log.write_bytes(b"".join(batches))
                for path in rebuild(log, made / "indexes")[:2]:
                    path.rename(made / path.name)
                (made / "indexes").rmdir()
            for path in made.iterdir():
                shutil.copyfile(path, directory / path.name)
    shutil.rmtree(template)


def peak(process: int) -> float:
    """Largest resident size of a process, MB."""
    lines = Path(f"/proc/{process}/status").read_text("utf-8").splitlines()
    return next(int(line.split()[1]) / 1024 for line in lines if line.startswith("VmHWM:"))


def timed(work):
    """What a piece of work gives, its seconds by the clock, and of processor time."""
    clock, processor = time.perf_counter(), processor_seconds()
    found = work()
    return found, time.perf_counter() - clock, processor_seconds() - processor


def measure(segments: int, batch_records: int, spark, cores: int) -> list[str]:
    """A row of the table."""
    root = Path(tempfile.mkdtemp(prefix="kidx-fleet-"))
    try:
        make(root, segments, batch_records)
        data, out = root / "data", root / "out"
        logs = sum(path.stat().st_size for path in data.rglob("*.log"))
        fleet.verify(spark, [next(data.iterdir())], out=out, run_id="warm")
        jvm = spark.sparkContext._gateway.proc.pid
        before = peak(os.getpid()), peak(jvm)
        plain, *plain_seconds = timed(lambda: verify_paths([data], processes=cores))
        result, *seconds = timed(lambda: fleet.verify(spark, [data], out=out, run_id="bench"))
        assert result.summary.files == len(plain.files)
        assert result.findings() == plain.findings
        tables = {
            table.name: sum(path.stat().st_size for path in (table / "run_id=bench").rglob("*.parquet"))
            for table in out.iterdir()
        }
        model = size_of(plain.segments, logs)
        return [
            f"{segments:,}",
            f"{plain_seconds[0]:.1f} ({plain_seconds[1]:.1f})",
            f"{seconds[0]:.1f} ({seconds[1]:.1f})",
            f"{seconds[0] / plain_seconds[0] - 1:+.0%} ({seconds[1] / plain_seconds[1] - 1:+.0%})",
            ", ".join(f"{name} {step:.1f}" for name, step in result.seconds.items()),
            f"{len(list((out / 'verdicts/run_id=bench').glob('*.parquet')))} ({model.tasks})",
            f"{peak(os.getpid()) - before[0]:.0f} + {peak(jvm) - before[1]:.0f}",
            f"{(tables['listing'] + tables['verdicts']) / segments:.0f} ({model.kept_bytes / segments:.0f})",
        ]
    finally:
        shutil.rmtree(root, ignore_errors=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--segments", type=int, action="append")
    parser.add_argument("--batch-records", type=int, default=10)
    arguments = parser.parse_args()
    cores = len(os.sched_getaffinity(0))
    console = Console(width=200)
    console.print(f"{machine('pyspark', 'pyarrow')}; by the clock and (in brackets) of processor time")
    spark, *start = timed(lambda: session(f"local[{cores},4]"))
    console.print(f"Spark's start {start[0]:.1f} s ({start[1]:.1f} s)")
    rows = []
    for segments in arguments.segments or [1000, 4000, 10_000, 20_000]:
        rows.append(measure(segments, arguments.batch_records, spark, cores))
        console.print(*rows[-1], sep="; ")
    heads = (
        "segments",
        "plain, s",
        "on Spark, s",
        "more",
        "steps, s",
        "tasks (model)",
        "driver + JVM, MB",
        "kept, B each",
    )
    tell(console, heads, rows)
    spark.stop()


if __name__ == "__main__":
    main()
