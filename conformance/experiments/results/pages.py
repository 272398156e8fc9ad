"""Pages of test results in Markdown, and badges: one for each implementation and area, such as ``time index``.

An edition has the results of the runs that were published together. The baseline is a list of clauses that can be
checked with any broker.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from conformance.attribution.baseline import NAME, Score, baseline_clauses
from conformance.clauses import load_chapters
from conformance.kafka.releases import RELEASES
from conformance.report.badge import svg_badge
from conformance.report.markdown_escape import table, text
from conformance.report.scoreboard.board import STATE_LABELS, STATE_SYMBOLS
from kidx.printable import counted

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from conformance.experiments.results.history import Edition, PastRow, ResultChange

_COLORS: Final = {"conforms": "blue", "differs": "red", "excused": "orange"}
_MOST_EDITIONS: Final = 20
"""Maximum number of editions that the page lists; the history has all."""
_RESULTS: Final = """# Results

Event streams of runs, put together by `conformance site`.
[Scoreboard](results/scoreboard.html) has each divergence with the command that replays it.
[A page for a run of your own](results/drop.html) shows an `events.ndjson` that you drop on it, and sends it nowhere.
[{baseline}](wire_baseline.md) is the list of clauses of that column.

{body}
"""
_BASELINE: Final = """# {name}

These {count} clauses can be checked with any broker that speaks Kafka's protocol, without access to its files.
All are MUST clauses: users are promised them, or cannot read what they wrote without them.
The list is generated: the MUST clauses of the `wire` machine. The score of an implementation is the number of them that
conform, of those that apply to the release that it is compared with.

| what | command |
| --- | --- |
| execute them | `conformance run -i wire:HOST:PORT --kafka RELEASE --level must --report RUN` |
| print the score | `conformance scoreboard RUN --markdown FILE` |
| make the badge | `conformance site DIR RUN --only results`: `wire-baseline.svg` below `DIR/results/badges` |

