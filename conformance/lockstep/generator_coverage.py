"""Generator coverage: which operation met which state, and with what outcome, as a histogram of a run.

A machine that never appends to a full index proves nothing about full indexes, however green it is. Every step of the
reference falls into a cell *operation × state before × outcome*; cells.toml says which of them a run of the ci profile
has to reach, and why others cannot be.
"""

from __future__ import annotations

import tomllib
from collections import Counter
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Final, NamedTuple

from conformance.events import Measured

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping

    from conformance.attribution.tracked import TrackedIndex
    from conformance.operations.log import LogState
    from conformance.operations.segment import SegmentState

CellKey = tuple[str, str, str | None]
"""Operation, state before it, and error kind (None for none): what a lockstep counts."""


class Cell(NamedTuple):
    """One cell; ``outcome`` is ``"ok"`` or an error kind."""

    operation: str
    state: str
    outcome: str


def state_of_index(tracked: TrackedIndex) -> str:
    """The state an index is in, in one or two words; of several that fit, the one that needs the most luck."""
    state = tracked.state
    if state is None:
        return "nothing"
    if tracked.closed:
        return "closed"
    if tracked.damaged or not tracked.writable:
        return "damaged" if tracked.damaged else "read-only"
    if state.full:
        return "reopened full" if tracked.preexisting and state.entries else "full"
    return _fill(state.entries, tracked.warm_entries)


def _fill(entries: int, warm_entries: int) -> str:
    """How far an index is filled; the warm section holds ``warm_entries`` and the one that it begins behind."""
    if entries < 2:
        return "one entry" if entries else "empty"
    above = entries - 1 - warm_entries
    if above in (0, 1):
        return "at warm"
    return "below warm" if above < 0 else "above warm"


def state_of_segment(state: SegmentState | None) -> str:
    """The state a segment is in."""
    if state is None:
        return "closed"
    index, times = state.offset_index, state.time_index
    if index is None or times is None:
        return "unopened indexes"
    if state.size == 0:
        return "empty"
    full = index.entries >= index.max_entries or times.entries >= times.max_entries - 1
    return "full index" if full else "records" if index.entries else "no entries"


def state_of_log(state: LogState | None) -> str:
    """The state a log is in."""
    if state is None:
        return "closed"
    if state.end_offset == state.start_offset:
        return "empty"
    if state.segments and state.start_offset > state.segments[0][0]:
        return "records deleted"
    return "one segment" if len(state.segments) == 1 else "several segments"


@dataclass(frozen=True, slots=True)
class Demands:
    """What is demanded of a run of one machine.

    Attributes:
        examples: of a run, from which on it is demanded.
        must: cells that have to be reached.
        cannot: patterns of cells that cannot be, ``*`` for any, each with its reason.
    """

    examples: int
    must: frozenset[Cell]
    cannot: tuple[tuple[Cell, str], ...]

    def reason(self, cell: Cell) -> str:
        """Why a cell cannot be reached; empty if no rule says that it cannot."""
        for pattern, reason in self.cannot:
            if all(wanted in ("*", found) for wanted, found in zip(pattern, cell, strict=True)):
                return reason
        return ""


_NONE: Final = Demands(0, frozenset(), ())


@cache
def load_demands() -> dict[str, Demands]:
    """The demands on each machine."""
    document = tomllib.loads((files(__package__) / "cells.toml").read_text("utf-8"))
    return {
        machine: Demands(
            table["examples"],
            frozenset(
                Cell(operation, state, outcome)
                for operation, states in table["must"].items()
                for state, outcomes in states.items()
                for outcome in outcomes
            ),
            tuple((Cell(*rule["cell"]), rule["reason"]) for rule in table.get("cannot", ())),
        )
        for machine, table in document.items()
    }


def cells_of(counts: Mapping[CellKey, int]) -> Counter[Cell]:
    """A lockstep's counts by cell."""
    cells: Counter[Cell] = Counter()
    for (operation, state, error), count in counts.items():
        cells[Cell(operation, state, error or "ok")] += count
    return cells


def demanded_examples(machine: str) -> int:
    """Examples of a run from which on its cells are demanded."""
    return load_demands().get(machine, _NONE).examples


def empty_cells(machine: str, cells: Mapping[Cell, int], supported: Collection[str] | None = None) -> list[Cell]:
    """Cells that should have been reached and were not, of the operations that every participant has."""
    demands = load_demands().get(machine, _NONE)
    wanted = (cell for cell in demands.must if supported is None or cell.operation in supported)
    return sorted(cell for cell in wanted if not cells.get(cell))


def impossible_cells(machine: str, cells: Mapping[Cell, int]) -> list[tuple[Cell, str]]:
    """Cells that were reached although a rule says that they cannot be, with its reason."""
    demands = load_demands().get(machine, _NONE)
    return sorted((cell, reason) for cell in cells if (reason := demands.reason(cell)))


def measured(machine: str, cells: Mapping[Cell, int], *, demanded: bool) -> Iterator[Measured]:
    """A row for each operation and state: how often it came to which outcome.

    Args:
        machine: its name.
        cells: how often each was reached.
        demanded: whether the run was one of which cells are demanded; ``holds`` is None otherwise.
    """
    demands = load_demands().get(machine, _NONE)
    rows: dict[tuple[str, str], dict[str, int]] = {}
    for cell in sorted({*cells, *demands.must}):
        rows.setdefault((cell.operation, cell.state), {})[cell.outcome] = cells.get(cell, 0)
    for (operation, state), outcomes in rows.items():
        wanted = [count for outcome, count in outcomes.items() if Cell(operation, state, outcome) in demands.must]
        holds = all(wanted) if wanted and demanded else None
        yield Measured(f"coverage of the {machine} machine", f"{operation} × {state}", holds, dict(outcomes))
