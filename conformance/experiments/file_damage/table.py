"""The results of all cases, as a table for people (Markdown) and for programs (JSON)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from conformance.experiments.file_damage.cases import Case
    from conformance.experiments.file_damage.experiment import Outcome

_HEADINGS: Final = ("shutdown", "segment", "file", "what was done to it")
_LEGEND: Final = """\
A cell says what the broker makes of the file (*kept* as it is, *rebuilt* from the log, made anew but *emptied*), and
what that costs a consumer in the worst of all look-ups: records that it never reads after `offsetsForTimes` (*misses*),
records before the right place (*rereads*), offsets from which a fetch gets something else than the next record
(*bad fetches*). Nothing more: every answer was right. **Bold**: kidx had not predicted it.
"""


def to_json(outcomes: Iterable[Outcome]) -> list[dict[str, Any]]:
    """One object a case and release."""
    return [
        {
            "release": outcome.release,
            **outcome.case._asdict(),
            "comes_up": outcome.comes_up,
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


def in_words(outcome: Outcome) -> str:
    """One cell."""
    if not outcome.comes_up:
        return "does not come up"
    costs = (
        ("misses", outcome.cost.missed),
        ("rereads", outcome.cost.reread),
        ("bad fetches", outcome.bad_fetches),
    )
    said = [outcome.repair, *(f"{what} {count}" for what, count in costs if count)]
    if outcome.appends != "ok":
        said.append(f"appends: {outcome.appends}")
    return ", ".join(said)


def markdown(outcomes: Sequence[Outcome]) -> str:
    """A summary of each release, and a row for each case with a column for each set of releases that agree."""
    releases = list(dict.fromkeys(outcome.release for outcome in outcomes))
    cases: dict[Case, dict[str, Outcome]] = {}
    for outcome in outcomes:
        cases.setdefault(outcome.case, {})[outcome.release] = outcome
    lines = [_LEGEND, *_summary(outcomes, releases), ""]
    columns: dict[tuple[str, ...], list[str]] = {}
    for release in releases:
        columns.setdefault(tuple(_cell(by_release.get(release)) for by_release in cases.values()), []).append(release)
    headings = (*_HEADINGS, *(", ".join(agreeing) for agreeing in columns.values()))
    lines += [_row(headings), _row("---" for _ in headings)]
    for case, cells in zip(cases, zip(*columns, strict=True), strict=True):
        lines.append(_row((case.shutdown, case.place, f"`{case.suffix}`", case.damage, *cells)))
    return "\n".join(lines) + "\n"


def _summary(outcomes: Iterable[Outcome], releases: Iterable[str]) -> list[str]:
    lines = [_row(("release", "cases", "come up", "give wrong answers", "miss at most", "reread at most", "predicted"))]
    lines.append(_row("---" for _ in range(7)))
    by_release: dict[str, list[Outcome]] = {}
    for outcome in outcomes:
        by_release.setdefault(outcome.release, []).append(outcome)
    for release in releases:
        some = by_release[release]
        count = Counter(
            {
                "up": sum(outcome.comes_up for outcome in some),
                "wrong": sum(outcome.cost.wrong > 0 or outcome.bad_fetches > 0 for outcome in some),
                "predicted": sum(outcome.as_predicted for outcome in some),
            }
        )
        missed = max(outcome.cost.missed for outcome in some)
        reread = max(outcome.cost.reread for outcome in some)
        lines.append(
            _row((release, len(some), count["up"], count["wrong"], missed, reread, f"{count['predicted']}/{len(some)}"))
        )
    return lines


def _cell(outcome: Outcome | None) -> str:
    if outcome is None:
        return ""
    said = in_words(outcome)
    return said if outcome.as_predicted else f"**{said}**"


def _row(cells: Iterable[object]) -> str:
    return f"| {' | '.join(map(str, cells))} |"
