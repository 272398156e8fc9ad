"""Run of a fleet's verification, from paths to report; see :mod:`kidx.spark.fleet`.

The numbers of Spark tasks, and the measured costs per segment, are explained in ``docs/fleet.md``, and
``tests/bench/fleet.py`` measures the costs. All of them grow linearly with the number of segments, except the bytes to
read. The driver stores nothing per segment.
"""

from __future__ import annotations

import json
import os
import re
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import astuple, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from py4j.protocol import Py4JError
from pyspark.accumulators import AccumulatorParam
from pyspark.errors import PySparkException
from pyspark.sql import Observation
from pyspark.sql.functions import array, explode, expr

from kidx import __version__
from kidx.dialect import Dialect, dialect_of
from kidx.errors import ToolError
from kidx.findings import HARMLESS, Fault, Finding, Verdict, worst
from kidx.spark.fleet.listing import Request, list_roots, roots_of
from kidx.spark.fleet.output import Output, reason_of_spark
from kidx.spark.fleet.report import render_report
from kidx.spark.fleet.summary import Summary, summarize
from kidx.spark.fleet.tables import FINDINGS, LISTING, PARTITIONS, SETTLED, SUMMARY, VERDICTS, ddl, findings_of
from kidx.spark.fleet.work import settle_rows, verify_rows

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

Progress = Callable[[int, int], None]
"""Function that receives the number of verified segments and the number of all segments."""

_RUN_ID: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
_FOUND: Final = {
    "partitions": "count_if(problem is null)",
    "problems": "count_if(problem is not null and not coalesce(left_out, false))",
    "left_out": "count_if(left_out)",
    "segments": "coalesce(sum(size(segments)), 0)",
    "bytes": "coalesce(sum(aggregate(segments.bytes, 0L, (one, two) -> one + two)), 0)",
    "several": "coalesce(min(broker) < max(broker), false)",
}
"""Counts that are computed while the listing is written; ``several`` is true if there is more than one broker."""
# SQL expressions: columns that show whether a directory was found twice, and columns of a segment to verify.
_OF_A_PARTITION: Final = (
    "*",
    "row_number() over (partition by coalesce(resolved, place || problem), complete order by number) as rank",
    "max(complete) over (partition by resolved) as is_whole",
)
_OF_A_SEGMENT: Final = (
    "place",
    "together",
    "raw",
    "root",
    "topic",
    "partition",
    "clean",
    "segments.key[0] as key",
    "segments",
)
_OF_A_PROBLEM: Final = {
    "path": "place",
    "file": "substring_index(place, '/', -1)",
    "clause": "clause",
    "verdict": "'unreadable'",
    "expected": "''",
    "actual": "''",
    "message": "problem",
    "kind": f"'{Fault.UNREADABLE}'",
}
"""Columns of a finding about a path that could not be read; the others are null."""


@dataclass(frozen=True)
class FleetVerification:
    """Result of a run; the tables are in its output.

    Attributes:
        output, run_id: output and name of the run.
        summary: counts of the run.
        report: path or URL of the HTML page.
        resumed: number of segments that an earlier attempt had verified.
        problems: paths that could not be read, with the reasons.
        left_out: paths that were skipped, with the reasons.
        seconds: duration of each step, in order.
    """

    output: Output
    run_id: str
    summary: Summary
    report: str | Path
    resumed: int
    problems: tuple[tuple[str, str], ...]
    left_out: tuple[tuple[str, str], ...]
    seconds: dict[str, float]

    @property
    def verdict(self) -> Verdict:
        """Worst verdict on any file or path."""
        unreadable: list[Verdict] = ["unreadable"] if self.problems else []
        return worst([*self.summary.verdicts, *unreadable])

    @property
    def exit_code(self) -> int:
        """Exit code: 0 all exact or sound; 1 something is not, or replicas differ; 2 nothing could be read."""
        if not self.summary.readable and (self.problems or self.summary.files):
            return 2
        return 0 if self.verdict in HARMLESS and not self.summary.differing_replicas else 1

    def frame(self, table: str) -> DataFrame:
        """Return one of the tables of :mod:`kidx.spark.fleet.tables`, of this run."""
        return self.output.read(table, self.run_id)

    def findings(self) -> list[Finding]:
        """Yield the findings in the order of ``kidx verify``."""
        return findings_of(self.frame("findings"))


