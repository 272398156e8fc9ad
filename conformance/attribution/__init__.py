"""Which clauses a step exercises.

A *step* is one operation in one situation with what the reference made of it. It exercises a clause if it would have
come out differently had the clause been violated: in its outcome, in its text, in the state after it or in the files,
all of which are compared after every step. So a step is evidence for the clauses it is attributed to, and where
implementations differ, these are the requirements that may be at stake.

The rows that say so are tables, one file a kind of index: :mod:`~conformance.attribution.mapped` (what `.index` and
`.timeindex` share), :mod:`~conformance.attribution.offset`, :mod:`~conformance.attribution.time` and
:mod:`~conformance.attribution.transaction`. In which releases a clause holds is the catalogue's business and never a
row's. The lockstep keeps a :class:`Situation` and asks::

    situation = Situation("3.9.2")
    situation.preexisting = (directory / path).exists()    # before an ``open``
    ids = clauses_of(operation, situation, observation)
    situation.follow(operation, observation)
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import TYPE_CHECKING, Final

from conformance.attribution.rules import Row, Step, rows_of, rules_for
from conformance.attribution.situation import Situation
from conformance.clauses import FACETS, load_clauses

if TYPE_CHECKING:
    from conformance.operations import Observation, Operation

__all__ = ["ATTRIBUTED_MACHINES", "Row", "Situation", "Step", "clauses_of", "is_observed_only", "rows_of", "rules_for"]

ATTRIBUTED_MACHINES = ("offset", "time", "transaction")
"""The machines whose steps are attributed here."""


def clauses_of(operation: Operation, before: Situation, observation: Observation) -> tuple[str, ...]:
    """The clauses that a step exercises, the most particular first.

    Args:
        operation: what was done.
        before: the situation it was done in, not yet told of this step.
        observation: what the reference made of it.
    """
    name, args = operation
    outcome, now = observation
    was = before.state
    if name == "open":
        kind = args[0]
    elif was is None or now is None:
        return ()
    else:
        kind = before.kind
    rules = before.rules.get((kind, name, outcome.error))
    if rules is None:
        return ()
    always, conditional = rules
    if not conditional:
        return always
    # Step(…) itself costs twice as much.
    step = tuple.__new__(Step, (args, before, was, outcome, now))
    return tuple([clause for clause, holds in conditional if holds(step)]) + always


_OF_THE_FILE: Final = frozenset({"max_entries", "full", "length"})
"""Fields of a state that say how long the file is."""


def is_observed_only(ids: Iterable[str], facets: Collection[str] = (), fields: Collection[str] = ()) -> bool:
    """Whether a diverging step may be left out of a verdict at level MUST.

    The MUST clauses attributed to a step say what holds in general (a refused offset is refused); an OBSERVED one says
    what Kafka also does in exactly this situation (and leaves eight stray bytes). So the particular decides: the
    divergence is left out if every facet that differs is excused by an OBSERVED clause of the step. A facet that none
    of them excuses is a violation of a MUST: accepting the offset is no better way of refusing it.

    The state follows from the rest: where another outcome is excused, a step that was done instead of refused, or the
    reverse, has left another state; where other bytes are excused, the fields that say how long the file is follow.

    What an excused divergence leads to later cannot be told from a violation, because the parties no longer have the
    same state: a lockstep at level MUST ends the example there, or goes on without that implementation.

    Args:
        ids: the clauses the step was attributed to.
        facets: which of :data:`conformance.clauses.FACETS` differ. If none is given, nothing is known about where the
            difference lies, and any OBSERVED clause decides.

        fields: the fields of the state that differ, as far as they are known.

    Raises:
        ValueError: there is no such facet.
    """
    if unknown := sorted(set(facets) - set(FACETS)):
        raise ValueError(f"no facet {', '.join(unknown)}; there are {', '.join(FACETS)}")
    catalogue = load_clauses()
    excuses = [catalogue[clause].excuses for clause in ids if catalogue[clause].level == "OBSERVED"]
    if not excuses:
        return False
    left = {facet for facet in facets if not any(facet in excuse for excuse in excuses)}
    if left != {"state"}:
        return not left
    return "outcome" in facets or ("bytes" in facets and bool(fields) and set(fields) <= _OF_THE_FILE)
