"""Speed of verification, lookup and decoding, compared with Kafka and the machine: ``python -m tests.bench.verify``.

Every row compares two ways of doing the same work on the same file in one run. It also compares both with reading the
bytes once and computing their CRC-32C with google-crc32c on one core. ``--small`` takes a tenth of the data.

The input is made by :mod:`tests.bench.segments`, whose bytes a test compares with a real client. Files are read once
before anything is measured, because the work is compared, not the disk.
"""

from __future__ import annotations

import argparse
import os
import resource
import shutil
import statistics
import time
from collections.abc import Callable
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

import google_crc32c
import numpy as np

from conformance.scratch import scratch_directory
from kidx import OffsetIndex
from kidx.java import find_java
from kidx.scan import BulkLookup, decode_records, read_index
from kidx.verify import verify_segment
from tests.bench.frame import Rows, bench, machine
from tests.bench.segments import template, write_segment

DUMP_RELEASE = "4.2.1"
"""The newest release that is fast enough: from 4.3 on, checking a .timeindex reads the log for every entry."""

RELEASE = "4.4.0"
LOOKUPS = 1_000_000
SINGLE = 20_000
ENTRIES = 1_310_720
WARM = 1024

INTRODUCTION = """Ratios of one run of `python3 bootstrap.py python -m tests.bench.verify --markdown
reports/speed.md`. Both sides do the same work on the same file, without the start of a JVM and without the disk.
The physical limit of a verification is reading the bytes once and computing their CRC-32C with google-crc32c on one
core. Lookups search an index of 1.3 million entries. *Recent* lookups search its last 1,024 entries, as most of a
broker's lookups do. Times are per lookup and per record. Records have 100 bytes, and are returned with offset,
timestamp, key, value and headers."""


class Row(NamedTuple):
    """One comparison.

    Attributes:
        work, against: The compared kinds of work.
        unit: The unit of both times, ``s`` or ``ns``.
        ours, theirs: The times.
        reach: The required ratio of the times; or the limit for our time, see ``absolute``.
        note: The speed, and the machine's speed.
        absolute: True if ``reach`` is a time.
    """

    work: str
    against: str
    unit: str
    ours: float
    theirs: float
    reach: float
    note: str = ""
    absolute: bool = False

    def cells(self) -> list[str]:
        """Return the cells of the row in the table."""
        digits = 3 if self.unit == "s" else 0
        times = [f"{value:,.{digits}f} {self.unit}" for value in (self.ours, self.theirs)]
        reach = f"≤ {self.reach:,.0f} {self.unit}" if self.absolute else f"≥ {self.reach:g} ×"
        met = self.ours <= self.reach if self.absolute else self.theirs / self.ours >= self.reach
        ratio = f"{self.theirs / self.ours:.2f} ×"
        return [self.work, self.against, *times, ratio, reach, "yes" if met else "no", self.note]


HEADS = ("work", "against", "ours", "theirs", "ratio", "reach", "met", "of the physical limit")


def busy(work: Callable[[], object], rounds: int) -> float:
    """Return the median of some runs in seconds of processor time, which other programs hardly disturb."""
    seconds = []
    for _ in range(rounds):
        started = time.process_time()
        work()
        seconds.append(time.process_time() - started)
    return statistics.median(seconds)


def limit(paths: list[Path]) -> None:
    """Read files once and compute their CRC-32C: nothing can be verified faster on one core."""
    crc = 0
    for path in paths:
        descriptor = os.open(path, os.O_RDONLY)
        while data := os.read(descriptor, 1 << 20):
            crc = google_crc32c.extend(crc, data)
        os.close(descriptor)