def verify(
    spark: SparkSession,
    paths: Iterable[str | os.PathLike[str]],
    *,
    out: str | os.PathLike[str],
    run_id: str,
    release: str | Dialect | None = None,
    index_interval_bytes: int | None = None,
    storage_options: dict[str, Any] | None = None,
    progress: Progress | None = None,
    marked: bool = False,
) -> FleetVerification:
    """Verify all segments under some paths, and write tables and a report.

    Args:
        spark: a session, of Spark Connect as well; the paths must lead to the same files on every worker.
        paths: log directories, directories above them, partition directories or segment files; or URLs of fsspec.
        out: a directory that driver and workers share, or a URL for Hadoop or fsspec.
        run_id: name of the run. If a run of this name exists, it continues with unverified and changed segments.
        release: release for the verdict *exact*; any release if None.
        index_interval_bytes: the topics' setting; inferred, partition by partition, if None.
        storage_options: options of fsspec, for URLs among the paths and for ``out``.
        progress: function that receives the number of verified segments and of all; not called with Spark Connect.
        marked: True to verify directories of deleted topics and strays, too.

    Raises:
        ToolError: the run id is not a name, or belongs to a run with other options; no path can be read; or a URL
            cannot be opened, or ``out`` cannot be written.
        ValueError: the release is unknown.
    """
    check_run_id(run_id)
    dialect = None if release is None else dialect_of(release)
    options = storage_options or {}
    wanted = [os.fspath(path) for path in paths]
    request = Request(None if dialect is None else dialect.release, index_interval_bytes, options, marked)
    about = {
        "paths": sorted(wanted),
        "release": request.release,
        "index_interval_bytes": index_interval_bytes,
        "kidx": __version__,
    } | ({"marked": True} if marked else {})
    output = Output(spark, os.fspath(out), options)
    try:
        return _Run(spark, output, run_id, request, progress).verify(wanted, about)
    except (OSError, PySparkException, Py4JError) as error:
        raise ToolError(f"the run {run_id} in {output.url} ended early: {reason_of_spark(error)}") from error


def check_run_id(run_id: str) -> None:
    """Raise :class:`~kidx.errors.ToolError` if the id is not a name of a run."""
    if not _RUN_ID.fullmatch(run_id):
        raise ToolError(f"invalid run id {run_id!r}; use at most 100 letters, digits, dots, dashes and underscores")


