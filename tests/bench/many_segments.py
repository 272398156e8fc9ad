"""Verification of 20,000 segments in bounded memory: ``python -m tests.bench.many_segments``.

Prints the seconds that ``kidx verify`` takes, and the largest resident set of any of its processes. With ``--segments
10000 --partitions 10000 --bytes 60000``, it is a broker of 10,000 partitions with one segment each; ``--indexes empty``
and ``--indexes missing`` are of a broker after a power failure, and of a copy of the logs alone.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from pathlib import Path

from rich.console import Console

from conformance.scratch import scratch_directory
from tests.bench.segments import template, write_segment


def make(directory: Path, segments: int, partitions: int, segment_bytes: int = 6000, indexes: str = "sound") -> int:
    """Write consecutive segments of a few batches in each partition; return the bytes of their logs."""
    size = 0
    ends = []
    for partition in range(partitions):
        base = 0
        for _ in range(segments // partitions):
            log = write_segment(
                directory / f"many-topic-{partition}", segment_bytes, records=4, value_size=300, base_offset=base,
                index_interval_bytes=2000,
            )  # fmt: skip
            size += log.stat().st_size
            for suffix in (".index", ".timeindex") if indexes != "sound" else ():
                log.with_suffix(suffix).write_bytes(b"")
                if indexes == "missing":
                    log.with_suffix(suffix).unlink()
            base += log.stat().st_size // len(template(4, 300)) * 4
        (log.parent / "leader-epoch-checkpoint").write_text("0\n1\n0 0\n", "utf-8")
        ends.append(f"many-topic {partition} {base}\n")
    (directory / "meta.properties").write_text("version=0\nbroker.id=1\ncluster.id=many\n", "utf-8")
    for name in ("recovery-point-offset-checkpoint", "replication-offset-checkpoint"):
        (directory / name).write_text(f"0\n{partitions}\n{''.join(ends)}", "utf-8")
    (directory / ".kafka_cleanshutdown").write_text('{"version":0,"brokerEpoch":1}', "utf-8")
    return size


PROGRAM = """
import resource, sys
from kidx.cli import main
try:
    main()
finally:
    who = max(resource.getrusage(w).ru_maxrss for w in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    used = sum(sum(resource.getrusage(w)[:2]) for w in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    print(f"{used:.1f} s of processor time; peak resident set {who / 1024:.0f} MiB", file=sys.stderr)
"""


def main() -> None:
    """Measure, and print one line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--segments", type=int, default=20_000)
    parser.add_argument("--partitions", type=int, default=20)
    parser.add_argument("--bytes", type=int, default=6000)
    parser.add_argument("--indexes", choices=("sound", "empty", "missing"), default="sound")
    arguments = parser.parse_args()
    with scratch_directory() as scratch:
        size = make(scratch, arguments.segments, arguments.partitions, arguments.bytes, arguments.indexes)
        started = time.perf_counter()
        done = subprocess.run(
            [sys.executable, "-c", PROGRAM, "verify", str(scratch)], capture_output=True, text=True, check=False
        )
        seconds = time.perf_counter() - started
    console = Console(width=140, highlight=False)
    console.print(done.stdout.splitlines()[-1], done.stderr.splitlines()[-1], sep="; ")
    console.print(f"{size / 1e6:.0f} MB of logs in {seconds:.1f} s, exit code {done.returncode}")


if __name__ == "__main__":
    main()
