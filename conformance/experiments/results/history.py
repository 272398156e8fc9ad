"""History of test results of implementations: a file with one JSON object per line.

Each line is an edition, which has the results of the runs that were published together.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Self

import msgspec

from conformance.errors import ToolError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
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
