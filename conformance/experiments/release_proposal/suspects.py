"""Which clause a release has broken, where no value of the dialect that is known explains what it does.

Every step names the clauses that it exercises. The clause that most traces differ at is taken first, of equals the one
that is seldom exercised where nothing differs; the traces that it explains say nothing of other clauses.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from conformance.experiments.release_proposal.trials import Result


def broken_clauses(result: Result) -> dict[str, str]:
    """The clauses that failing traces speak against, each with the id of the shortest such trace.

    Args:
        result: of a release in the dialect that comes closest.
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
