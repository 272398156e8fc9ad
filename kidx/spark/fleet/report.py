"""HTML page of a run without external files: statistics, charts, and the worst findings."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from importlib import resources
from typing import TYPE_CHECKING, Any, Final

from jinja2 import Environment, PackageLoader, select_autoescape
from markupsafe import Markup

from kidx.findings import HARMLESS, SEVERITY
from kidx.report.page import displayed
from kidx.verify.verdicts import causes_of

if TYPE_CHECKING:
    from kidx.spark.fleet.summary import Summary

_TITLES: Final = {
    "broker": "By broker",
    "topic": "By topic",
    "release": "By the releases that write exactly these bytes",
    "age": "By age of the file",
}
_LEAST: Final = 1.0
"""Minimum share of a verdict in a bar, in percent, so that one bad file in ten thousand is visible."""
_SHOWN: Final = 40
"""Maximum number of bars in a picture; the bars with the most faults are shown."""


@dataclass(frozen=True)
class Part:
    """Part of a bar: a verdict, the number of its files, and start and width in percent of the bar."""

    verdict: str
    files: int
    start: float
    width: float


@dataclass(frozen=True)
class Bar:
    """Bar of a picture: its parts from the best verdict to the worst; ``trouble`` is the number of faulty files."""

    label: str
    files: int
    trouble: int
    parts: tuple[Part, ...]


@dataclass(frozen=True)
class Picture:
    """Chart of stacked bars; ``left_out`` is the number of bars that are not shown."""

    title: str
    bars: tuple[Bar, ...]
    left_out: int


def picture(title: str, counts: Mapping[str, Mapping[str, int]]) -> Picture:
    """Return a picture of files by value and verdict; the bars with the worst verdicts come first.

    All bars have one length: each shows shares, followed by its numbers.

    Args:
        title: title of the picture.
        counts: files by value and verdict.
    """
    bars = [_bar(label, each) for label, each in sorted(counts.items(), key=lambda item: _gravity(*item))]
    return Picture(title, tuple(bars[:_SHOWN]), max(0, len(bars) - _SHOWN))


def _gravity(label: str, counts: Mapping[str, int]) -> tuple[list[int], int, str]:
    """Return the sort key of a bar: its files of the worst verdict, then of the next one."""
    faults = [-counts.get(verdict, 0) for verdict in reversed(SEVERITY) if verdict not in HARMLESS]
    return faults, -sum(counts.values()), label


def _bar(label: str, counts: Mapping[str, int]) -> Bar:
    parts, start, whole = [], 0.0, sum(counts.values())
    widths = {verdict: max(_LEAST, 100 * files / whole) for verdict, files in counts.items() if files}
    for verdict in sorted(widths, key=SEVERITY.__getitem__):
        width = 100 * widths[verdict] / sum(widths.values())
        parts.append(Part(verdict, counts[verdict], round(start, 3), round(width, 3)))
        start += width
    trouble = sum(files for verdict, files in counts.items() if verdict not in HARMLESS)
    return Bar(label, sum(counts.values()), trouble, tuple(parts))


def render_report(summary: Summary, request: Mapping[str, Any], problems: Iterable[tuple[str, str]]) -> str:
    """Return the page as HTML.

    Args:
        request: options of the run.
        problems: paths that could not be read, with the reasons.
    """
    environment = Environment(
        loader=PackageLoader("kidx.spark.fleet", "templates"),
        autoescape=select_autoescape(default=True),
        finalize=displayed,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    counts = {way: summary.by(way) for way in _TITLES}
    # The numbers at the start of the ages are only for sorting.
    counts["age"] = {age.lstrip("12345 "): each for age, each in counts["age"].items()}
    pictures = [picture(title, counts[way]) for way, title in _TITLES.items()]
    return environment.get_template("report.html").render(
        summary=summary,
        asked=request,
        problems=list(problems),
        pictures=pictures,
        verdicts=list(SEVERITY),
        steps=_next_steps(summary, request),
        causes=sorted(causes_of(summary.worst), key=lambda cause: -SEVERITY[cause.finding.verdict]),
        # The style sheet is this package's own file and contains no text from verified files.
        palette=Markup(resources.files("kidx.report").joinpath("templates", "palette.css").read_text("utf-8")),  # noqa: S704
    )


def _next_steps(summary: Summary, request: Mapping[str, Any]) -> list[str]:
    """Return the next steps after the findings; commands are in backticks."""
    steps = []
    found = {verdict for verdict, files in summary.by_verdict.items() if files} - HARMLESS
    if found:
        release = f" --kafka {request['release']}" if request.get("release") else ""
        steps.append(
            "on each broker named below, verify its directory with "
            f"`kidx verify DIRECTORY{release}`: it says whether the broker may be started, and what to repair"
        )
        steps.append(f"with the broker stopped, `kidx repair DIRECTORY{release} --dry-run` says what can be rebuilt")
    if summary.differing_replicas:
        steps.append("if replicas differ, compare the brokers' logs before one of these replicas is elected leader")
    if found:
        steps.append("after the repair, verify again; `kidx compare` compares two runs")
    return steps
