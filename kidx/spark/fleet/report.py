"""A run as one HTML page that needs nothing else: figures, pictures, and the places to look at first."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from jinja2 import Environment, PackageLoader, select_autoescape

from kidx.findings import SEVERITY
from kidx.report.page import shown

if TYPE_CHECKING:
    from kidx.spark.fleet.summary import Summary

_TITLES: Final = {
    "broker": "By broker",
    "topic": "By topic",
    "release": "By the releases that write these very bytes",
    "age": "By age of the file",
}
_SHOWN: Final = 40
"""Values of a picture at most: those with the most trouble."""


@dataclass(frozen=True)
class Part:
    """A piece of a bar: its verdict, files, and where it lies in percent of the widest bar."""

    verdict: str
    files: int
    start: float
    width: float


@dataclass(frozen=True)
class Bar:
    """A value of a picture, from best verdict to worst."""

    label: str
    files: int
    trouble: int
    parts: tuple[Part, ...]


@dataclass(frozen=True)
class Picture:
    """Stacked bars."""

    title: str
    bars: tuple[Bar, ...]
    left_out: int


def picture(title: str, counts: Mapping[str, Mapping[str, int]]) -> Picture:
    """A picture of files by value and verdict: values with trouble first, then the largest.

    Args:
        title: above it.
        counts: files by value and verdict.
    """
    widest = max((sum(each.values()) for each in counts.values()), default=1)
    bars = [_bar(label, each, widest) for label, each in counts.items()]
    bars.sort(key=lambda bar: (-bar.trouble, -bar.files, bar.label))
    return Picture(title, tuple(bars[:_SHOWN]), max(0, len(bars) - _SHOWN))


def _bar(label: str, counts: Mapping[str, int], widest: int) -> Bar:
    parts, start = [], 0.0
    for verdict in sorted(counts, key=SEVERITY.__getitem__):
        width = 100 * counts[verdict] / widest
        parts.append(Part(verdict, counts[verdict], round(start, 3), round(width, 3)))
        start += width
    trouble = sum(files for verdict, files in counts.items() if SEVERITY[verdict] > SEVERITY["sound"])
    return Bar(label, sum(counts.values()), trouble, tuple(parts))


def render_report(summary: Summary, asked: Mapping[str, Any], problems: Iterable[tuple[str, str]]) -> str:
    """The page as HTML.

    Args:
        summary: of the run.
        asked: what the run was asked.
        problems: paths that could not be looked at, and why.
    """
    environment = Environment(
        loader=PackageLoader("kidx.spark.fleet", "templates"),
        autoescape=select_autoescape(default=True),
        finalize=shown,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    counts = {way: summary.by(way) for way in _TITLES}
    counts["age"] = {age.lstrip("12345 "): each for age, each in counts["age"].items()}  # which sort by their number
    pictures = [picture(title, counts[way]) for way, title in _TITLES.items()]
    return environment.get_template("report.html").render(
        summary=summary, asked=asked, problems=list(problems), pictures=pictures, verdicts=list(SEVERITY)
    )
