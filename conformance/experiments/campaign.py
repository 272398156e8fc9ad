"""Campaign: a test run on Spark, with one task, called a cell, for each release, state machine and seed.

A cell writes the event stream of a run, ``DIRECTORY/<release>-<machine>-<seed>/events.ndjson``. This file is a shard
that ``conformance report`` combines with the others. The traces of all cells are in ``DIRECTORY/traces``. A stream
appears as a whole when its cell is done. A worker that dies leaves only a temporary directory, and Spark assigns its
cell to another worker. A restarted campaign runs the cells that are missing, that had an error, or that the time limit
ended early. Every divergence has a trace and a replay command, as in a run without Spark. ``conformance run`` with
``--kafka RELEASE --machine NAME --seed N`` executes the same examples as the cell.

A task writes its results to a directory that driver and workers share. :func:`write_tables` makes Parquet tables of the
event streams: results, clauses and divergences. Every row begins with the cell: release, state machine and seed.
"""

from __future__ import annotations

import json
import os
import shutil
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal

import pyarrow as pa
from pyarrow import parquet

from conformance.errors import ToolError
from conformance.expectations import StaleExpectationError
from conformance.implementations.forms import is_server
from conformance.report.combined import CombinedReport
from conformance.report.stream import NAME, NdjsonWriter, read_stream
from conformance.runs.runner import Plan, run
from kidx.files import replacing
from kidx.printable import counted

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from conformance.report.stream import Stream
    from conformance.verdict import Comparison, Conclusion

POLLED: Final = 0.5
"""Seconds between two checks of the progress."""

Progress = Callable[[int, int], None]
"""Function that receives the number of finished jobs, and their total."""


def run_each(
    spark: SparkSession,
    names: Sequence[str],
    do: Callable[[str], None],
    *,
    progress: Progress | None = None,
    is_done: Callable[[str], bool] | None = None,
) -> None:
    """Run every job in a separate task; a job whose worker dies is repeated by another worker.

    Args:
        names: names of the jobs.
        do: function that does the job with a name. It is sent to the workers, so it must be picklable. It may be called
            more than once for a job.
        progress: callback that is called periodically.
        is_done: function that returns True if the results of a job exist; needed for progress.

    Raises:
        Exception: a task has failed as often as the session allows; Spark raises the error.
    """
    wanted = list(names)
    if not wanted:
        return

    # A DataFrame needs pandas to call a Python function; an RDD does not.
    tasks = spark.sparkContext.parallelize(wanted, len(wanted))
    if progress is None or is_done is None:
        tasks.foreach(do)
        return
    stop = threading.Event()

    def watch() -> None:
        waiting = set(wanted)
        while not stop.wait(POLLED):
            waiting.difference_update([name for name in waiting if is_done(name)])
            progress(len(wanted) - len(waiting), len(wanted))

    watcher = threading.Thread(target=watch, name="kidx-progress", daemon=True)
    watcher.start()
    try:
        tasks.foreach(do)
    finally:
        stop.set()
        watcher.join()
    progress(len(wanted), len(wanted))


_KEY: Final = [
    ("release", pa.string()),
    ("machine", pa.string()),
    ("seed", pa.int64()),
    ("implementation", pa.string()),
]

RESULTS: Final = pa.schema([
    *_KEY,
    ("examples", pa.int64()),
    ("steps", pa.int64()),
    ("seconds", pa.float64()),
    ("divergences", pa.int64()),
    ("verdict", pa.string()),
    ("cut", pa.bool_()),  # True if the time limit ended the cell early; a later attempt repeats it
])  # fmt: skip
CLAUSES: Final = pa.schema([
    *_KEY,
    ("clause", pa.string()),
    ("verdict", pa.string()),
    ("steps", pa.int64()),  # number of steps that exercised the clause
])  # fmt: skip
DIVERGENCES: Final = pa.schema([
    *_KEY,
    ("clauses", pa.list_(pa.string())),
    ("failure", pa.string()),  # JSON, as in the trace
    ("steps", pa.list_(pa.string())),
    ("trace", pa.string()),  # the whole trace, so that a row can be replayed without files
    ("replay", pa.string()),
])  # fmt: skip

Row = dict[str, Any]


def write_tables(directory: Path, report: CombinedReport) -> None:
    """Write ``results.parquet``, ``clauses.parquet`` and ``divergences.parquet``, each atomically."""
    directory.mkdir(parents=True, exist_ok=True)
    for name, schema, rows in (
        ("results", RESULTS, _results),
        ("clauses", CLAUSES, _clauses),
        ("divergences", DIVERGENCES, _divergences),
    ):
        table = pa.Table.from_pylist([row for stream in report.streams for row in rows(stream)], schema=schema)
        with replacing(directory / f"{name}.parquet") as partial:
            parquet.write_table(table, partial)


