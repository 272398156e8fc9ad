"""Clauses that a new release breaks, if no known value of a behaviour explains why its classes differ from kidx.

Traces fail in which the classes differ. The clause that most failing traces implicate is chosen first. Of equally
frequent clauses, the clause that is exercised least in other steps is chosen. The traces that implicate a chosen clause
are not counted for other clauses.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from conformance.experiments.release_proposal.trials import Result


def broken_clauses(result: Result) -> dict[str, str]:
    """Return the clauses that failing traces implicate, each with the id of the shortest such trace.

    Args:
        result: The result of the release's classes, compared with the behaviours that are closest to them.
    """
    broken: dict[str, str] = {}
    left = dict(sorted(result.failing.items(), key=lambda item: len(item[1].trace.operations)))
    while differing := Counter(clause for one in left.values() for clause in one.divergence.clauses):
        suspect = max(
            differing,
            key=lambda clause: (differing[clause], differing[clause] / max(result.exercised.get(clause, 0), 1)),
        )
        explained = [id_ for id_, one in left.items() if suspect in one.divergence.clauses]
        broken[suspect] = explained[0]
        for id_ in explained:
            del left[id_]
    return broken
