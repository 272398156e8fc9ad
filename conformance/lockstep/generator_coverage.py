"""Generator coverage: how many steps of a run each row of attribution is about.

A machine that never appends to a full index proves nothing about full indexes, however green it is. A row says which
operation shows a clause, with which outcome and in which state (:mod:`conformance.attribution`). A run with
``--demand-coverage`` has to come to every row of the newest release, but for those that say why they are rare. This
project's own CI demands it; no other run does.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Final

from conformance.attribution.rules import ANY
from conformance.attribution.tables import ROWS
from conformance.clauses import load_clauses
from conformance.events import Measured
from conformance.kafka.releases import newest

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from conformance.attribution.rules import Row

Kind = tuple[str, str | None, tuple[str, ...]]
"""What a lockstep counts steps by: operation, error kind (None for none), and the clauses that are exercised."""

EXAMPLES: Final = {"offset": 300, "time": 300, "transaction": 300, "segment": 150, "log": 150, "cleaned": 100}
"""By machine: drawn examples of a run, from which on it has to come to all rows.

In as many, with each of three seeds, the reference came to every row that is not rare at least 4 times.
"""


@cache
def rows_for(machine: str) -> tuple[Row, ...]:
    """Return the rows of a machine that hold in the newest release."""
    catalogue = load_clauses()
    return tuple(row for row in ROWS.get(machine, ()) if catalogue[row.clause].applies_to(newest()))


def steps_of(row: Row, kinds: Mapping[Kind, int]) -> int:
    """Return how many steps a row is about.

    Of two rows of a clause with the same operation and outcome either counts for both; there are three such pairs.
    """
    return sum(
        count
        for (operation, error, clauses), count in kinds.items()
        if row.clause in clauses and row.is_about(operation, error or "ok")
    )


def missed_rows(machine: str, kinds: Mapping[Kind, int], supported: set[str] | None = None) -> list[Row]:
    """Return the rows that a run has not come to, of those that it has to.

    Args:
        machine: its name.
        kinds: the steps of drawn examples.
        supported: the operations that every participant has; None for all.
    """
    return [
        row
        for row in rows_for(machine)
        if not row.rare
        and (supported is None or row.operations == ANY or not supported.isdisjoint(row.operations.split()))
        and not steps_of(row, kinds)
    ]


_TABLE: Final = "coverage of the "
"""What the names of the tables begin with that say what examples reached."""


def is_coverage(table: str) -> bool:
    """Return whether a table of figures says what the examples reached, and nothing of what they drove."""
    return table.startswith(_TABLE)


def measured(machine: str, kinds: Mapping[Kind, int], *, demanded: bool) -> Iterator[Measured]:
    """Yield how many steps each row is about.

    Args:
        machine: its name.
        kinds: the steps of drawn examples.
        demanded: whether the run has to come to them; ``holds`` is None otherwise, and of rows that are rare.
    """
    for row in rows_for(machine):
        steps = steps_of(row, kinds)
        holds = bool(steps) if demanded and not row.rare else None
        yield Measured(f"{_TABLE}{machine} machine", name_of(row), holds, {"steps": steps})


def name_of(row: Row) -> str:
    """Return a row in words."""
    return f"{row.clause}, {row.operations} → {row.results}: {row.why}"
