"""The engine of attribution: rows of a table, compiled for one release into a quick look-up.

A row reads: *this clause is exercised by these operations, when they come out like this, if this holds*. It carries a
sentence that says how a violation would have shown. Every level of lockstep has one table of rows; what its conditions
look at is the step of that level.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cache
from typing import Any, Final, NamedTuple

from conformance.clauses import load_clauses

ANY: Final = "*"

Condition = Callable[[Any], bool]
"""Whether a step of the row's level exercises the clause."""

Compiled = tuple[tuple[str, ...], tuple[tuple[str, Condition], ...]]
"""The clauses always exercised, and those that have a condition."""


class Row(NamedTuple):
    """One line of a table.

    Attributes:
        clause: the id.
        operations: names, separated by blanks, or :data:`ANY`.
        results: ``ok`` or error kinds, separated by blanks, or :data:`ANY`.
        why: how the step would have shown a violation.
        holds: the condition; None if there is none.
        rare: why a run of the size of CI's need not come to it; empty if it has to.
    """

    clause: str
    operations: str
    results: str
    why: str
    holds: Condition | None = None
    rare: str = ""

    def is_about(self, operation: str, result: str) -> bool:
        """Whether an operation that comes out like this can exercise the clause."""
        return (self.operations == ANY or operation in self.operations.split()) and (
            self.results == ANY or result in self.results.split()
        )


class Rules(dict[tuple[str, str | None], Compiled]):
    """The rows of a table that hold in a release, by operation and error; each is compiled when it is first asked for.

    Args:
        rows: the table; the catalogue decides which rows hold.
        release: whose rules they are.
    """

    def __init__(self, rows: Iterable[Row], release: str) -> None:
        super().__init__()
        catalogue = load_clauses()
        holding = (row for row in rows if catalogue[row.clause].applies_to(release))
        # What is only observed is the more particular statement, and leads the answer.
        self.rows = sorted(holding, key=lambda row: catalogue[row.clause].level != "OBSERVED")

    def __missing__(self, key: tuple[str, str | None]) -> Compiled:
        operation, error = key
        rows = [row for row in self.rows if row.is_about(operation, error or "ok")]
        always = dict.fromkeys(row.clause for row in rows if row.holds is None)
        conditions: dict[str, list[Condition]] = {}
        for row in rows:
            if row.holds is not None and row.clause not in always:
                conditions.setdefault(row.clause, []).append(row.holds)
        compiled = tuple(always), tuple((clause, _any_of(tuple(holds))) for clause, holds in conditions.items())
        self[key] = compiled
        return compiled

    def exercised(self, operation: str, error: str | None, step: Any) -> tuple[str, ...]:
        """The clauses that a step exercises, the most particular first.

        Args:
            operation: its name.
            error: the kind of its refusal; None for none.
            step: what the conditions look at.
        """
        always, conditional = self[operation, error]
        return tuple([clause for clause, holds in conditional if holds(step)]) + always

    def exercised_in(self, operation: str, error: str | None, conditions: Conditions) -> tuple[str, ...]:
        """As :meth:`exercised`, of a step whose conditions other releases ask for too."""
        always, conditional = self[operation, error]
        return tuple([clause for clause, holds in conditional if conditions[holds]]) + always


class Conditions(dict[Condition, bool]):
    """What conditions say of one step, each asked once.

    Args:
        step: what they look at.
    """

    def __init__(self, step: Any) -> None:
        super().__init__()
        self._step = step

    def __missing__(self, condition: Condition) -> bool:
        self[condition] = holds = condition(self._step)
        return holds


@cache
def _any_of(conditions: tuple[Condition, ...]) -> Condition:
    if len(conditions) == 1:
        return conditions[0]
    return lambda step: any(holds(step) for holds in conditions)
