"""Many small segments on Spark and by the plain parallel verifier, side by side: what Spark costs, and what it needs.

``python3 bootstrap.py python tests/bench/fleet.py --segments 10000``. The session is started, and one segment verified
by each worker, before the clock starts. Sizes: of the tables, and of the driver.
"""

from __future__ import annotations

import argparse
import os
import platform
import resource
import shutil
import sys
import tempfile
import time
from pathlib import Path

from rich.console import Console
from rich.table import Table

from kidx.discovery import discover
from kidx.rebuild import rebuild
from kidx.records import SimpleRecord, build_batch
from kidx.spark import fleet, session
from kidx.spark.fleet.sizing import size_of
from kidx.verify import verify_paths

SEGMENTS_A_PARTITION = 100
BATCHES = 8


def make(root: Path, segments: int, batch_records: int) -> None:
    """Partitions of 100 segments each: one is written, the others are copies of it under their own offsets."""
    template = root / "template"
    for partition in range(-(-segments // SEGMENTS_A_PARTITION)):
        directory = root / "data" / f"topic{partition % 10}-{partition // 10}"
        directory.mkdir(parents=True)
        for number in range(min(SEGMENTS_A_PARTITION, segments - partition * SEGMENTS_A_PARTITION)):
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


def resident() -> float:
    """Largest resident size of this process, MB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--segments", type=int, default=10_000)
    parser.add_argument("--batch-records", type=int, default=10)
    arguments = parser.parse_args()
    cores = len(os.sched_getaffinity(0))
    root = Path(tempfile.mkdtemp(prefix="kidx-fleet-"))
    try:
        make(root, arguments.segments, arguments.batch_records)
        data = root / "data"
        size = sum(path.stat().st_size for path in data.rglob("*") if path.is_file())
        started = time.monotonic()
        found = discover([data])
        listing = time.monotonic() - started
        verify_paths([next(data.iterdir())], processes=1)
        started = time.monotonic()
        plain = verify_paths(found, processes=cores)
        plain_seconds = time.monotonic() - started
        started = time.monotonic()
        spark = session(f"local[{cores},4]")
        fleet.verify(spark, [next(data.iterdir())], out=root / "out", run_id="warm")
        start = time.monotonic() - started
        before = resident()
        result = fleet.verify(spark, [data], out=root / "out", run_id="bench")
        assert result.summary.files == len(plain.files)
        assert result.findings() == plain.findings
        sizes = {
            table.name: sum(path.stat().st_size for path in (table / "run_id=bench").rglob("*.parquet"))
            for table in (root / "out").iterdir()
        }
        kept = sizes["listing"] + sizes["verdicts"]
        tables = sum(sizes.values()) - kept
        on_spark = sum(result.seconds.values())
        logs = sum(path.stat().st_size for path in data.rglob("*.log"))
        model = size_of(plain.segments, logs)
        table = Table(title=f"{platform.processor() or platform.machine()}, {cores} cores, {sys.version.split()[0]}")
        table.add_column("figure")
        table.add_column("measured", justify="right")
        table.add_column("model", justify="right")
        for name, value, *expected in (
            ("segments", f"{plain.segments:,}"),
            ("bytes", f"{size:,}"),
            ("listing", f"{listing:.2f} s", f"{model.listing:.2f} s"),
            ("plain parallel verifier", f"{plain_seconds:.2f} s"),
            ("Spark's start, first run included", f"{start:.2f} s"),
            *((f"on Spark: {step}", f"{seconds:.2f} s") for step, seconds in result.seconds.items()),
            ("on Spark", f"{on_spark:.2f} s"),
            ("verifying on Spark / plain", f"{result.seconds['verify'] / plain_seconds:.2f}"),
            ("all on Spark / plain", f"{on_spark / plain_seconds:.2f}"),
            ("tasks", f"{len(list((root / 'out/verdicts/run_id=bench').glob('*.parquet')))}", f"{model.tasks}"),
            ("driver, more than before", f"{resident() - before:.1f} MB", "0 MB"),
            ("kept", f"{kept:,} bytes", f"{model.kept_bytes:,} bytes"),
            ("tables", f"{tables:,} bytes", f"{model.table_bytes:,} bytes"),
        ):
            table.add_row(name, value, *expected)
        Console().print(table)
        spark.stop()
    finally:
        shutil.rmtree(root, ignore_errors=True)


if __name__ == "__main__":
    main()