{table}
"""


def baseline_page() -> str:
    """Return the list of the clauses of the baseline."""
    found = {clause.id: clause for release in RELEASES for clause in baseline_clauses(release)}
    rows = [
        [
            f"[{clause.id}]({clause.chapter}.md#{clause.id})",
            text(clause.title),
            text(load_chapters()[clause.chapter]),
            text(str(clause.releases)),
        ]
        for clause in found.values()
    ]
    lines = table(["clause", "title", "chapter", "releases"], rows, numbers=4)
    return _BASELINE.format(name=NAME, count=len(rows), table="\n".join(lines))


def results_page(edition: Edition | None, changes: Sequence[ResultChange], history: Sequence[Edition]) -> str:
    """Return the page of an edition.

    Args:
        edition: The edition; None if there are no results yet.
        changes: The changes since earlier results.
        history: All editions, the oldest first.
    """
    if edition is None:
        return _RESULTS.format(baseline=NAME, body="No run has been given yet.")
    lines = [
        f"## New in the results of {text(edition.started)}",
        "",
        *_all_changes(changes),
        "",
        "## Implementations",
        "",
        *_rows(edition.rows),
        "",
        "## Earlier results",
        "",
        *_history(history),
        "",
        "## Badges",
        "",
        *_badges(edition.rows),
    ]
    return _RESULTS.format(baseline=NAME, body="\n".join(lines))


def _named(row: PastRow) -> str:
    return f"{text(row.label)}, compared with Kafka {text(row.release)}"


def _all_changes(changes: Sequence[ResultChange]) -> Iterator[str]:
    new: dict[str, list[str]] = {}
    for row in (each.row for each in changes if each.before is None):
        new.setdefault(text(row.label), []).append(text(row.release))
    lines = [f"- **{label}, compared with Kafka {', '.join(of)}**: the first result." for label, of in new.items()]
    lines += [f"- **{_named(each.row)}**: {line}" for each in changes for line in _changes(each)]
    yield from lines or ["Nothing: every implementation has the results that it had before."]


def _changes(changes: ResultChange) -> Iterator[str]:
    for found in changes.appeared:
        what = _what(found.clause, found.shape)
        yield f"✗ a new divergence in {text(found.area)}, {what}. {text(found.means)}"
    for found in changes.gone:
        yield f"✓ no longer diverges in {text(found.area)}, {_what(found.clause, found.shape)}."
    for area, old, new in changes.areas:
        yield f"{text(area)} was {text(old)}, and is {text(new)}."


def _what(clause: str, shape: str) -> str:
    return text(" ".join(filter(None, (clause or "no clause", f"({shape})" if shape else ""))))


def _score(row: PastRow) -> str:
    return str(Score(*row.baseline)) if row.baseline else "–"


def _rows(rows: Sequence[PastRow]) -> list[str]:
    areas = list(dict.fromkeys(area for row in rows for area in row.areas))
    header = ["implementation", "version", "compared with", NAME, *map(text, areas)]
    symbols: dict[str, str] = {str(state): symbol for state, symbol in STATE_SYMBOLS.items()}
    return table(
        header,
        [
            [
                text(row.label),
                text(row.version),
                f"Kafka {text(row.release)}",
                _score(row),
                *(symbols.get(row.areas.get(area, ""), "") for area in areas),
            ]
            for row in rows
        ],
        numbers=3,
    )


def _history(history: Sequence[Edition]) -> list[str]:
    rows = [
        [text(edition.started), _named(row), text(row.version), str(len(row.divergences)), _score(row)]
        for edition in list(reversed(history))[:_MOST_EDITIONS]
        for row in edition.rows
    ]
    return table(["results of", "implementation", "version", "divergences", NAME], rows, numbers=3)


def _badges(rows: Sequence[PastRow]) -> Iterator[str]:
    for row, directory in zip(rows, _directories(rows), strict=True):
        yield f"**{_named(row)}**"
        yield ""
        exercised = [area for area in _badges_of(row) if row.areas.get(area) not in ("not-run", "absent")]
        yield " ".join(f"![{text(area)}](results/{directory}/{_file_name(area)}.svg)" for area in exercised)
        yield ""


def _badges_of(row: PastRow) -> list[str]:
    return [*row.areas, *([NAME] if row.baseline else [])]


def badges(rows: Sequence[PastRow]) -> dict[str, str]:
    """Return badges by path: of all implementations and areas, and of the baseline for rows with a score."""
    return {
        f"{directory}/{_file_name(area)}.svg": _badge(row, area)
        for row, directory in zip(rows, _directories(rows), strict=True)
        for area in _badges_of(row)
    }


def _directories(rows: Sequence[PastRow]) -> list[str]:
    """Return the badges' directory for each row; names that differ only in special characters get a number."""
    directories: list[str] = []
    for row in rows:
        directory = f"badges/{_file_name(row.label)}-{_file_name(row.release)}"
        directories.append(f"{directory}-{len(directories)}" if directory in directories else directory)
    return directories


def _badge(row: PastRow, area: str) -> str:
    label = f"{row.label} · {area}"
    about = f"Kafka {row.release}"
    if area == NAME:
        conforms, diverges, clauses = row.baseline
        color = "red" if diverges else "blue" if conforms == clauses else "grey"
        return svg_badge(label, f"{conforms} of {clauses} · {about}", color)
    state = row.areas[area]
    count = sum(each.area == area for each in row.divergences)
    labels: dict[str, str] = {str(name): label for name, label in STATE_LABELS.items()}
    message = counted(count, "divergence") if state == "differs" and count else labels.get(state, state)
    return svg_badge(label, f"{message} · {about}", _COLORS.get(state, "grey"))


def _file_name(name: str) -> str:
    """Return a file name for the name of an implementation or area, which may be any text."""
    return re.sub(r"[^a-z0-9.]+", "-", name.lower()).strip("-.")[:60] or "unnamed"