def _results(stream: Stream) -> Iterator[Row]:
    for result in stream.results:
        yield {
            "release": result.release,
            "machine": result.machine,
            "seed": stream.header.seed,
            "implementation": result.implementation,
            "examples": result.examples,
            "steps": result.steps,
            "seconds": result.seconds,
            "divergences": result.divergences,
            "verdict": "diverges" if result.divergences else "conforms",
            "cut": bool(result.details.get("cut_by_time")),
        }


def _clauses(stream: Stream) -> Iterator[Row]:
    for result in stream.results:
        for clause, verdict in result.verdicts.items():
            yield {
                "release": result.release,
                "machine": result.machine,
                "seed": stream.header.seed,
                "implementation": result.implementation,
                "clause": clause,
                "verdict": verdict,
                "steps": result.clauses.get(clause, 0),
            }


def _divergences(stream: Stream) -> Iterator[Row]:
    for divergence in stream.divergences:
        path = Path(divergence.trace)
        yield {
            "release": stream.header.releases[0],
            "machine": divergence.machine,
            "seed": stream.header.seed,
            "implementation": divergence.implementation,
            "clauses": [clause for clause, _, _ in divergence.requirements],
            "failure": json.dumps(divergence.failure),
            "steps": list(divergence.steps),
            "trace": path.read_text("utf-8") if path.exists() else None,
            "replay": divergence.replay,
        }


PARTIAL: Final = ".partial"
"""Beginning of the name of a cell's directory until the cell is done."""
_ERROR: Final = "error.txt"
"""Name of the file with the reason why a cell failed."""
_State = Literal["done", "cut", "error", "left"]
"""State of a cell: completed, ended early by the time limit, failed, or not started."""


@dataclass(frozen=True, slots=True)
class Cell:
    """Task of a campaign: a Kafka release, a state machine, and the seed of the machine's examples."""

    release: str
    machine: str
    seed: int

    @property
    def name(self) -> str:
        """Name of the cell's directory."""
        return f"{self.release}-{self.machine}-{self.seed}"


@dataclass(frozen=True)
class Campaign:
    """Results of a campaign.

    Attributes:
        directory: directory with a shard for every cell, the traces, and ``tables/*.parquet``.
        report: all shards combined.
        done: cells that have been completed, by this or an earlier attempt.
        cut: cells that the time limit ended early; their results until then are in the report.
        errors: reason why a cell failed, by the name of the cell.
        left: cells that were not started because the time was up.
        seconds: duration of this attempt.
    """

    directory: Path
    report: CombinedReport
    done: tuple[Cell, ...]
    cut: tuple[Cell, ...]
    errors: dict[str, str]
    left: tuple[Cell, ...]
    seconds: float

    @property
    def comparison(self) -> Comparison:
        """Summary of what all cells have compared."""
        states = ((self.cut, "cut short"), (self.left, "not run"))
        gaps = [f"{counted(len(cells), 'run')} {how} (--max-time)" for cells, how in states if cells]
        if gaps:
            gaps.append(f"the same command with --report {self.directory} continues")
        compared = self.report.comparison
        # Runs that have not begun are no evidence that an implementation cannot be compared.
        idle, count = (() if self.left else compared.idle), compared.count or len(self.left)
        return replace(compared, count=count, gaps=(*gaps, *compared.gaps), idle=idle)

    def settle(self, *, allow_incomplete: bool = False) -> int:
        """Return the exit code of the comparison.

        Raises:
            ToolError: A cell failed, and none diverged.
            NothingComparedError: Nothing was compared.
            IncompleteError: Something was not compared, and that is not allowed.
        """
        if self.errors and self.verdict != "diverges":
            name, why = next(iter(self.errors.items()))
            raise ToolError(f"{counted(len(self.errors), 'run')} of the campaign failed, such as {name}: {why}")
        return self.comparison.settle(allow_incomplete=allow_incomplete)

    @property
    def verdict(self) -> Conclusion:
        """Verdict of all cells; a cell that failed leaves the campaign incomplete."""
        conclusion = self.comparison.conclusion
        return "incomplete" if self.errors and conclusion != "diverges" else conclusion


def cells_of(plan: Plan, seeds: Sequence[int]) -> list[Cell]:
    """Return all cells, machine by machine, so that adjacent cells take about the same time."""
    return [Cell(release, machine, seed) for machine in plan.machines for seed in seeds for release in plan.releases]