class _Run:
    """One attempt at a run, and the duration of its steps so far."""

    def __init__(
        self, spark: SparkSession, output: Output, run_id: str, request: Request, progress: Progress | None
    ) -> None:
        self.spark, self.output, self.run_id = spark, output, run_id
        self.request, self.progress = request, progress
        self.seconds: dict[str, float] = {}
        self._last = time.monotonic()

    def verify(self, paths: list[str], about: dict[str, Any]) -> FleetVerification:
        document = f"runs/{self.run_id}/run.json"
        before = self._exists_already(document, about)
        listing, found = self._list(paths)
        unread: dict[bool, list[tuple[str, str]]] = {False: [], True: []}
        if found["problems"] or found["left_out"]:
            rows = listing.where("problem is not null").orderBy("place", "problem")
            for row in rows.select("place", "problem", "left_out").collect():
                unread[bool(row["left_out"])].append((row["place"], row["problem"]))
        problems, left_out = tuple(unread[False]), tuple(unread[True])
        if not found["partitions"]:
            why = "; ".join(map(": ".join, problems or left_out))
            raise ToolError(f"there is nothing to verify: {why or 'the directories hold no partitions'}")
        self.output.put(document, json.dumps(about, indent=2) + "\n")
        self._step("list")
        partitions = listing.where("problem is null")
        resumed = self._verify(partitions, found["segments"], found["bytes"], again=before)
        self._step("verify")
        settled = self._settle(partitions, found).persist()
        summary = summarize(settled, len(problems))
        self._step("settle")
        findings = settled.selectExpr("inline(findings)")
        if problems:
            findings = findings.unionByName(
                listing.where("problem is not null and not coalesce(left_out, false)").selectExpr(
                    *(f"{_OF_A_PROBLEM.get(f.name, 'null')} as `{f.name}`" for f in FINDINGS)
                )
            )
        frames = {
            "findings": findings,
            "files": settled.selectExpr("inline(files)"),
            "partitions": settled.select(*PARTITIONS.names),
            "replicas": settled.selectExpr("inline(differences)"),
            "summary": self.spark.createDataFrame([astuple(count) for count in summary.counts], ddl(SUMMARY)),
        }
        for name, frame in frames.items():
            self.output.write(frame, name, self.run_id)
        settled.unpersist()
        page = render_report(summary, about | {"run_id": self.run_id}, problems)
        report = self.output.put(f"runs/{self.run_id}/report.html", page)
        self._step("write tables")
        where = Path(report) if self.output.is_local else report
        return FleetVerification(self.output, self.run_id, summary, where, resumed, problems, left_out, self.seconds)

    def _step(self, name: str) -> None:
        now = time.monotonic()
        self.seconds[name], self._last = now - self._last, now

    def _exists_already(self, document: str, about: dict[str, Any]) -> bool:
        """Return True if an earlier attempt exists; raise ToolError if it had other options."""
        text = self.output.get(document)
        before = about if text is None else json.loads(text)
        changed = [name for name in about if before.get(name) != about[name]]
        if changed:
            raise ToolError(
                f"the run {self.run_id} was started with other {' and '.join(changed)}; choose another run id"
            )
        return text is not None

    def _list(self, paths: list[str]) -> tuple[DataFrame, dict[str, Any]]:
        """List and count the current files once; a directory that was found twice is listed once."""
        roots, request = roots_of(paths, self.request.options), self.request
        numbers = self.spark.range(0, len(roots), 1, max(1, len(roots)))
        listing = numbers.mapInArrow(lambda batches: list_roots(roots, request, batches), ddl(LISTING))
        if len(roots) > 1:
            listing = listing.selectExpr(*_OF_A_PARTITION).where(
                "if(problem is not null or complete, rank = 1, not is_whole)"
            )
        counted = Observation()
        listing = listing.select(*LISTING.names).observe(counted, *(expr(e).alias(n) for n, e in _FOUND.items()))
        self.output.write(listing, "listing", self.run_id)
        return self.output.read("listing", self.run_id), counted.get

    def _verify(self, partitions: DataFrame, segments: int, size: int, *, again: bool) -> int:
        """Verify the segments without a verdict; return the number of segments that had one."""
        resumed, request = 0, self.request
        wanted = partitions.withColumn("segment", explode("segments")).withColumn("segments", array("segment"))
        wanted = wanted.selectExpr(*_OF_A_SEGMENT)
        if again:
            known = self.output.read("verdicts", self.run_id).select("key")
            resumed = wanted.join(known, "key", "left_semi").count()
            wanted = wanted.join(known, "key", "left_anti")
        counted = _ProgressCounter(self.progress, resumed, segments)
        context = getattr(self.spark, "sparkContext", None)  # Spark Connect does not have it
        counter = None if self.progress is None or context is None else context.accumulator(0, counted)

        def perform(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            return verify_rows(request, _ignore if counter is None else counter.add, batches)

        verdicts = wanted.repartition(tasks_of(size)).mapInArrow(perform, ddl(VERDICTS))
        self.output.write(verdicts, "verdicts", self.run_id, append=again)
        if self.progress is not None:
            self.progress(segments, segments)
        return resumed

    def _settle(self, partitions: DataFrame, found: dict[str, Any]) -> DataFrame:
        """Combine the verdicts on the segments of each partition, and compare its replicas."""
        request = self.request
        verdicts = self.output.read("verdicts", self.run_id).selectExpr("together", "struct(*) as found")
        rows = partitions.selectExpr("together", "struct(*) as listed").unionByName(verdicts, allowMissingColumns=True)
        tasks = settling_tasks(found["segments"], found["bytes"], compared=found["several"])
        rows = rows.repartition(tasks, "together").sortWithinPartitions("together")
        return rows.mapInArrow(lambda batches: settle_rows(request, batches), ddl(SETTLED))


def _ignore(_: int) -> None:
    pass


class _ProgressCounter(AccumulatorParam[int]):
    """Accumulator of verified segments: the workers add to it, and the driver reports it when a task has ended."""

    def __init__(self, progress: Progress | None = None, done: int = 0, total: int = 0) -> None:
        self._progress, self._done, self._total = progress, done, total

    def __reduce__(self) -> tuple[type[_ProgressCounter], tuple[()]]:
        return _ProgressCounter, ()

    def zero(self, value: int) -> int:
        return value * 0

    def addInPlace(self, value1: int, value2: int) -> int:  # noqa: N802 -- Spark's name
        if self._progress is not None:
            self._progress(min(self._done + value1 + value2, self._total), self._total)
        return value1 + value2


SMALLEST: Final = 2 << 30
"""Approximate number of bytes per task: two seconds of work, so that the start of the task is negligible."""
_LEAST: Final = 256 << 20
"""Minimum number of bytes per task."""
_FEW: Final = 8
"""Number of tasks of a small fleet. They are smaller than :data:`SMALLEST`, so that all workers have work."""
MAX_TASKS: Final = 100_000
"""Approximate maximum of tasks that a driver can track. The tasks of a petabyte are larger instead."""

_SETTLED_AT_ONCE: Final = 2500
"""Number of segments whose verdicts one task combines into verdicts on partitions."""

# Measured with 10,000 segments of three files each, a hundred in a partition.
VERDICT_BYTES: Final = 150
"""Bytes of a verdict on a segment with one epoch and no transactions, and of its row in the listing."""


def tasks_of(cost: int) -> int:
    """Return the number of tasks that share the work of a run.

    Args:
        cost: bytes of logs, and :data:`SEGMENT_COST` for each segment.
    """
    return max(1, min(MAX_TASKS, max(-(-cost // SMALLEST), min(_FEW, cost // _LEAST))))


def settling_tasks(segments: int, cost: int, *, compared: bool) -> int:
    """Return the number of tasks that combine the verdicts on segments into verdicts on partitions.

    Args:
        cost: cost as in :func:`tasks_of`.
        compared: True if the logs of replicas are read once more to compare them.
    """
    return max(-(-segments // _SETTLED_AT_ONCE), tasks_of(cost) if compared else 1)
