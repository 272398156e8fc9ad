"""Statistics of a run: files by verdict, and by topic, release, broker and age."""

from __future__ import annotations

from collections import Counter
from dataclasses import astuple, dataclass
from typing import TYPE_CHECKING, Final, cast

from pyspark.sql.functions import expr

from kidx.findings import HARMLESS, SEVERITY, Finding
from kidx.spark.fleet.counting import WAYS

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
