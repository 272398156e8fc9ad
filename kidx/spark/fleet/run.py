"""A fleet's verification from paths to report; see :mod:`kidx.spark.fleet`."""

from __future__ import annotations

import json
import os
import re
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from kidx import __version__
from kidx.dialect import Dialect, dialect_of
from kidx.discovery import META_PROPERTIES, Found, Partition, discover
from kidx.errors import ToolError
from kidx.files import read_text
from kidx.spark.fleet.report import write_report
from kidx.spark.fleet.rows import Row, Rows
from kidx.spark.fleet.summary import Summary, summarize
from kidx.spark.fleet.tables import (
    FILES,
    FINDINGS,
    PARTITIONS,
    REPLICAS,
    ddl,
    findings_of,
    read_table,
    table_path,
)
from kidx.spark.fleet.work import Kept, compare_named, perform_named, portions
from kidx.spark.jobs import Progress, run_each
from kidx.verify.findings import Finding, Verdict, worst

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_RUN_ID: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
_TASKS_A_CORE: Final = 4
"""Portions for each core: enough that the last ones to end are short."""
_NAMES_A_TASK: Final = 64
"""Portions whose outcomes one task makes rows of."""


@dataclass(frozen=True)
class FleetVerification:
    """What a run has found; the tables are on disk.

    Attributes:
        spark, out, run_id: of the run.
        summary: counts.
        report: the HTML page.
        resumed: portions that an earlier attempt had done.
        problems: paths that could not be looked at, and why.
        seconds: that each step took, in order.
    """

    spark: SparkSession
    out: Path
    run_id: str
    summary: Summary
    report: Path
    resumed: int
    problems: tuple[tuple[str, str], ...]
    seconds: dict[str, float]

    @property
    def verdict(self) -> Verdict:
        """The worst verdict on any file or path."""
        unreadable: list[Verdict] = ["unreadable"] if self.problems else []
        return worst([*self.summary.verdicts, *unreadable])

    @property
    def exit_code(self) -> int:
        """As of ``kidx verify``: 0 exact or sound; 1 something is not, or replicas differ; 2 nothing could be read."""
        if not self.summary.readable and (self.problems or self.summary.files):
            return 2
        return 0 if self.verdict in {"exact", "sound"} and not self.summary.differing_replicas else 1

    def frame(self, table: str) -> DataFrame:
        """One of the tables of :mod:`kidx.spark.fleet.tables`, of this run."""
        return read_table(self.spark, self.out, table, self.run_id)

    def findings(self) -> list[Finding]:
        """The findings in the order of ``kidx verify``."""
        return findings_of(self.frame("findings"))


def verify(
    spark: SparkSession,
    paths: Iterable[str | os.PathLike[str]],
    *,
    out: str | os.PathLike[str],
    run_id: str,
    release: str | Dialect | None = None,
    index_interval_bytes: int | None = None,
    progress: Progress | None = None,
) -> FleetVerification:
    """Verifies everything under some paths, segment by segment, and leaves tables and a report.

    Args:
        spark: a session; the paths must lead to the same files on every worker.
        paths: log directories, directories of such, partition directories or segment files.
        out: a directory that driver and workers share.
        run_id: names the run; given again, it goes on with what has not been done, or has changed.
        release: as for :func:`kidx.verify.verify_paths`.
        index_interval_bytes: likewise.
        progress: told how many portions of the work are done.

    Raises:
        ToolError: the run id is no name, or belongs to a run that was asked something else; there is nothing to look
            at; or ``out`` cannot be written.
        ValueError: an unknown release.
    """
    if not _RUN_ID.fullmatch(run_id):
        raise ToolError(f"{run_id!r} is no run id: letters, digits, dots, dashes and underscores, at most 100")
    dialect = None if release is None else dialect_of(release)
    wanted = [os.fspath(path) for path in paths]
    clock = _Clock()
    found = discover(wanted)
    if not found.partitions:
        why = "; ".join(f"{problem.path}: {problem.message}" for problem in found.problems)
        raise ToolError(f"there is nothing to verify: {why or 'the directories hold no partitions'}")
    clock("discover")
    root = Path(out)
    run = root / "runs" / run_id
    asked = {
        "paths": sorted(wanted),
        "release": None if dialect is None else dialect.release,
        "index_interval_bytes": index_interval_bytes,
        "kidx": __version__,
    }
    problems = tuple((str(problem.path), problem.message) for problem in found.problems)
    kept = Kept(run / "work")
    try:
        _check_same(run / "run.json", asked)
        names, resumed = _perform(spark, found, kept, dialect, index_interval_bytes, progress)
        clock("verify")
        replicas = _compare(spark, found, kept)
        clock("compare replicas")
        _write_tables(spark, root, run_id, names, replicas, Rows(kept, dialect, index_interval_bytes, problems))
        clock("write tables")
    except OSError as error:
        raise ToolError(f"{root} cannot be written: {error.strerror or error}") from error
    summary = summarize(spark, root, run_id)
    report = write_report(run / "report.html", summary, asked | {"run_id": run_id}, problems)
    clock("summarize")
    return FleetVerification(spark, root, run_id, summary, report, resumed, problems, clock.seconds)


