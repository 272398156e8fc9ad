"""Which clauses a step exercises.

A *step* is one operation in one state with the reference's outcome. It exercises a clause if a violation would have
changed it: its outcome, its text, the state after it or the files, all of which are compared after every step. So a
step is evidence for the clauses it is attributed to, and where implementations differ, these are the requirements that
may be at stake.

One engine, :mod:`~conformance.attribution.rules`, reads a table for each level of lockstep:
:mod:`~conformance.attribution.index` (three kinds), :mod:`~conformance.attribution.segment`,
:mod:`~conformance.attribution.log` and :mod:`~conformance.attribution.broker`. In which releases a clause holds is
the catalogue's business and never a row's. A lockstep keeps a tracked state and asks::

    tracked = TrackedIndex("3.9.2")
    follow_opening(tracked, operation, content)          # before an ``open``; None for a file that is not there
    ids = clauses_of(operation, tracked, observation)
    follow(tracked, operation, observation)
"""

from __future__ import annotations

from conformance.attribution.changes import follow
from conformance.attribution.index import ROWS, clauses_at_stake, clauses_of, follow_opening, is_a_brokers
from conformance.attribution.rules import Row
from conformance.attribution.tracked import Step, TrackedIndex
from conformance.attribution.verdicts import Difference, breaks_promise, is_observed_only, noticed_facets

__all__ = [
    "ROWS",
    "Difference",
    "Row",
    "Step",
    "TrackedIndex",
    "breaks_promise",
    "clauses_at_stake",
    "clauses_of",
    "follow",
    "follow_opening",
    "is_a_brokers",
    "is_observed_only",
    "noticed_facets",
]
