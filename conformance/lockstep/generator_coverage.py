"""Generator coverage: the number of steps of a run that match each row of the attribution tables.

A machine that never appends to a full index proves nothing about full indexes, even if all its runs pass. A row states
which operation exercises a clause, with which outcome and in which state (:mod:`conformance.attribution`). A run with
``--demand-coverage`` must match every row that applies to the newest release, except rows marked as rare. Only this
project's own CI uses this option.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Final

from conformance.attribution.rules import ANY
from conformance.attribution.tables import rows_of
from conformance.clauses import load_clauses
from conformance.events import Measured
from conformance.kafka.releases import newest

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from conformance.attribution.rules import Row

Kind = tuple[str, str | None, tuple[str, ...]]
"""The key of the step counts: operation, error kind (None for none), and the exercised clauses."""

EXAMPLES: Final = {"offset": 300, "time": 300, "transaction": 300, "segment": 150, "log": 150, "cleaned": 100}
"""By machine, the number of generated examples from which a run has to match all rows.

With this number of examples and each of three seeds, the reference matched every common row at least 4 times.
"""


@cache
def rows_for(machine: str) -> tuple[Row, ...]:
    """Return the rows of a machine that apply in the newest release."""
    catalogue = load_clauses()
    return tuple(row for row in rows_of(machine) if catalogue[row.clause].applies_to(newest()))


def steps_of(row: Row, kinds: Mapping[Kind, int]) -> int:
    """Return the number of steps that match a row.

    If two rows of a clause have the same operation and outcome, a step counts for both; there are three such pairs.
    """
    return sum(
        count
        for (operation, error, clauses), count in kinds.items()
        if row.clause in clauses and row.is_about(operation, error or "ok")
    )


def missed_rows(machine: str, kinds: Mapping[Kind, int], supported: set[str] | None = None) -> list[Row]:
    """Return the rows that a run had to match, but did not.

    Args:
        kinds: The steps of generated examples.
        supported: The operations that every participant has; None for all.
    """
    return [
        row
        for row in rows_for(machine)
        if not row.rare
        and (supported is None or row.operations == ANY or not supported.isdisjoint(row.operations.split()))
        and not steps_of(row, kinds)
    ]


_TABLE: Final = "coverage of the "
"""The prefix of the names of coverage tables."""


def is_coverage(table: str) -> bool:
    """Return True if a table contains the coverage of examples, and not metrics of the implementations."""
    return table.startswith(_TABLE)


def measured(machine: str, kinds: Mapping[Kind, int], *, demanded: bool) -> Iterator[Measured]:
    """Yield the number of steps that match each row.

    Args:
        kinds: The steps of generated examples.
        demanded: True if the run has to match the rows; otherwise, and for rare rows, ``passed`` is None.
    """
    for row in rows_for(machine):
        steps = steps_of(row, kinds)
        passed = bool(steps) if demanded and not row.rare else None
        yield Measured(f"{_TABLE}{machine} machine", name_of(row), passed, {"steps": steps})


def name_of(row: Row) -> str:
    """Return a human-readable name of a row."""
    return f"{row.clause}, {row.operations} → {row.results}: {row.why}"