class Kafka:
    """Kafka's own classes, in a JVM of this process; its start and its warm-up are not measured."""

    def __init__(self) -> None:
        import jpype

        self.jpype = jpype
        jpype.startJVM(
            str(find_java().libjvm), "-Xmx2g", "-XX:+UseSerialGC", "-Xrs", "-Dslf4j.internal.verbosity=ERROR",
            convertStrings=False, interrupt=False,
        )  # fmt: skip
        from conformance.implementations.jvm.virtual_machine import class_loader, release_loader

        self.class_loader, self.release_loader = class_loader, release_loader
        stream, null = jpype.JClass("java.io.PrintStream"), jpype.JClass("java.io.OutputStream").nullOutputStream()
        for name in ("setOut", "setErr"):
            getattr(jpype.JClass("java.lang.System"), name)(stream(null))

    def dump(self, log: Path) -> None:
        """Run ``kafka-dump-log`` on the three files; its output is discarded."""
        loader = self.release_loader(DUMP_RELEASE, "log")
        self.jpype.JClass("java.lang.Thread").currentThread().setContextClassLoader(loader)
        files = ",".join(str(log.with_suffix(suffix)) for suffix in (".log", ".index", ".timeindex"))
        self.jpype.JClass("kafka.tools.DumpLogSegments", loader=loader).main(["--files", files])

    def recover(self, log: Path, scratch: Path) -> None:
        """Run ``LogSegment.recover``, which rebuilds the indexes, on a second name of the log."""
        from conformance.implementations.jvm.segment import JvmSegment
        from conformance.operations import Operation

        shutil.rmtree(scratch, ignore_errors=True)
        scratch.mkdir()
        os.link(log, scratch / log.name)
        segment = JvmSegment(RELEASE)
        segment.begin(scratch)
        opened = segment.perform(Operation("open_segment", (0, 4096, 10 << 20, 0, True, 0, False, "", 0)))
        done = segment.perform(Operation("recover_segment"))
        segment.end()
        assert not opened.outcome.error, opened
        assert not done.outcome.error, done

    def looper(self, scratch: Path) -> Callable[[Path, np.ndarray], float]:
        """Return a function that looks up many offsets inside the JVM: nanoseconds of one."""
        from conformance.implementations.jvm.driver import compile_java

        compile_java([Path(__file__).with_name("LookupLoop.java")], [], scratch)
        loop = self.jpype.JClass("bench.LookupLoop", loader=self.class_loader([scratch]))
        index_class = self.jpype.JClass(
            "org.apache.kafka.storage.internals.log.OffsetIndex", loader=self.release_loader(RELEASE, "index")
        )

        def run(path: Path, targets: np.ndarray) -> float:
            file = self.jpype.JClass("java.io.File")(str(path))
            index = index_class(file, 0, path.stat().st_size, False)
            try:
                return float(loop.run(index, self.jpype.JArray(self.jpype.JLong)(targets)) / len(targets))
            finally:
                index.close()

        return run


def verify_rows(kafka: Kafka, scratch: Path, rounds: int, sizes: dict[str, tuple[Any, ...]]) -> list[Row]:
    """Measure the verification of a log and its indexes."""
    rows: list[Row] = []
    for name, (size, records, value_size, reach) in sizes.items():
        log = write_segment(scratch / f"{len(rows)}-0", size, records=records, value_size=value_size)
        paths = [log.with_suffix(suffix) for suffix in (".log", ".index", ".timeindex")]
        verify_segment(log)
        spent = busy(partial(verify_segment, log), rounds)
        floor = busy(partial(limit, paths), rounds)
        total = sum(path.stat().st_size for path in paths)
        speed = f"{total / spent / 1e9:.1f} of {total / floor / 1e9:.1f} GB/s"
        small = log.parent.with_name("warm-0")
        warm = write_segment(small, min(size, 5 << 20), records=records, value_size=value_size)
        for _ in range(3):
            kafka.dump(warm)
            kafka.recover(warm, scratch / "recovered")
        dumped = busy(partial(kafka.dump, log), rounds)
        recovered = busy(partial(kafka.recover, log, scratch / "recovered"), rounds)
        work = f"verify {total / 1e9:.1f} GB of {name}"
        rows += [
            Row(work, f"kafka-dump-log {DUMP_RELEASE}", "s", spent, dumped, reach, speed),
            Row(work, f"LogSegment.recover {RELEASE}", "s", spent, recovered, 2, speed),
            Row(work, "reading once + CRC-32C", "s", spent, floor, 0.5, speed),
        ]
    return rows


def index_of_lookups(scratch: Path) -> tuple[Path, np.ndarray]:
    """Make an index of 10 MiB, and a million offsets to look up in it."""
    random = np.random.default_rng(1)
    keys = np.cumsum(random.integers(1, 50, ENTRIES))
    path = scratch / f"{0:020d}.index"
    np.stack([keys, np.arange(1, ENTRIES + 1) * 1500], axis=1).astype(">i4").tofile(path)
    return path, random.integers(0, keys[-1], LOOKUPS)


def lookup_rows(kafka: Kafka, scratch: Path, rounds: int) -> list[Row]:
    """Measure a million lookups in one call."""
    path, targets = index_of_lookups(scratch)
    bulk, run = BulkLookup(read_index(path, 0), 0), kafka.looper(scratch)
    rows = []
    for name, reach, wanted in (("sorted", 3, np.sort(targets)), ("random", 1, targets)):
        bulk.lookup(wanted)
        for _ in range(3):
            run(path, wanted)
        ours = busy(partial(bulk.lookup, wanted), rounds) / LOOKUPS * 1e9
        theirs = statistics.median(run(path, wanted) for _ in range(rounds))
        rows.append(Row(f"a million {name} lookups", f"OffsetIndex.lookup {RELEASE}", "ns", ours, theirs, reach))
    return rows


