"""Comparison of two runs: the rows that are new, and the rows that are gone.

Rows are matched by columns that do not change when a log grows: findings by file, clause and verdict; rows of campaigns
by release, machine, implementation, clause and verdict.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from py4j.protocol import Py4JError
from pyspark.errors import AnalysisException, PySparkException
from pyspark.sql.functions import expr

from kidx.errors import ToolError
from kidx.spark.fleet.output import Output, reason_of_spark
from kidx.spark.fleet.tables import FINDINGS, PARTITIONS, ddl

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

KEYS: Final[tuple[tuple[str, ...], ...]] = (
    ("path", "clause", "verdict"),  # findings
    ("release", "machine", "implementation", "clause", "verdict"),  # a campaign
)
"""Columns by which rows are matched, for each kind of table."""

BAD: Final = frozenset({"broken", "missing", "unreadable", "diverges"})
"""Verdicts that an operator has to act on."""


@dataclass(frozen=True)
class Trend:
    """Changes between two tables; every row once, with its number of occurrences.

    Attributes:
        key: columns by which rows were matched.
        new: rows only in the later table.
        gone: rows only in the earlier table.
        in_both: The number of different rows in both tables.
        other_topics: topics that were deleted and created again: ``topic``, the ids ``earlier`` and ``later``, and the
            number of directories of ``partitions``. Their findings in the two runs are not about one topic.
    """

    key: tuple[str, ...]
    new: tuple[dict[str, Any], ...]
    gone: tuple[dict[str, Any], ...]
    in_both: int
    other_topics: tuple[dict[str, Any], ...] = ()

    @property
    def is_worse(self) -> bool:
        """True if a fault, or a clause that diverges, is new."""
        return any(row["verdict"] in BAD for row in self.new)

    def to_json(self) -> dict[str, Any]:
        """Return the document of ``kidx compare --json``."""
        return {
            "key": list(self.key),
            "new": list(self.new),
            "gone": list(self.gone),
            "stayed": self.in_both,
            "other_topics": list(self.other_topics),
        }


def compare(earlier: DataFrame, later: DataFrame, key: Sequence[str] | None = None) -> Trend:
    """Compare two tables of findings, or two of campaigns.

    Args:
        later: a table with the same columns.
        key: columns by which rows are matched; None for the first of :data:`KEYS` that both tables have.

    Raises:
        ToolError: the tables have no known key in common, or one cannot be read.
    """
    shared = set(earlier.columns) & set(later.columns)
    chosen = tuple(key) if key is not None else next((each for each in KEYS if shared.issuperset(each)), ())
    if not chosen or not shared.issuperset(chosen):
        raise ToolError(
            "the two tables are not of the same kind: both need the columns of findings or of campaigns, and share only"
            f" {', '.join(sorted(shared)) or 'none'}"
        )
    before = earlier.groupBy(*chosen).count().withColumnRenamed("count", "before")
    after = later.groupBy(*chosen).count().withColumnRenamed("count", "after")
    same = [before[name].eqNullSafe(after[name]) for name in chosen]
    try:
        new = after.join(before, same, "left_anti").orderBy(*chosen).collect()
        gone = before.join(after, same, "left_anti").orderBy(*chosen).collect()
        in_both = after.join(before, same, "left_semi").count()
    except (PySparkException, Py4JError) as error:
        raise ToolError(f"the tables cannot be compared: {reason_of_spark(error)}") from error
    return Trend(chosen, tuple(row.asDict() for row in new), tuple(row.asDict() for row in gone), in_both)


def read_tables(spark: SparkSession, earlier: str, later: str) -> tuple[DataFrame, DataFrame]:
    """Return two Parquet tables by their paths or URLs; a table without rows gets the columns of the other.

    Raises:
        ToolError: a table cannot be read.
    """
    before, after = _read(spark, earlier), _read(spark, later)
    columns = next((frame.schema for frame in (before, after) if frame is not None), ddl(FINDINGS))
    frames = [spark.createDataFrame([], columns) if frame is None else frame for frame in (before, after)]
    return frames[0], frames[1]


def other_topics(spark: SparkSession, earlier: str, later: str) -> tuple[dict[str, Any], ...]:
    """Return the topics that were deleted and created again between two runs, given as tables of findings.

    See :attr:`Trend.other_topics`. A run without topic ids, as of an earlier version of kidx, has none.

    Raises:
        ToolError: a table cannot be read.
    """
    before, after = (_partitions(spark, path) for path in (earlier, later))
    if before is None or after is None:
        return ()
    ids = before.selectExpr("path", "topic_id as earlier").join(after.withColumnRenamed("topic_id", "later"), "path")
    again = ids.where("earlier <> later").groupBy("topic", "earlier", "later").agg(expr("count(*) as partitions"))
    try:
        return tuple(row.asDict() for row in again.orderBy("topic", "earlier", "later").collect())
    except (PySparkException, Py4JError) as error:
        raise ToolError(f"the tables cannot be compared: {reason_of_spark(error)}") from error


def _partitions(spark: SparkSession, path: str) -> DataFrame | None:
    """Return path, topic and topic id of the partitions of a run, by its table of findings; None without them."""
    above, name = _run_of(path)
    if above is None:
        return None
    if "://" in path:
        return Output(spark, above).read("partitions", name).select("path", "topic", "topic_id")
    try:
        frame = spark.read.schema(ddl(PARTITIONS)).parquet(f"{above}/partitions/run_id={name}")
        frame = frame.select("path", "topic", "topic_id")
        assert frame.schema is not None  # Spark Connect reads the schema only here
    except AnalysisException:
        return None
    return frame


def _run_of(path: str) -> tuple[str | None, str]:
    """Return the output of a run and the run's id, by its table of findings; None for other tables."""
    directory, _, name = path.rstrip("/").rpartition("/run_id=")
    above, _, table = directory.rpartition("/")
    return (above or ("/" if directory.startswith("/") else ".") if table == "findings" else None), name


def _read(spark: SparkSession, path: str) -> DataFrame | None:
    """Return a table; None if it was written without rows, so that no file has its columns."""
    above, name = _run_of(path)
    if "://" in path and above is not None:
        return Output(spark, above).read("findings", name)
    try:
        frame = spark.read.parquet(path)
        assert frame.schema is not None  # Spark Connect reads the schema only here
    except Exception as error:
        if isinstance(error, AnalysisException) and error.getCondition() == "UNABLE_TO_INFER_SCHEMA":
            return None
        raise ToolError(f"cannot read the Parquet table {path}: {reason_of_spark(error)}") from error
    return frame
