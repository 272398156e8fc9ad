"""Engine of attribution: the rows of a table, compiled for one release so that lookups are fast.

A row reads: *these operations exercise this clause if they have this result and this condition is true*. It also says
how the step would have shown a violation. Each scope of lockstep has one table of rows, whose conditions receive the
steps of that scope. A scope is a kind of object that a lockstep tests, such as an index or a log.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import cache
from typing import TYPE_CHECKING, Any, Final, Generic, NamedTuple, TypeVar

from conformance.clauses import family, load_clauses

if TYPE_CHECKING:
    from conformance.operations import Outcome

ANY: Final = "*"
"""All operations, or all results, of the table's scope."""

Condition = Callable[[Any], bool]
"""A predicate that is true if a step of the row's scope exercises the clause."""

Compiled = tuple[tuple[str, ...], tuple[tuple[str, Condition], ...]]
"""The clauses that are always exercised, and the clauses that have a condition."""


class Row(NamedTuple):
    """One line of a table.

    Attributes:
        clause: The id of the clause, or several ids, separated by blanks. The id of a family, such as ``OI-4``, means
            each variant (``OI-4a``, ``OI-4b``) if no clause has this id: releases differ, but the same steps show it.
        operations: Names of operations, separated by blanks, or :data:`ANY`.
        results: ``ok`` or error kinds, separated by blanks, or :data:`ANY`.
        why: The difference that a violation would have made in the step.
        holds: The condition, or None if the row always applies.
        rare: The reason why a run of CI's size may not produce such a step; empty if every run must.
    """

    clause: str
    operations: str
    results: str
    why: str
    holds: Condition | None = None
    rare: str = ""

    def is_about(self, operation: str, result: str) -> bool:
        """Return True if an operation with this result can exercise the clause."""
        return (self.operations == ANY or operation in self.operations.split()) and (
            self.results == ANY or result in self.results.split()
        )


def each_variant(rows: Iterable[Row]) -> tuple[Row, ...]:
    """Return the rows, each of one clause: a row of several is repeated for each.

    Raises:
        KeyError: There is no such clause, and no such family.
    """
    every = ((row, clause) for row in rows for name in row.clause.split() for clause in _variants()[name])
    return tuple(row._replace(clause=clause) for row, clause in every)


@cache
def _variants() -> dict[str, tuple[str, ...]]:
    """Return the clauses that an id in a row means."""
    variants: dict[str, tuple[str, ...]] = {}
    for clause in load_clauses():
        variants[family(clause)] = (*variants.get(family(clause), ()), clause)
    return variants | {clause: (clause,) for clause in load_clauses()}


class Rules(dict[tuple[str, str | None], Compiled]):
    """Rows of a table that apply in a release, by operation and error; each is compiled on first use.

    Args:
        rows: The table; the catalogue decides which rows apply.
    """

    def __init__(self, rows: Iterable[Row], release: str) -> None:
        super().__init__()
        catalogue = load_clauses()
        holding = (row for row in each_variant(rows) if catalogue[row.clause].applies_to(release))
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
        """Return the clauses that a step exercises, the more specific ones first.

        Clauses with a condition come before those that every such step exercises; of either, OBSERVED clauses, which
        describe what Kafka does in one state, come before the others, and the rest is the order of the table.

        Args:
            error: The kind of the error, or None if the operation succeeded.
            step: The argument of the conditions.
        """
        always, conditional = self[operation, error]
        return tuple([clause for clause, holds in conditional if holds(step)]) + always

    def exercised_in(self, operation: str, error: str | None, conditions: Conditions) -> tuple[str, ...]:
        """Return what :meth:`exercised` does, from conditions that are already evaluated for another release."""
        always, conditional = self[operation, error]
        return tuple([clause for clause, holds in conditional if conditions[holds]]) + always


StateT = TypeVar("StateT")
TrackedT = TypeVar("TrackedT")


class DirectoryStep(NamedTuple, Generic[StateT, TrackedT]):
    """Input of a row's condition, for an object in a directory.

    Attributes:
        args: The operation's arguments.
        tracked: The tracked state before the step.
        was: The state before the step; None if no object was open.
        now: The state after the step; None if no object is open.
        before: The files before the step.
        files: The files after the step.
    """

    args: tuple[Any, ...]
    tracked: TrackedT
    was: StateT | None
    outcome: Outcome
    now: StateT | None
    before: Mapping[str, bytes]
    files: Mapping[str, bytes]


class Conditions(dict[Condition, bool]):
    """Values of conditions for one step, each of which is evaluated once.

    Args:
        step: The argument of the conditions.
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