class _Clock:
    """What each step took."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self._last = time.monotonic()

    def __call__(self, step: str) -> None:
        """Says that a step has ended here."""
        now = time.monotonic()
        self.seconds[step] = now - self._last
        self._last = now


def _check_same(path: Path, asked: dict[str, Any]) -> None:
    """Raises ToolError: the run id belongs to a run that was asked something else."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.exists():
        before = json.loads(path.read_text("utf-8"))
        changed = [name for name in asked if before.get(name) != asked[name]]
        if changed:
            raise ToolError(
                f"the run {path.parent.name} was started with other {' and '.join(changed)}: choose another run id"
            )
    else:
        path.write_text(json.dumps(asked, indent=2) + "\n", "utf-8")


def _perform(
    spark: SparkSession,
    found: Found,
    kept: Kept,
    dialect: Dialect | None,
    interval: int | None,
    progress: Progress | None,
) -> tuple[list[list[str]], int]:
    """Verifies what is not verified yet; returns the names of portions, those of one partition together."""
    brokers = _Brokers()
    cores = spark.sparkContext.defaultParallelism
    work = portions(
        ((partition, brokers.of(partition)) for partition in found.partitions),
        _TASKS_A_CORE * cores,
        dialect,
        interval,
    )
    groups: list[list[str]] = []
    last = None
    todo = []
    for portion in work:
        share = portion.shares[0]
        directory = None if share.whole else share.partition.directory
        if directory is not None and directory == last:
            groups[-1].append(portion.id)
        else:
            groups.append([portion.id])
        last = directory
        if not kept.has(portion.id):
            kept.lay_down(portion.id, portion)
            todo.append(portion.id)
    run_each(spark, todo, partial(perform_named, kept), progress=progress, is_done=kept.has)
    return groups, len(work) - len(todo)


class _Brokers:
    """The broker of a partition: the id in its log directory's ``meta.properties``, else the directory's path."""

    def __init__(self) -> None:
        self._known: dict[Path, str] = {}

    def of(self, partition: Partition) -> str:
        """The broker that a partition was found on."""
        directory = partition.directory.parent
        if directory not in self._known:
            self._known[directory] = self._look(directory)
        return self._known[directory]

    def _look(self, directory: Path) -> str:
        try:
            text = read_text(directory / META_PROPERTIES, errors="replace")
        except OSError:
            return str(directory)
        match = re.search(r"^(?:node|broker)\.id=(\d+)\s*$", text, re.MULTILINE)
        return match[1] if match else str(directory)


def _compare(spark: SparkSession, found: Found, kept: Kept) -> list[str]:
    """Compares the partitions of which there are several; returns the names of what was kept."""
    by_key: dict[tuple[str, int], list[Partition]] = defaultdict(list)
    for partition in found.partitions:
        if partition.topic is not None and partition.partition is not None and not partition.state:
            by_key[partition.topic, partition.partition].append(partition)
    groups = [group for group in by_key.values() if len(group) > 1]
    tasks = min(len(groups), _TASKS_A_CORE * spark.sparkContext.defaultParallelism)
    names = []
    for number in range(tasks):
        name = f"replicas-{number:06d}"
        kept.lay_down(name, groups[number::tasks])
        kept.forget(name)  # replicas are compared anew each time: it is the quicker part
        names.append(name)
    run_each(spark, names, partial(compare_named, kept))
    return names


def _write_tables(
    spark: SparkSession, out: Path, run_id: str, groups: list[list[str]], replicas: list[str], rows: Rows
) -> None:
    portions_of = [groups[start : start + _NAMES_A_TASK] for start in range(0, len(groups), _NAMES_A_TASK)]
    for table, schema, make, work in (
        ("findings", FINDINGS, rows.findings, [*portions_of, None] if rows.problems else portions_of),
        ("files", FILES, rows.files, portions_of),
        ("partitions", PARTITIONS, rows.partitions, portions_of),
        ("replicas", REPLICAS, rows.replicas, [replicas]),
    ):
        rows_of = partial(_tuples, make, schema.names)
        frame = spark.createDataFrame(spark.sparkContext.parallelize(work, len(work)).flatMap(rows_of), ddl(schema))
        writer = frame.write.mode("overwrite")
        if table in ("findings", "files"):
            writer = writer.partitionBy("topic")
        writer.parquet(str(table_path(out, table, run_id)))


def _tuples(make: Callable[[Any], Iterator[Row]], names: list[str], work: Any) -> Iterator[tuple[Any, ...]]:
    return (tuple(row[name] for name in names) for row in make(work))
