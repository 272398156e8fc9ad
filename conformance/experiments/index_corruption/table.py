"""Results of brokers that start with corrupt index files, as a Markdown table and as JSON."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, Final

from conformance.report.markdown_escape import table

if TYPE_CHECKING:
    from conformance.experiments.index_corruption.cases import Case
    from conformance.experiments.index_corruption.experiment import Outcome

_HEADINGS: Final = ("shutdown", "segment", "file", "corruption")
"""Headings of the columns for a case's shutdown, place, suffix and corruption."""
_LEGEND: Final = """\
A cell states what the broker does with the file (*kept* unchanged, *rebuilt* from the log, re-created but *emptied*,
*gone*), or that it *does not start*. What the worst lookup costs the consumer follows: records that it never reads
after `offsetsForTimes` (*missed*), records before the correct position (*reread*), offsets at which a fetch returns
something other than the next record (*bad fetches*). No cost: every response was correct. *appends* is the error that a
producer gets. *Sealed*: an inactive segment. **Bold**: kidx had not predicted it.
"""


def to_json(outcomes: Iterable[Outcome]) -> list[dict[str, Any]]:
    """Return one object for each case and release."""
    return [
        {
            "release": outcome.release,
            "shutdown": outcome.case.shutdown,
            "place": outcome.case.place,
            "suffix": outcome.case.suffix,
            "damage": outcome.case.corruption,
            "broker_starts": outcome.broker_starts,
            "repair": outcome.repair,
            **outcome.cost._asdict(),
            "bad_fetches": outcome.bad_fetches,
            "appends": outcome.appends,
            "as_predicted": outcome.as_predicted,
            "differences": list(outcome.differences),
            "error": outcome.error,
        }
        for outcome in outcomes
    ]


def format_outcome(outcome: Outcome) -> str:
    """Format one cell."""
    if not outcome.broker_starts:
        return "does not start"
    costs = (
        ("missed", outcome.cost.missed),
        ("reread", outcome.cost.reread),
        ("bad fetches", outcome.bad_fetches),
    )
    parts = [outcome.repair, *(f"{what} {count}" for what, count in costs if count)]
    if outcome.appends != "ok":
        parts.append(f"appends: {outcome.appends}")
    return ", ".join(parts)


def markdown(outcomes: Sequence[Outcome]) -> str:
    """Return a summary of each release, and a row for each case with a column for each set of releases that agree."""
    releases = list(dict.fromkeys(outcome.release for outcome in outcomes))
    cases: dict[Case, dict[str, Outcome]] = {}
    for outcome in outcomes:
        cases.setdefault(outcome.case, {})[outcome.release] = outcome
    lines = [_LEGEND, *_summary(outcomes, releases), ""]
    columns: dict[tuple[str, ...], list[str]] = {}
    for release in releases:
        columns.setdefault(tuple(_cell(by_release.get(release)) for by_release in cases.values()), []).append(release)
    headings = [*_HEADINGS, *(", ".join(agreeing) for agreeing in columns.values())]
    rows = (
        [case.shutdown, case.place, f"`{case.suffix}`", case.corruption, *cells]
        for case, cells in zip(cases, zip(*columns, strict=True), strict=True)
    )
    return "\n".join([*lines, *table(headings, rows, numbers=len(headings))]) + "\n"


def _summary(outcomes: Iterable[Outcome], releases: Iterable[str]) -> list[str]:
    header = ["release", "cases", "broker starts", "wrong lookups", "max missed", "max reread", "predicted"]
    rows = []
    by_release: dict[str, list[Outcome]] = {}
    for outcome in outcomes:
        by_release.setdefault(outcome.release, []).append(outcome)
    for release in releases:
        some = by_release[release]
        counts = (
            len(some),
            sum(outcome.broker_starts for outcome in some),
            sum(outcome.cost.wrong > 0 or outcome.bad_fetches > 0 for outcome in some),
            max(outcome.cost.missed for outcome in some),
            max(outcome.cost.reread for outcome in some),
        )
        predicted = sum(outcome.as_predicted for outcome in some)
        rows.append([release, *map(str, counts), f"{predicted}/{len(some)}"])
    return table(header, rows, numbers=len(header))


def _cell(outcome: Outcome | None) -> str:
    if outcome is None:
        return ""
    parts = format_outcome(outcome)
    return parts if outcome.as_predicted else f"**{parts}**"
