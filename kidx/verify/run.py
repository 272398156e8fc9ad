"""Verification of all partitions under some paths, on several processors, in bounded memory.

Directories of deleted topics and strays are skipped without ``--marked``, because no broker serves them.
"""

from __future__ import annotations

import dataclasses
import importlib
import multiprocessing
import os
import threading
from collections import Counter, deque
from collections.abc import Callable, Generator, Iterable, Mapping
from concurrent.futures.process import BrokenProcessPool
from contextlib import closing
from dataclasses import dataclass, field
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

from kidx.dialect import Dialect, dialect_of
from kidx.discovery import DELETE, STRAY, Found, Problem, Segment, discover
from kidx.findings import HARMLESS, Fault, Finding, Verdict, in_order, worst
from kidx.printable import encodable
from kidx.scan.jit import worth_compiling
from kidx.verify.guarded import guarded_partition, guarded_segment, unreadable_segment
from kidx.verify.identity import clusters_of, identified
from kidx.verify.misplaced import misplaced_logs
from kidx.verify.verdicts import FileVerdict, PartitionVerdict, SegmentVerdict
from kidx.workers import WorkerPool

if TYPE_CHECKING:
    from concurrent.futures import Future
    from pathlib import Path

    from kidx.cluster import ClusterMetadata

_WHAT_THEY_ARE: Final = {
    DELETE: "its topic was deleted: a broker deletes it after file.delete.delay.ms, or when it starts",
    STRAY: "a stray: at its start the broker found that the cluster does not have this partition there; no client can "
    "read it",
}


def without_marked(found: Found) -> Found:
    """Return the discovery, in which deleted and stray partitions are among the skipped paths."""
    marked = [partition for partition in found.partitions if partition.is_marked]
    said = [Problem(each.directory, f"{_WHAT_THEY_ARE[each.state]}; --marked verifies it") for each in marked]
    kept = [partition for partition in found.partitions if not partition.is_marked]
    return Found(kept, found.problems, [*found.left_out, *said])


_AHEAD: Final = 64
"""Maximum number of segments that worker processes have at the same time."""

_POOL_FROM: Final = 64 << 20
"""Bytes of logs from which on worker processes are started."""

_SEGMENT_BYTES: Final = 64 << 10
"""Bytes that take about as long to read as opening the files of a segment."""

Progress = Callable[[Segment, SegmentVerdict], None]
"""Function that is called with each segment and its verdict."""


@dataclass(slots=True)
class Verification:
    """Result of a verification.

    Attributes:
        files: verdicts on all files, by path.
        findings: findings, in the order of the table.
        problems: paths that could not be read.
        segments, batches, bytes_read: counts of the whole verification.
        left_out: paths that were skipped, which is not a fault.
        clusters: KRaft's metadata, by the log directory that has them.
    """

    files: list[FileVerdict] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)
    partitions: int = 0
    segments: int = 0
    batches: int = 0
    bytes_read: int = 0
    left_out: list[Problem] = field(default_factory=list)
    clusters: Mapping[Path, ClusterMetadata] = field(default_factory=dict)

    @property
    def verdict(self) -> Verdict:
        """Worst verdict of all files, findings and problems."""
        found = [file.verdict for file in self.files] + [finding.verdict for finding in self.findings]
        return worst(found + ["unreadable"] * bool(self.problems))

    @property
    def exit_code(self) -> int:
        """Exit code of ``kidx verify``: 0 without faults, 1 with faults, 2 if nothing could be read."""
        nothing = not any(file.verdict != "unreadable" for file in self.files)
        if nothing and (self.problems or self.files or not self.partitions):
            return 2
        return 0 if self.verdict in HARMLESS else 1

    def counts(self) -> Counter[tuple[str, Verdict]]:
        """Return the number of files by suffix, or name of a file without one, and verdict."""
        return Counter((kind_of(file.path), file.verdict) for file in self.files)

    def finding_counts(self) -> Counter[Verdict]:
        """Return the number of findings by verdict."""
        return Counter(finding.verdict for finding in self.findings)

    def faults(self, most: int | None = None) -> list[Finding]:
        """Return the findings that are not remarks, in order; at most the first ``most``."""
        faults = (finding for finding in self.findings if finding.verdict not in HARMLESS)
        return list(islice(faults, most))

    @property
    def faulty_paths(self) -> set[str]:
        """Paths of all files with a fault."""
        found = {file.path for file in self.files if file.verdict not in HARMLESS}
        return found | {finding.path for finding in self.findings if finding.verdict not in HARMLESS}

    def to_json(self) -> dict[str, Any]:
        """Return the document of ``kidx verify --json``."""
        return {
            "verdict": self.verdict,
            "files": [file.to_json() for file in self.files],
            "findings": [finding.to_json() for finding in self.findings],
            "partitions": self.partitions,
            "segments": self.segments,
            "batches": self.batches,
            "bytes_read": self.bytes_read,
            "left_out": [{"path": encodable(str(each.path)), "message": each.message} for each in self.left_out],
        }

    def add(self, partition: PartitionVerdict) -> None:
        """Add the verdict on a partition."""
        self.files += partition.files
        self.findings += partition.findings
        self.partitions += 1
        self.segments += partition.segments
        self.batches += partition.batches
        self.bytes_read += partition.bytes_read

    def include(self, other: Verification) -> None:
        """Add the results of another verification, for example of remote storage."""
        self.files = sorted([*self.files, *other.files], key=lambda file: file.path)
        self.findings = in_order([*self.findings, *other.findings])
        self.problems += other.problems
        self.left_out += other.left_out
        self.partitions += other.partitions
        self.segments += other.segments
        self.batches += other.batches
        self.bytes_read += other.bytes_read


