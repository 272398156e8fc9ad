"""The HTML page: one file that loads nothing else, for a browser, a phone and a printer.

What it shows is decided here and how it looks in ``templates/``: ``report.html.j2`` with ``report.css`` and
``report.js`` put into it, behind what it shares with the page of ``kidx verify``. Without scripts everything can be
read; they only filter and copy.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Final, NamedTuple

from conformance.clauses import load_chapters, load_clauses
from conformance.report.combined import STRONGEST_FIRST, Combined, Place
from conformance.report.divergence import describe
from conformance.report.markdown import SIGNS
from conformance.report.rendering import render, trace_text
from kidx.printable import printable

if TYPE_CHECKING:
    from collections import Counter

    from conformance.clauses import Clause
    from conformance.events import Diverged, Verdict

MEANINGS: Final = {
    "conforms": "was exercised, and everything was equal",
    "diverges": "was exercised, and something differed",
    "expected-divergence": "differed in a way that is known, with a reason and a link",
    "unsupported": "the implementation does not have the operations",
    "not-run": "nothing exercised it, so nothing is said",
}


@dataclass(frozen=True)
class Difference:
    """A difference as the page tells it, and the command and the document that replay it."""

    anchor: str
    event: Diverged
    text: str
    trace: str

    @property
    def command(self) -> str:
        """The command on one line: what a name brings along must not look like the page's own words."""
        return printable(self.event.replay)


class Cell(NamedTuple):
    """A verdict in the matrix; ``link`` leads to the difference, if there is one."""

    verdict: Verdict | None
    link: str


@dataclass(frozen=True)
class Row:
    """A clause and its cells, a release each."""

    clause: Clause
    cells: list[Cell]
    steps: list[int]

    @property
    def exercised(self) -> int:
        """Steps that exercised it, in all releases together."""
        return sum(self.steps)


@dataclass(frozen=True)
class Chapter:
    """A file of the catalogue in one implementation's matrix."""

    section: str
    title: str
    rows: list[Row]

    @property
    def counts(self) -> dict[Verdict, int]:
        """How many cells have each verdict, those that none has left out."""
        cells = [cell.verdict for row in self.rows for cell in row.cells]
        return {verdict: cells.count(verdict) for verdict in STRONGEST_FIRST if verdict in cells}

    @property
    def is_open(self) -> bool:
        """Whether there is something to see in it."""
        return any(verdict != "not-run" for verdict in self.counts)


class Page:
    """What the template asks for."""

    def __init__(self, report: Combined) -> None:
        self.report = report

    @cached_property
    def differences(self) -> list[Difference]:
        """Every difference, with its trace where the file is still there."""
        found: list[Difference] = []
        for stream in self.report.streams:
            for event in stream.divergences:
                trace = trace_text(stream.path.parent, event.trace)
                found.append(Difference(f"difference-{len(found) + 1}", event, describe(event), trace))
        return found

    def releases_of(self, event: Diverged) -> str:
        """In how many releases a difference shows, or in which one."""
        return f"{len(event.releases)} releases" if len(event.releases) > 1 else str(event.failure["release"])

    def chapters(self, implementation: str) -> list[Chapter]:
        """An implementation's matrix."""
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
        """The differences in steps that exercised a clause."""
        return [difference for difference in self.differences if clause in difference.event.clauses]

    @cached_property
    def clauses(self) -> list[Clause]:
        """The clauses of any matrix, in the catalogue's order."""
        shown = {clause.id for name in self.report.implementations for clause in self.report.rows(name)}
        return [clause for clause in load_clauses().values() if clause.id in shown]

    def exercised(self, clause: str) -> list[tuple[str, str, Verdict, int]]:
        """Implementation, releases, verdict and steps of a clause; neighbours that are alike share a line."""
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

    def counts(self, implementation: str, release: str | None = None) -> Counter[Verdict]:
        """As :meth:`Combined.count`."""
        return self.report.count(implementation, release)

    @property
    def frequencies(self) -> list[tuple[str, int]]:
        """How many clauses were exercised by how many steps: none, up to 9, up to 99 and so on, of all cells."""
        counts = self.report.exercised
        applicable = list(self.report.verdicts)
        limits = [("none", 0, 0), ("1–9", 1, 9), ("10–99", 10, 99), ("100–999", 100, 999), ("1 000–9 999", 1000, 9999)]
        limits.append(("10 000 and more", 10_000, 1 << 62))
        return [(name, sum(1 for place in applicable if low <= counts[place] <= high)) for name, low, high in limits]


def _span(releases: list[str]) -> str:
    return releases[0] if len(releases) == 1 else f"{releases[0]} – {releases[-1]}"


def html(report: Combined) -> str:
    """The page."""
    return render(
        "report.html.j2",
        styles=["report.css"],
        scripts=["report.js"],
        page=Page(report),
        report=report,
        order=STRONGEST_FIRST,
        signs=SIGNS,
        meanings=MEANINGS,
    )
