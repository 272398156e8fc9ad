"""Pairs of operations that are known not to be atomic to each other, each with its clause."""

from __future__ import annotations

import tomllib
from collections import defaultdict
from importlib.resources import files
from typing import TYPE_CHECKING, Final

from conformance.clauses import load_clauses

if TYPE_CHECKING:
    from conformance.experiments.interleave.experiment import Pair

_UNMAPPED: Final = "Unmapped"


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
        """Return the clause by which a pair is not atomic in a release; None if none is, or the pair is atomic."""
        if not pair.violations:
            return None
        unmapped = any(_UNMAPPED in (seen := violation.seen).first + seen.others for violation in pair.violations)
        clauses = self._clauses.get((pair.case.kind, *pair.case.names, unmapped), [])
        return next((clause for clause in clauses if self._catalogue[clause].applies_to(release)), None)