def single_rows(scratch: Path, rounds: int) -> list[Row]:
    """Measure single lookups, by the readable index, and by only the search, reading keys with ``struct``.

    Most lookups of a broker are for recent offsets, which are in the warm section of the index (KAFKA-6432).
    """
    import struct

    path, anywhere = index_of_lookups(scratch)
    data = path.read_bytes()
    unpack, entries = struct.Struct(">i").unpack_from, len(data) // 8
    oldest, newest = (unpack(data, slot * 8)[0] for slot in (entries - WARM, entries - 1))
    recent = np.random.default_rng(2).integers(oldest, newest, SINGLE, endpoint=True)

    def plain(targets: list[int]) -> None:
        for target in targets:
            low, high = 0, entries - 1
            first = max(0, high - WARM)
            if unpack(data, first * 8)[0] < target:
                low = first
            else:
                high = first
            while low < high:
                middle = (low + high + 1) >> 1
                key = unpack(data, middle * 8)[0]
                if key > target:
                    high = middle - 1
                elif key < target:
                    low = middle
                else:
                    break

    def ours(targets: list[int]) -> None:
        for target in targets:
            index.lookup(target)

    rows = []
    with OffsetIndex(path, 0, writable=False) as index:
        for place, offsets in (("anywhere", anywhere[:SINGLE]), ("recent", recent)):
            spent, floor = (busy(partial(way, offsets.tolist()), rounds) / SINGLE * 1e9 for way in (ours, plain))
            work = f"one lookup, no numpy, {place}"
            rows.append(Row(work, "the plain struct search", "ns", spent, floor, 3000, absolute=True))
    return rows


def decode_rows(rounds: int) -> list[Row]:
    """Measure offset, timestamp, key, value and headers of every record.

    Every attribute of aiokafka's records is read; ours are tuples of the same objects, or Arrow arrays of them.
    """
    import pyarrow as pa
    from aiokafka.record import MemoryRecords
    from aiokafka.record._crecords import MemoryRecords as Compiled

    assert MemoryRecords is Compiled, "aiokafka's parser is not the compiled one"
    data = template(100, 100) * 500

    def theirs() -> int:
        records, count = Compiled(data), 0
        while (batch := records.next_batch()) is not None:
            for record in batch:
                _ = record.offset, record.timestamp, record.key, record.value, record.headers
                count += 1
        return count

    def objects() -> int:
        count = 0
        for columns in decode_records(data):
            for _offset, _timestamp, _key, _value, _headers in columns.tuples():
                count += 1
        return count

    def arrays() -> int:
        count = 0
        for columns in decode_records(data):
            key, value = (columns.column(name).cast(pa.binary()) for name in ("key", "value"))
            table = pa.table(
                [columns.rows["offset"].copy(), columns.rows["timestamp"].copy(), key, value], list("otkv")
            )
            count += len(table)
        return count

    other = busy(theirs, rounds) / 50_000 * 1e9
    rows = []
    for name, ours in (("records as Python objects", objects), ("records as an Arrow table", arrays)):
        assert ours() == theirs() == 50_000
        spent = busy(ours, rounds) / 50_000 * 1e9
        rows.append(Row(name, f"aiokafka {version('aiokafka')}", "ns", spent, other, 1))
    return rows


def compared(given: argparse.Namespace) -> Rows:
    """Yield the rows of all comparisons."""
    yield f"{machine('numpy', 'numba', 'google-crc32c')}; medians of {given.rounds} runs, processor time."
    share = 10 if given.small else 1
    sizes = {
        "16 KB batches": (1_000_000_000 // share, 16, 996, 10),
        "one-record batches": (300_000_000 // share, 1, 78, 20),
    }
    with scratch_directory() as scratch:
        alone = [*single_rows(scratch, given.rounds), *decode_rows(given.rounds)]
        kafka = Kafka()  # whose compiler and collector use processor time of this process from here on
        rows = verify_rows(kafka, scratch, given.rounds, sizes)
        rows += lookup_rows(kafka, scratch, given.rounds)
    yield from (row.cells() for row in rows + alone)


if __name__ == "__main__":
    small, turns = (False, "a tenth of the data"), (5, "number of runs, of which the median is shown")
    bench(__doc__, HEADS, compared, "Speed", INTRODUCTION, small=small, rounds=turns)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"peak memory of this process, the JVM's heap included: {peak:.0f} MiB")  # noqa: T201