def run_on_spark(
    spark: SparkSession, plan: Plan, seeds: Sequence[int], directory: Path, *, progress: Progress | None = None
) -> Campaign:
    """Run every cell of a plan.

    Args:
        spark: session; every worker needs Java, the harness and the directory.
        plan: run plan; ``max_time`` limits the whole campaign, and ``traces`` is replaced by the directory.
        seeds: random seeds; each gets a cell for each release and machine.
        directory: directory that driver and workers share.
        progress: callback that receives the number of finished cells, and their total.

    Raises:
        ToolError: the plan has brokers, which need separate ports and processes; the directory contains another
            campaign or cannot be written; or the worker of a cell died as often as the session allows.
    """
    if any(map(is_server, plan.implementations)):
        raise ToolError("--engine spark does not support brokers; run -i broker with --engine local")
    started = time.monotonic()
    cells = cells_of(plan, seeds)
    shared = directory.absolute()
    plan = replace(plan, traces=shared / "traces")
    try:
        _check_same(shared, plan)
        for leftover in shared.glob(f"{PARTIAL}-*"):
            shutil.rmtree(leftover, ignore_errors=True)
    except OSError as error:
        raise ToolError(f"cannot write {directory}: {error.strerror or error}") from error
    by_name = {cell.name: cell for cell in cells}
    todo = [name for name in by_name if _state(shared, name) != "done"]
    deadline = None if plan.max_time is None else time.time() + plan.max_time
    do = partial(perform, plan, by_name, shared, deadline)
    try:
        run_each(spark, todo, do, progress=progress, is_done=lambda name: (shared / name).is_dir())
    except Exception as error:
        reason = next((line for line in str(error).splitlines() if line.strip()), type(error).__name__)
        raise ToolError(f"the campaign in {directory} was stopped, and continues when restarted: {reason}") from error
    return _collect(shared, cells, time.monotonic() - started)


def _check_same(directory: Path, plan: Plan) -> None:
    """Record the parameters of the campaign. Raise ToolError if the directory has a campaign with other parameters."""
    directory.mkdir(parents=True, exist_ok=True)
    about = {
        "implementations": plan.implementations,
        "profile": asdict(plan.profile),
        "max_examples": plan.max_examples,
        "level": plan.level,
        "kidx": version("kidx"),
        "hypothesis": version("hypothesis"),
    } | {name: value for name, value in (("operations", plan.operations), ("edition", plan.edition)) if value}
    path, text = directory / "campaign.json", json.dumps(about, indent=2)
    if not path.exists():
        path.write_text(f"{text}\n", "utf-8")
        return
    before, now = json.loads(path.read_text("utf-8")), json.loads(text)  # both have lists instead of tuples
    changed = [name for name in now if before.get(name) != now[name]]
    if changed:
        raise ToolError(f"{directory} has a campaign with other {', '.join(changed)}; choose another directory")


def perform(plan: Plan, cells: dict[str, Cell], directory: Path, deadline: float | None, name: str) -> None:
    """Run one cell in a worker. If the cell fails, the reason is recorded; only a worker that dies fails the task.

    Args:
        cells: all cells, by name.
        deadline: time after which no cell is started, in seconds since the epoch, or None.
        name: name of the cell.
    """
    cell, target = cells[name], directory / name
    left = None if deadline is None else deadline - time.time()
    if _state(directory, name) == "done" or (left is not None and left <= 0):
        return
    working = directory / f"{PARTIAL}-{os.getpid()}-{name}"
    working.mkdir(parents=True)
    own = replace(plan, releases=(cell.release,), machines=(cell.machine,), seed=cell.seed, max_time=left)
    try:
        with NdjsonWriter(working) as writer:
            run(own, writer)
    except StaleExpectationError:
        pass  # a stale expectation is no error here, because other cells may show the divergence
    except ToolError as error:
        (working / _ERROR).write_text(str(error), "utf-8")
    if _state(directory, name) in {"cut", "error"}:
        shutil.rmtree(target)  # results of an earlier attempt
    try:
        working.rename(target)
    except OSError:
        if not target.exists():
            raise
        shutil.rmtree(working)  # another attempt at the same cell was faster, with the same result


def _state(directory: Path, name: str) -> _State:
    """Return the state of the cell with a name, according to its files."""
    if not (directory / name).is_dir():
        return "left"
    if (directory / name / _ERROR).exists():
        return "error"
    results = read_stream(directory / name / NAME).results
    return "cut" if any(result.details.get("cut_by_time") for result in results) else "done"


def _collect(directory: Path, cells: Sequence[Cell], seconds: float) -> Campaign:
    """Combine the shards of all cells and write the Parquet tables."""
    by_state: dict[_State, list[Cell]] = {"done": [], "cut": [], "error": [], "left": []}
    for cell in cells:
        by_state[_state(directory, cell.name)].append(cell)
    errors = {cell.name: (directory / cell.name / _ERROR).read_text("utf-8") for cell in by_state["error"]}
    done, cut, left = (tuple(by_state[state]) for state in ("done", "cut", "left"))
    report = CombinedReport([read_stream(directory / cell.name / NAME) for cell in cells if cell in {*done, *cut}])
    write_tables(directory / "tables", report)
    return Campaign(directory, report, done, cut, errors, left, seconds)


def document(campaign: Campaign) -> dict[str, Any]:
    """Return the output of ``conformance run --engine spark --json``."""
    report = campaign.report
    return {
        "verdict": campaign.verdict,
        "directory": str(campaign.directory),
        "cells": len(campaign.done),
        "cut": [cell.name for cell in campaign.cut],
        "left": [cell.name for cell in campaign.left],
        "errors": campaign.errors,
        "results": [result.to_json() for result in report.results],
        "divergences": [divergence.to_json() for divergence in report.divergences],
        "seconds": campaign.seconds,
    }
