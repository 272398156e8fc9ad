"""Contribution of one partition to the statistics of a run."""

from __future__ import annotations

from collections import defaultdict
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from kidx.verify.run import kind_of

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
