"""Test results of implementations: their history, and pages of it.

The history is a file with one JSON object per line. Each line is an edition, which has the results of the runs that
were published together. The pages are in Markdown, with a badge for each implementation and area, such as
``time index``. The baseline is a list of clauses that can be checked with any broker.
"""

from __future__ import annotations

import hashlib
import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Self

import msgspec

from conformance.attribution.baseline import NAME, Score, baseline_clauses
from conformance.clauses import load_chapters
from conformance.errors import ToolError
from conformance.kafka.releases import RELEASES
from conformance.report.badge import svg_badge
from conformance.report.markdown_escape import table, text
from conformance.report.scoreboard.board import STATE_LABELS, STATE_SYMBOLS
from kidx.printable import counted

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

    from conformance.report.scoreboard.board import Board, Row

FORMAT: Final = "kidx-results"
VERSION: Final = 1


@dataclass(frozen=True)
class PastDivergence:
    """Unique divergence of an implementation in one edition.

    Attributes:
        clause: The failing clause; empty if no clause covers the divergence.
        shape: The signature: the operation and the kind of the difference.
        area: The area, such as ``time index``, which is a column of the scoreboard.
        means: The consequence for a consumer.
    """

    clause: str
    shape: str
    area: str
    means: str

    @property
    def key(self) -> tuple[str, str]:
        """Key that identifies the divergence in other editions."""
        return self.clause, self.shape


@dataclass(frozen=True)
class PastRow:
    """Result of an implementation in one edition.

    Attributes:
        label: The name of the implementation.
        release: The release with which the implementation was compared.
        version: The version of the implementation; empty if unknown.
        areas: The state of each area, e.g. ``"conforms"``.
        divergences: The unique divergences.
        baseline: The numbers of a :class:`~conformance.attribution.baseline.Score`; empty without a score.
    """

    label: str
    release: str
    version: str
    areas: dict[str, str]
    divergences: tuple[PastDivergence, ...]
    baseline: tuple[int, ...] = ()


@dataclass(frozen=True)
class Edition:
    """Results of the runs that were published together.

    Attributes:
        id: A hash of the runs.
        started: The start of the last run, in ISO 8601.
        format: Always :data:`FORMAT`.
        version: Always :data:`VERSION`.
    """

    id: str
    started: str
    rows: tuple[PastRow, ...]
    format: str = FORMAT
    version: int = VERSION

    @classmethod
    def of_board(cls, board: Board) -> Self:
        """Return the edition of a scoreboard."""
        runs = [made for row in board.rows for made in row.made]
        identity = json.dumps(sorted({(made.started, made.implementation, made.command) for made in runs}))
        started = max((made.started for made in runs), default="")
        return cls(hashlib.sha256(identity.encode()).hexdigest()[:12], started, tuple(map(_past, board.rows)))

    def row(self, label: str, release: str) -> PastRow | None:
        """Return the result of an implementation and release, or None."""
        return next((row for row in self.rows if (row.label, row.release) == (label, release)), None)


def _past(row: Row) -> PastRow:
    found: dict[tuple[str, str], PastDivergence] = {}
    for cell in row.cells:
        for fault in cell.faults:
            past = PastDivergence(fault.event.clause, fault.event.signature, cell.area, fault.means)
            found.setdefault(past.key, past)
    areas: dict[str, str] = {cell.area: cell.state for cell in row.cells}
    return PastRow(row.label, row.release, row.version, areas, tuple(found.values()), tuple(row.baseline or ()))


def load_history(path: Path) -> list[Edition]:
    """Return the editions in a file, the oldest first; empty if the file does not exist.

    Raises:
        ToolError: The file cannot be read, or a line is no edition of this version.
    """
    try:
        lines = path.read_text("utf-8").splitlines() if path.exists() else []
    except (OSError, UnicodeDecodeError) as error:
        raise ToolError(f"cannot read the history {path}: {error}") from error
    editions = []
    for number, line in enumerate(lines, start=1):
        try:
            edition = msgspec.json.decode(line, type=Edition)
        except (msgspec.DecodeError, UnicodeEncodeError) as error:
            raise ToolError(
                f"line {number} of the history {path} cannot be decoded; remove it, or restore the file: {error}"
            ) from error
        if (edition.format, edition.version) != (FORMAT, VERSION):
            raise ToolError(f"line {number} of the history {path} is of another format or version; remove it")
        editions.append(edition)
    return editions


def with_edition(history: Iterable[Edition], edition: Edition) -> list[Edition]:
    """Return the history with an edition added, in order of time; it replaces an edition of the same runs."""
    return sorted([*(each for each in history if each.id != edition.id), edition], key=lambda each: each.started)


def text_of(history: Iterable[Edition]) -> str:
    """Return the text of a history file."""
    return "".join(msgspec.json.encode(edition).decode() + "\n" for edition in history)


@dataclass(frozen=True)
class ResultChange:
    """Difference between two results of an implementation.

    Attributes:
        row: The new result.
        before: The last earlier result, or None.
        appeared: The divergences that only the new result has.
        gone: The divergences that only the earlier result has, in areas that were exercised again.
        areas: The areas whose state has changed, as (name, earlier state, new state).
    """

    row: PastRow
    before: PastRow | None
    appeared: tuple[PastDivergence, ...] = ()
    gone: tuple[PastDivergence, ...] = ()
    areas: tuple[tuple[str, str, str], ...] = ()


def changes_of(edition: Edition, history: Sequence[Edition]) -> list[ResultChange]:
    """Return the changes of each row of an edition since the last earlier result of the same row."""
    earlier = [each for each in history if each.id != edition.id and each.started <= edition.started]
    return [_change(row, [each.row(row.label, row.release) for each in earlier]) for row in edition.rows]


def _change(row: PastRow, earlier: Iterable[PastRow | None]) -> ResultChange:
    before = next((each for each in reversed(list(earlier)) if each is not None), None)
    if before is None:
        return ResultChange(row, None)
    old, new = ({each.key: each for each in one.divergences} for one in (before, row))
    return ResultChange(
        row,
        before,
        tuple(each for key, each in new.items() if key not in old),
        tuple(each for key, each in old.items() if key not in new and row.areas.get(each.area) != "not-run"),
        tuple(
            (area, before.areas[area], state)
            for area, state in row.areas.items()
            if area in before.areas and before.areas[area] != state
        ),
    )


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
