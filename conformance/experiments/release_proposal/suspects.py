"""Which clause a release has broken, where no value of the dialect that is known explains what it does.

Every step names the clauses that it exercises. The clause at stake in a step that differs is the one that is seldom
exercised where nothing differs: of the candidates the one with the largest share of steps that differ.
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
    differing = Counter(clause for one in result.failing.values() for clause in one.divergence.clauses)
    shortest = sorted(result.failing.items(), key=lambda item: len(item[1].trace.operations))
    broken: dict[str, str] = {}
    for id_, one in shortest:
        clauses = one.divergence.clauses
        if clauses:
            suspect = max(clauses, key=lambda clause: differing[clause] / max(result.exercised.get(clause, 0), 1))
            broken.setdefault(suspect, id_)
    return broken
