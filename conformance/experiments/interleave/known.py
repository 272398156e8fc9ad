"""Pairs of operations of Kafka's classes that are known not to be atomic, each with its clause.

A pair is an operation that is interrupted, and the operations that run in its middle.
"""

from __future__ import annotations

import tomllib
from collections import defaultdict
from importlib.resources import files
from typing import TYPE_CHECKING, Final

from conformance.clauses import load_clauses

if TYPE_CHECKING:
    from conformance.experiments.interleave.experiment import Pair

_UNMAPPED: Final = "Unmapped"
"""Part of the result of an operation that has accessed memory after it was unmapped."""


class KnownPairs:
    """Pairs listed in ``known.toml``."""

    def __init__(self) -> None:
        rows = tomllib.loads((files(__package__) / "known.toml").read_text("utf-8"))["known"]
        self._clauses = defaultdict[tuple[str, str, str, bool], list[str]](list)
        for row in rows:
            for first in row["first"]:
                for others in row["others"]:
                    self._clauses[row["index"], first, others, row.get("unmapped", False)].append(row["clause"])
        self._catalogue = load_clauses()

    def clause_of(self, pair: Pair, release: str) -> str | None:
        """Return the clause that states that a pair is not atomic in a release; None if no clause states it."""
        if not pair.violations:
            return None
        unmapped = any(_UNMAPPED in (seen := violation.seen).first + seen.others for violation in pair.violations)
        clauses = self._clauses.get((pair.case.kind, *pair.case.names, unmapped), [])
        return next((clause for clause in clauses if self._catalogue[clause].applies_to(release)), None)
