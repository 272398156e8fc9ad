"""Statistics of a run: files by verdict, and by topic, release, broker and age."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import astuple, dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final, cast

from pyspark.sql.functions import expr

from kidx.findings import HARMLESS, SEVERITY, Finding
from kidx.verify.run import kind_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from kidx.findings import Verdict

_SHOWN: Final = 100
"""Maximum number of findings, and of differences, on the page."""


@dataclass(frozen=True)
class Count:
    """Row of the summary: number and size of the files with one verdict and one value, such as one topic.

    ``by`` is one of :data:`WAYS`, or the name of a number.
    """

    by: str
    value: str
    verdict: str
    files: int
    bytes: int


@dataclass(frozen=True)
class Summary:
    """Statistics of a run.

    Attributes:
        counts: counts in order of way, value and verdict.
        findings: number of findings by verdict.
        kinds: number of files by suffix, or name without one, and verdict.
        segments, partitions, batches, bytes_read: counts of the whole run.
        differing_replicas: number of replicas that differ from another replica of their partition.
        differences: the first hundred differences.
        worst: the hundred worst findings.
    """

    counts: tuple[Count, ...]
    findings: dict[str, int]
    kinds: dict[tuple[str, Verdict], int]
    segments: int
    partitions: int
    batches: int
    bytes_read: int
    differing_replicas: int
    differences: tuple[str, ...]
    worst: tuple[Finding, ...]

    @property
    def by_verdict(self) -> dict[str, int]:
        """Number of files by verdict."""
        return {count.verdict: count.files for count in self.counts if count.by == "verdict"}

    @property
    def files(self) -> int:
        """Number of files."""
        return sum(self.by_verdict.values())

    @property
    def readable(self) -> int:
        """Number of readable files."""
        return self.files - self.by_verdict.get("unreadable", 0)

    @property
    def verdicts(self) -> set[Verdict]:
        """All verdicts on files and in findings."""
        return cast("set[Verdict]", {*self.by_verdict, *self.findings})

    def by(self, way: str) -> dict[str, dict[str, int]]:
        """Return the number of files by value and verdict for one of :data:`WAYS`."""
        found: dict[str, dict[str, int]] = {}
        for count in self.counts:
            if count.by == way:
                found.setdefault(count.value, {})[count.verdict] = count.files
        return found


def summarize(settled: DataFrame, problems: int) -> Summary:
    """Return the statistics of a run, summed over its partitions.

    Args:
        settled: a row for every partition.
        problems: paths that could not be read, which are findings, too.
    """
    counts = settled.selectExpr("inline(counts)").repartition(1, "by", "value", "verdict")
    rows = counts.groupBy("by", "value", "verdict").agg(expr("sum(files) files"), expr("sum(bytes) bytes")).collect()
    every = sorted((Count(**row.asDict()) for row in rows), key=astuple)
    of = {each.by: each.files for each in every}
    findings = Counter({each.verdict: each.files for each in every if each.by == "finding"})
    findings += Counter({"unreadable": problems})
    severity = "case verdict " + " ".join(f"when '{name}' then {-worth}" for name, worth in SEVERITY.items()) + " end"
    first, shown = [], []
    if set(findings) - HARMLESS:
        faults = settled.selectExpr("inline(findings)").where(f"verdict not in {tuple(HARMLESS)}")
        first = faults.orderBy(expr(severity), "path", "slot", "position").limit(_SHOWN).collect()
    if of["differences"]:
        different = settled.selectExpr("inline(differences)").orderBy("path").select("message")
        shown = [row["message"] for row in different.limit(_SHOWN).collect()]
    return Summary(
        tuple(sorted((each for each in every if each.by in WAYS), key=lambda each: WAYS.index(each.by))),
        dict(findings),
        {(each.value, cast("Verdict", each.verdict)): each.files for each in every if each.by == "kind"},
        of["segments"],
        of["partitions"],
        of["batches"],
        of["bytes_read"],
        of["differences"],
        tuple(shown),
        tuple(Finding(**row.asDict()) for row in first),
    )


WAYS: Final = ("verdict", "topic", "release", "broker", "age")
"""Groups in which files are counted; ``release`` is the span of releases that write exactly these bytes."""

_AGES: Final = {
    timedelta(days=1): "1 under a day",
    timedelta(days=7): "2 under a week",
    timedelta(days=30): "3 under a month",
    timedelta(days=365): "4 under a year",
}


def count(settled: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the rows of a partition for the summary: rows for :data:`WAYS`, and for the statistics of the run.

    Args:
        settled: the final verdicts on all replicas of one partition: its files, its findings, the differences between
            replicas, and how much was read; a row of :data:`kidx.spark.fleet.tables.SETTLED` without its counts.
    """
    counts: dict[tuple[str, str, str], list[int]] = defaultdict(lambda: [0, 0])
    now = datetime.now(UTC)

    def add(by: str, value: str, verdict: str, files: int, size: int) -> None:
        found = counts[by, value, verdict]
        found[0] += files
        found[1] += size

    alike: dict[tuple[str, ...], list[int]] = defaultdict(lambda: [0, 0])
    for file in settled["files"]:
        topic, release = file["topic"] or "(no topic)", file["releases"] or "(none)"
        age, kind = _age(file["modified"], now), kind_of(file["file"])
        sums = alike[file["verdict"], topic, release, file["broker"], age, kind]
        sums[0] += 1
        sums[1] += file["size"] or 0
    for values, (files, size) in alike.items():
        for way, value in zip((*WAYS, "kind"), values, strict=True):
            add(way, value, values[0], files, size)
    for finding in settled["findings"]:
        add("finding", finding["verdict"], finding["verdict"], 1, 0)
    figures = {"partitions": 1, "differences": len(settled["differences"])}
    figures |= {name: settled[name] for name in ("segments", "batches", "bytes_read")}
    for name, number in figures.items():
        add(name, "", "", number, 0)
    return [
        {"by": by, "value": value, "verdict": verdict, "files": files, "bytes": size}
        for (by, value, verdict), (files, size) in counts.items()
    ]


def _age(modified: datetime | None, now: datetime) -> str:
    if modified is None:
        return "unknown"
    return next((age for limit, age in _AGES.items() if modified > now - limit), "5 older")
