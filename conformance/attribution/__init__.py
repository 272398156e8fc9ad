"""Attribution of steps to clauses: the requirements that a step exercises.

A *step* is one operation in one state with the reference's outcome. It exercises a clause if a violation of the clause
would have changed the outcome, the error message, the state after the step or the files. All of these are compared
after every step. A step is therefore evidence for the clauses that it exercises. If implementations differ in a step,
the divergence may violate these clauses; those that it does are *implicated*.
:mod:`~conformance.attribution.verdict_levels` decides whether a divergence counts for the verdict.

One engine, :mod:`~conformance.attribution.rules`, reads one table of rows per scope (kind of object that a lockstep
tests): :mod:`~conformance.attribution.index` (three kinds), :mod:`~conformance.attribution.segment`,
:mod:`~conformance.attribution.log`, :mod:`~conformance.attribution.tiered` and :mod:`~conformance.attribution.cache`.
A row states which steps exercise a clause. It applies in the releases of the clause. Some clauses depend on earlier
steps, such as a failed rename. A lockstep therefore keeps a *tracked state*, which each step updates::

    tracked = TrackedIndex("3.9.2")
    track_opening(tracked, operation, content)          # before an ``open``; None for a file that does not exist
    ids = clauses_of(operation, tracked, observation)
    track_step(tracked, operation, observation)
"""

from __future__ import annotations

from conformance.attribution.index import clauses_of, implicated_clauses, is_reachable_by_broker, track_opening
from conformance.attribution.rules import Row
from conformance.attribution.tracked_state import Step, TrackedIndex, track_step
from conformance.attribution.verdict_levels import DivergentParts, counts_at_level, is_observed_only, noticed_facets

__all__ = [
    "DivergentParts",
    "Row",
    "Step",
    "TrackedIndex",
    "clauses_of",
    "counts_at_level",
    "implicated_clauses",
    "is_observed_only",
    "is_reachable_by_broker",
    "noticed_facets",
    "track_opening",
    "track_step",
]
