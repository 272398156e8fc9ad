"""Engine of ``kidx verify --engine spark``: a run on Spark whose result has the form of the local engine's result."""

from __future__ import annotations

import atexit
import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, TypeVar, cast

from platformdirs import user_state_path
from pyspark.sql import SparkSession
from rich.console import Console

from kidx.discovery import Problem
from kidx.findings import COLUMNS, HARMLESS, Finding
from kidx.printable import counted, printable
from kidx.spark.fleet.run import FleetVerification, Progress, check_run_id, verify
from kidx.spark.starting import FEW_ROWS, start_session
from kidx.verify import FileVerdict, Interval, Verification

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from kidx.dialect import Dialect
    from kidx.findings import Verdict

_T = TypeVar("_T")
_ORDER = ("path", "slot", "position", "offset", "timestamp", "clause", "verdict", "message", "expected", "actual")


@dataclass(frozen=True)
class _Rows(Generic[_T]):
    """Rows of a table, which are fetched from Spark at each iteration; ``made`` converts a row."""

    frame: DataFrame
    made: Callable[[Any], _T]

    def __iter__(self) -> Iterator[_T]:
        return map(self.made, self.frame.toLocalIterator())

    def __len__(self) -> int:
        return self.frame.count()


class FleetResult(Verification):
    """Result of a run in the form that ``kidx verify`` prints; Spark counts, and this process holds no segment."""

    def __init__(self, result: FleetVerification) -> None:
        summary, self._result = result.summary, result
        files = result.frame("files").orderBy("path")
        self._findings = result.frame("findings").orderBy(*_ORDER)
        super().__init__(
            cast("list[FileVerdict]", _Rows(files, _file)),
            cast("list[Finding]", _Rows(self._findings, _finding)),
            [Problem(Path(path), message) for path, message in result.problems],
            summary.partitions,
            summary.segments,
            summary.batches,
            summary.bytes_read,
            [Problem(Path(path), message) for path, message in result.left_out],
        )

    @property
    def verdict(self) -> Verdict:
        """Worst verdict on any file or path."""
        return self._result.verdict

    @property
    def exit_code(self) -> int:
        """Exit code, as :attr:`kidx.verify.Verification.exit_code`."""
        summary = self._result.summary
        if not summary.readable and (self.problems or summary.files or not summary.partitions):
            return 2
        return 0 if self.verdict in HARMLESS else 1

    def counts(self) -> Counter[tuple[str, Verdict]]:
        """Return the number of files by suffix, or name of a file without one, and verdict."""
        return Counter(self._result.summary.kinds)

    def finding_counts(self) -> Counter[Verdict]:
        """Return the number of findings by verdict."""
        return Counter(cast("dict[Verdict, int]", self._result.summary.findings))

    def faults(self, most: int | None = None) -> list[Finding]:
        """Return the findings that are not remarks, in order; at most the first ``most``."""
        faults = self._findings.where(f"verdict not in {tuple(HARMLESS)}")
        return [_finding(row) for row in (faults if most is None else faults.limit(most)).collect()]


def _finding(row: Any) -> Finding:
    return Finding(**{name: row[name] for name in COLUMNS})


def _file(row: Any) -> FileVerdict:
    interval = None if row.interval_least is None else Interval(row.interval_least, row.interval_most)
    return FileVerdict(row.path, row.verdict, row.releases, row.why, row.entries, row.size, interval)


def verify_paths(
    paths: Iterable[str | os.PathLike[str]],
    *,
    release: Dialect | None = None,
    index_interval_bytes: int | None = None,
    out: str | None = None,
    run_id: str | None = None,
    shown: bool = True,
    marked: bool = False,
) -> Verification:
    """Verify paths on Spark, as :func:`kidx.verify.verify_paths` does. The session remains open to read the result.

    Args:
        paths: paths to verify.
        release: release for the verdict *exact*.
        index_interval_bytes: the topics' setting.
        out: directory or URL of the tables; the user's state directory if None.
        run_id: name of the run; the time if None.
        shown: True to print the progress, and the location of the tables, on stderr.
        marked: True to verify directories of deleted topics and strays, too.

    Raises:
        ToolError: an error of :func:`kidx.spark.fleet.verify`, or Spark does not start.
    """
    console = Console(stderr=True, quiet=not shown)
    run_id = run_id or datetime.now(UTC).strftime("%Y-%m-%dT%H.%M.%SZ")
    check_run_id(run_id)
    running = SparkSession.getActiveSession()
    spark = start_session(app_name="kidx verify", local_settings=FEW_ROWS, quiet=True)
    if running is None:
        atexit.register(spark.stop)
    result = verify(
        spark,
        paths,
        out=user_state_path("kidx") / "fleet" if out is None else out,
        run_id=run_id,
        release=release,
        index_interval_bytes=index_interval_bytes,
        progress=_lines(console),
        marked=marked,
    )
    differences = (f"replicas differ: {message}" for message in result.summary.differences)
    for line in (f"run {result.run_id}: {result.report}", *differences):
        console.print(printable(line), highlight=False, markup=False, soft_wrap=True)
    return FleetResult(result)


def _lines(console: Console) -> Progress:
    """Return a function that prints a line after each tenth of the work."""
    printed = -1

    def report(done: int, total: int) -> None:
        nonlocal printed
        if total and (tenths := 10 * done // total) != printed:
            printed = tenths
            console.print(f"verified {done:,} of {counted(total, 'segment')}", highlight=False)

    return report
