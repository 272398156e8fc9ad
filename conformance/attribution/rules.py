"""Rows of attribution, and how they become a quick look-up.

A row reads: *this clause is exercised by these operations, when they come out like this, if this holds*, and has a
sentence that says why the step would have failed otherwise. Rows are compiled once for each release: those whose
clause does not apply are left out, and the rest is keyed by kind of index, operation and error.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

from conformance.clauses import Clause, load_clauses

if TYPE_CHECKING:
    from conformance.attribution.situation import Situation
    from conformance.operations import Outcome, State


class Step(NamedTuple):
    """What a row's condition looks at.

    Attributes:
        args: the operation's arguments.
        before: the situation before it.
        was: the state before it; None before an ``open``, whose rows do not ask.
        outcome: what came of it.
        now: the state after it; None after a failed ``open``, whose rows do not ask.
    """

    args: tuple[Any, ...]
    before: Situation
    was: State
    outcome: Outcome
    now: State


Condition = Callable[[Step], bool]


class Row(NamedTuple):
    """One line of a table.

    Attributes:
        clause: the id.
        operations: names, separated by blanks.
        results: ``ok`` or error kinds, separated by blanks.
        why: how the step would have shown a violation.
        holds: the condition; None if there is none.
    """

    clause: str
    operations: str
    results: str
    why: str
    holds: Condition | None = None


Key = tuple[str, str, str | None]
Rules = dict[Key, tuple[tuple[str, ...], tuple[tuple[str, Condition], ...]]]
"""For kind, operation and error: the clauses always exercised, and those that have a condition."""


@cache
def rows_of(kind: str) -> tuple[Row, ...]:
    """All rows of one kind of index.

    Raises:
        ValueError: there are no rows for such a kind.
    """
    # Imported here because the tables are made of Row.
    from conformance.attribution import mapped, offset, time, transaction  # noqa: PLC0415

    match kind:
        case "offset":
            return mapped.rows("append bulk_append") + offset.ROWS
        case "time":
            return mapped.rows("maybe_append bulk_maybe_append") + time.ROWS
        case "transaction":
            return transaction.ROWS
        case _:
            raise ValueError(f"no attribution for {kind!r}; there is one for offset, time and transaction")


@cache
def rules_for(release: str) -> Rules:
    """The compiled rows of all kinds for one release."""
    catalogue = load_clauses()
    grouped: dict[Key, list[Row]] = {}
    for kind in ("offset", "time", "transaction"):
        for row in rows_of(kind):
            if catalogue[row.clause].applies_to(release):
                for key in _keys(kind, row):
                    grouped.setdefault(key, []).append(row)
    return {key: _compile(rows, catalogue) for key, rows in grouped.items()}


def _keys(kind: str, row: Row) -> Iterable[Key]:
    for operation in row.operations.split():
        for result in row.results.split():
            yield kind, operation, None if result == "ok" else result


def _compile(
    rows: list[Row], catalogue: dict[str, Clause]
) -> tuple[tuple[str, ...], tuple[tuple[str, Condition], ...]]:
    # What is only observed is the more particular statement, and leads the answer.
    ordered = sorted(rows, key=lambda row: catalogue[row.clause].level == "MUST")
    always = dict.fromkeys(row.clause for row in ordered if row.holds is None)
    conditions: dict[str, list[Condition]] = {}
    for row in ordered:
        if row.holds is not None and row.clause not in always:
            conditions.setdefault(row.clause, []).append(row.holds)
    return tuple(always), tuple((clause, _any_of(holds)) for clause, holds in conditions.items())


def _any_of(conditions: list[Condition]) -> Condition:
    if len(conditions) == 1:
        return conditions[0]
    return lambda step: any(holds(step) for holds in conditions)