def kind_of(path: str) -> str:
    """Return the kind by which a file is counted: the suffix, or the name of a file without one."""
    name = path.rpartition("/")[2]
    return os.path.splitext(name)[1] or name  # noqa: PTH122 -- of thousands of names


def verify_paths(
    paths: Iterable[str | os.PathLike[str]] | Found,
    *,
    release: str | Dialect | None = None,
    index_interval_bytes: int | None = None,
    processes: int | None = None,
    progress: Progress | None = None,
    marked: bool = False,
    records: bool = False,
) -> Verification:
    """Verify segments, partitions and log directories.

    Args:
        paths: paths of segments, partitions or log directories, or a result of :func:`kidx.discovery.discover`.
        release: release for the verdict *exact*; any release if None.
        index_interval_bytes: the topics' setting; inferred, partition by partition, if None.
        processes: number of worker processes; None starts one for each processor, and none for little data.
        progress: function that is called in this process after every segment.
        marked: True to verify directories of deleted topics and strays, too.
        records: True to read every record: a batch with a right checksum can have wrong records.

    Raises:
        ValueError: the release is unknown.
    """
    dialect = None if release is None else dialect_of(release)
    found = paths if isinstance(paths, Found) else discover(paths)
    if not marked:
        found = without_marked(found)
    clusters = clusters_of(found)
    found = identified(found, clusters)
    result = Verification(problems=[*found.problems], left_out=[*found.left_out], clusters=clusters)
    result.findings += [_problem(problem) for problem in found.problems]
    options: dict[str, Any] = {"release": dialect, "index_interval_bytes": index_interval_bytes, "records": records}
    verify_one = partial(guarded_segment, **options)
    with closing(verdicts_on(found, verify_one, processes)) as verdicts:
        for partition in found.partitions:
            own = []
            for segment in partition.segments:
                verdict = next(verdicts)
                own.append(verdict)
                if progress is not None:
                    progress(segment, verdict)
            result.add(guarded_partition(partition, own, **options))
    misplaced = misplaced_logs(result.findings, found.segments, None if dialect is None else dialect.release)
    result.findings += misplaced.values()
    result.files = [
        dataclasses.replace(file, verdict="broken", releases="") if file.path in misplaced else file
        for file in result.files
    ]
    result.files.sort(key=lambda file: file.path)
    result.findings = in_order(result.findings)
    return result


def _problem(problem: Problem) -> Finding:
    path = problem.path
    return Finding.about(path, (None, None, None), Fault.UNREADABLE, "unreadable", problem.message)


def verdicts_on(
    found: Found, verify_one: Callable[[Segment], SegmentVerdict], processes: int | None
) -> Generator[SegmentVerdict]:
    """Yield the verdicts on all segments in order; worker processes verify the next segments concurrently.

    Args:
        found: discovery with the segments.
        verify_one: function that verifies a segment; picklable.
        processes: number of worker processes; None starts one for each processor, and none for little data.
    """
    size = _size(found)
    workers = processes or (_processors() if size >= _POOL_FROM else 1)
    if worth_compiling(size):
        importlib.import_module("kidx.scan.batch_kernels")
    if workers < 2:
        yield from map(verify_one, found.segments)
        return
    segments = found.segments
    waiting: deque[Segment] = deque()
    while True:
        futures: deque[Future[SegmentVerdict]] = deque()
        with WorkerPool(workers, _context()) as pool:
            try:
                while True:
                    for segment in islice(segments, _AHEAD - len(waiting)):
                        waiting.append(segment)
                        futures.append(pool.submit(verify_one, segment))
                    if not waiting:
                        return
                    verdict = futures.popleft().result()
                    waiting.popleft()
                    yield verdict
            except BrokenProcessPool:
                pass  # all waiting calls have failed
        # A worker was killed, usually because memory was exhausted. Any of the waiting segments may be the cause, so
        # each of them gets its own worker.
        while waiting:
            yield _alone(verify_one, waiting.popleft())


def _alone(verify_one: Callable[[Segment], SegmentVerdict], segment: Segment) -> SegmentVerdict:
    """Return the verdict on a segment that is verified in its own process; a killed process becomes a finding."""
    try:
        with WorkerPool(1, _context()) as pool:
            return pool.submit(verify_one, segment).result()
    except BrokenProcessPool:
        return unreadable_segment(
            segment, "the process that verified it was killed, perhaps because memory was exhausted"
        )


def _context() -> multiprocessing.context.BaseContext:
    """Return how workers are started: by fork if this is safe, because it is fast and shares the compiled code.

    If the process has other threads, such as a progress bar, workers are forked from a separate server process.
    """
    methods = multiprocessing.get_all_start_methods()
    if "fork" in methods and threading.active_count() == 1:
        return multiprocessing.get_context("fork")
    if "forkserver" in methods:
        context = multiprocessing.get_context("forkserver")
        context.set_forkserver_preload(["kidx.verify.guarded"])
        return context
    return multiprocessing.get_context()


def _size(found: Found) -> int:
    """Return the number of bytes of logs, with an addition for each segment; counting stops at ``_POOL_FROM``."""
    total = 0
    for segment in found.segments:
        try:
            total += segment.log.stat().st_size + _SEGMENT_BYTES
        except OSError:
            continue
        if total >= _POOL_FROM:
            break
    return total


def _processors() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
