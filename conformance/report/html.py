"""HTML page of a report: one file that loads nothing else.

This module provides the content and ``templates/`` the design: ``report.html.j2`` includes ``report.css`` and
``report.js`` after the parts shared with the page of ``kidx verify``. The page is readable without scripts: they only
filter and copy.

Another page displays an ``events.ndjson`` file dropped on it. It is one file, too, and loads and sends nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Final, NamedTuple

from conformance.attribution.tables import machines_of
from conformance.clauses import load_chapters, load_clauses
from conformance.events import FORMAT, READABLE
from conformance.report.combined import VERDICTS_BY_SEVERITY, CombinedReport, Place
from conformance.report.divergence import format_divergence
from conformance.report.markdown import VERDICT_SYMBOLS, headline
from conformance.report.rendering import render, trace_text
from conformance.verdict import VERDICT_LABELS
from kidx.printable import printable

if TYPE_CHECKING:
    from conformance.clauses import Clause
    from conformance.events import Diverged, Verdict

VERDICT_LEGEND: Final = {
    "conforms": "was exercised, and everything was equal",
    "diverges": "was exercised, and something differed",
    "expected-divergence": "diverged in a known way, with a reason and a link",
    "tolerated": "differed in a way that the level of the run leaves open, and does not count",
    "could-not-run": "a step exercised it, and the implementation had failed before, or rejected what it declares",
    "unsupported": "the implementation does not have the operations",
    "not-run": "nothing exercised it, so nothing is known",
}


@dataclass(frozen=True)
class Difference:
    """Divergence on the page, with the command and the document that replay it."""

    anchor: str
    event: Diverged
    text: str
    trace: str

    @property
    def command(self) -> str:
        """Replay command on one line: a line break in a name must not look like text of the page."""
        return printable(self.event.replay)


class Cell(NamedTuple):
    """Verdict in the matrix; ``link`` is the anchor of the divergence, or empty."""

    verdict: Verdict | None
    link: str


@dataclass(frozen=True)
class Row:
    """Clause with one cell per release, and with the number of steps that exercised it in each."""

    clause: Clause
    cells: list[Cell]
    steps: list[int]

    @property
    def exercised(self) -> int:
        """Number of steps that exercised the clause, in all releases together."""
        return sum(self.steps)


@dataclass(frozen=True)
class Chapter:
    """Chapter of the catalogue, as a table in one implementation's matrix."""

    section: str
    title: str
    rows: list[Row]

    @property
    def counts(self) -> dict[Verdict, int]:
        """Number of cells with each verdict, without verdicts that no cell has."""
        cells = [cell.verdict for row in self.rows for cell in row.cells]
        return {verdict: cells.count(verdict) for verdict in VERDICTS_BY_SEVERITY if verdict in cells}

    @property
    def is_open(self) -> bool:
        """True if the page shows the chapter unfolded, because a verdict is not ``not-run``."""
        return any(verdict != "not-run" for verdict in self.counts)


class Page:
    """Data of the template."""

    def __init__(self, report: CombinedReport) -> None:
        self.report = report

    @cached_property
    def differences(self) -> list[Difference]:
        """All divergences, with their traces if the files still exist."""
        found: list[Difference] = []
        for stream in self.report.streams:
            for event in stream.divergences:
                trace = trace_text(stream.path.parent, event.trace)
                found.append(Difference(f"difference-{len(found) + 1}", event, format_divergence(event), trace))
        return found

    def releases_of(self, event: Diverged) -> str:
        """Return the number of releases with a divergence, or the name of the release if there is only one."""
        return f"{len(event.releases)} releases" if len(event.releases) > 1 else str(event.failure["release"])

    def chapters(self, implementation: str) -> list[Chapter]:
        """Return an implementation's matrix."""
        titles = load_chapters()
        found: dict[str, Chapter] = {}
        for clause in self.report.rows(implementation):
            chapter = found.setdefault(clause.chapter, Chapter(clause.section, titles[clause.chapter], []))
            chapter.rows.append(self._row(implementation, clause))
        return list(found.values())

    def _row(self, implementation: str, clause: Clause) -> Row:
        cells, steps = [], []
        for release in self.report.tested(implementation):
            verdict = self.report.verdict_of(implementation, release, clause)
            cells.append(Cell(verdict, self._link(implementation, release, clause.id) if verdict == "diverges" else ""))
            steps.append(self.report.exercised[Place(implementation, release, clause.id)])
        return Row(clause, cells, steps)

    def _link(self, implementation: str, release: str, clause: str) -> str:
        for difference in self.differences:
            event = difference.event
            releases = event.releases or (event.failure["release"],)
            if event.implementation == implementation and release in releases and clause in event.clauses:
                return difference.anchor
        return ""

    def differences_of(self, clause: str) -> list[Difference]:
        """Return the divergences in steps that exercised a clause."""
        return [difference for difference in self.differences if clause in difference.event.clauses]

    @cached_property
    def clauses(self) -> list[Clause]:
        """Clauses of any matrix, in the catalogue's order."""
        shown = {clause.id for name in self.report.implementations for clause in self.report.rows(name)}
        return [clause for clause in load_clauses().values() if clause.id in shown]

    def exercised(self, clause: str) -> list[tuple[str, str, Verdict, int]]:
        """Return implementation, releases, verdict and steps of a clause; adjacent equal releases share a row."""
        found: list[tuple[str, str, Verdict, int]] = []
        for name in self.report.implementations:
            same: list[tuple[list[str], Verdict, int]] = []
            for release in self.report.tested(name):
                verdict = self.report.verdict_of(name, release, load_clauses()[clause])
                if verdict is None:
                    continue
                steps = self.report.exercised[Place(name, release, clause)]
                if same and same[-1][1:] == (verdict, steps):
                    same[-1][0].append(release)
                else:
                    same.append(([release], verdict, steps))
            found += [(name, _span(releases), verdict, steps) for releases, verdict, steps in same]
        return found

    @property
    def frequencies(self) -> list[tuple[str, int]]:
        """Number of cells by the number of steps that exercised them: none, up to 9, up to 99 and so on."""
        counts = self.report.exercised
        applicable = list(self.report.verdicts)
        limits = [("none", 0, 0), ("1–9", 1, 9), ("10–99", 10, 99), ("100–999", 100, 999), ("1 000–9 999", 1000, 9999)]
        limits.append(("10 000 and more", 10_000, 1 << 62))
        return [(name, sum(1 for place in applicable if low <= counts[place] <= high)) for name, low, high in limits]


def _span(releases: list[str]) -> str:
    return releases[0] if len(releases) == 1 else f"{releases[0]} – {releases[-1]}"


def html(report: CombinedReport) -> str:
    """Return the page."""
    return render(
        "report.html.j2",
        styles=["report.css"],
        scripts=["report.js"],
        page=Page(report),
        machines_of=machines_of,
        report=report,
        order=VERDICTS_BY_SEVERITY,
        signs=VERDICT_SYMBOLS,
        meanings=VERDICT_LEGEND,
        labels=VERDICT_LABELS,
        headline=headline,
    )


def drop_page() -> str:
    """Return the HTML page."""
    return render(
        "drop.html.j2",
        styles=["report.css", "drop.css"],
        scripts=["drop.js"],
        format=FORMAT,
        versions=list(READABLE),
        verdicts=list(VERDICTS_BY_SEVERITY),
        labels=dict(VERDICT_LABELS),
        signs=VERDICT_SYMBOLS,
        meanings=VERDICT_LEGEND,
    )
