"""A run in figures: files by verdict, and by topic, release, broker and age."""

from __future__ import annotations

from dataclasses import astuple, dataclass
from typing import TYPE_CHECKING, Final, cast

from pyspark.sql.functions import expr

from kidx.findings import HARMLESS, SEVERITY, Finding
from kidx.spark.fleet.tables import SUMMARY, ddl

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from kidx.findings import Verdict

WAYS: Final = ("verdict", "topic", "release", "broker", "age")
"""What files are counted by; ``release`` is the span of releases that write these very bytes."""

_AGES: Final = """
    case when modified is null then 'unknown'
         when modified > current_timestamp() - interval 1 day then '1 under a day'
         when modified > current_timestamp() - interval 7 days then '2 under a week'
         when modified > current_timestamp() - interval 30 days then '3 under a month'
         when modified > current_timestamp() - interval 365 days then '4 under a year'
         else '5 older' end"""

_COUNTS: Final = """
    select case grouping_id() when 15 then 'verdict' when 7 then 'topic' when 11 then 'release'
                              when 13 then 'broker' else 'age' end as `by`,
           coalesce(topic, release, broker, age, verdict) as value,
           verdict, count(*) as files, sum(size) as bytes
    from (select verdict, coalesce(topic, '(no topic)') as topic, if(releases = '', '(none)', releases) as release,
                 broker, {ages} as age, size from {files})
    group by grouping sets ((verdict, topic), (verdict, release), (verdict, broker), (verdict, age), (verdict))
    union all select 'finding', verdict, verdict, count(*), 0 from {findings} group by verdict
    union all select 'read', '', '', count(*), 0 from {partitions}
    union all
    select stack(3, 'segments', '', '', segments, 0L, 'batches', '', '', batches, 0L, 'bytes', '', '', bytes, 0L)
    from (select coalesce(sum(segments), 0) segments, coalesce(sum(batches), 0) batches,
                 coalesce(sum(bytes_read), 0) bytes from {partitions})
"""


@dataclass(frozen=True)
class Count:
    """One row: files of a verdict among those with a value."""

    by: str
    value: str
    verdict: str
    files: int
    bytes: int


@dataclass(frozen=True)
class Summary:
    """The figures of a run.

    Attributes:
        counts: in order of way, value and verdict.
        findings: number of findings by verdict.
        segments, partitions, batches, bytes_read: what was looked at.
        differing_replicas: partitions' replicas that are not what another one is.
        differences: what is different there, the first hundred.
        worst: the hundred worst findings.
    """

    counts: tuple[Count, ...]
    findings: dict[str, int]
    segments: int
    partitions: int
    batches: int
    bytes_read: int
    differing_replicas: int
    differences: tuple[str, ...]
    worst: tuple[Finding, ...]

    @property
    def by_verdict(self) -> dict[str, int]:
        """Files of each verdict."""
        return {count.verdict: count.files for count in self.counts if count.by == "verdict"}

    @property
    def files(self) -> int:
        """How many files there are."""
        return sum(self.by_verdict.values())

    @property
    def readable(self) -> int:
        """How many of them could be looked at."""
        return self.files - self.by_verdict.get("unreadable", 0)

    @property
    def verdicts(self) -> set[Verdict]:
        """All verdicts on files and in findings."""
        return cast("set[Verdict]", {*self.by_verdict, *self.findings})

    def by(self, way: str) -> dict[str, dict[str, int]]:
        """Files by value and verdict, of one of :data:`WAYS`."""
        found: dict[str, dict[str, int]] = {}
        for count in self.counts:
            if count.by == way:
                found.setdefault(count.value, {})[count.verdict] = count.files
        return found


def summarize(
    spark: SparkSession, files: DataFrame, findings: DataFrame, partitions: DataFrame, replicas: DataFrame
) -> tuple[Summary, DataFrame]:
    """Counts the tables of a run; returns the counts as a table of their own, too."""
    query = _COUNTS.replace("{ages}", _AGES)
    rows = spark.sql(query, files=files, findings=findings, partitions=partitions).collect()
    of = {row["by"]: row["files"] for row in rows}
    counts = sorted(
        (
            Count(row["by"], row["value"], row["verdict"], row["files"], row["bytes"] or 0)
            for row in rows
            if row["by"] in WAYS
        ),
        key=lambda count: (WAYS.index(count.by), count.value, count.verdict),
    )
    severity = "case verdict " + " ".join(f"when '{name}' then {-worth}" for name, worth in SEVERITY.items()) + " end"
    by_verdict = {row["verdict"]: row["files"] for row in rows if row["by"] == "finding"}
    worst = findings.where("verdict not in ('exact', 'sound')").orderBy(expr(severity), "path", "slot", "position")
    first = worst.limit(100).collect() if set(by_verdict) - HARMLESS else []
    shown = [row["message"] for row in replicas.orderBy("path").select("message").limit(100).collect()]
    summary = Summary(
        tuple(counts),
        by_verdict,
        of["segments"],
        of["read"],
        of["batches"],
        of["bytes"],
        replicas.count() if len(shown) == 100 else len(shown),
        tuple(shown),
        tuple(Finding(**row.asDict()) for row in first),
    )
    return summary, spark.createDataFrame([astuple(count) for count in counts], ddl(SUMMARY))
