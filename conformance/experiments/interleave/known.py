"""Pairs of operations that are known not to be atomic to each other, each with its clause."""

from __future__ import annotations

import tomllib
from importlib.resources import files
from typing import TYPE_CHECKING

from conformance.clauses import load_clauses

if TYPE_CHECKING:
    from conformance.experiments.interleave.experiment import Pair


class KnownPairs:
    """Pairs listed in ``known.toml``."""

    def __init__(self) -> None:
        rows = tomllib.loads((files(__package__) / "known.toml").read_text("utf-8"))["known"]
        self._clauses = {
            (row["index"], first, others): row["clause"]
            for row in rows
            for first in row["first"]
            for others in row["others"]
        }
        self._catalogue = load_clauses()

    def clause_of(self, pair: Pair, release: str) -> str | None:
        """Return the clause by which a pair is not atomic in a release, or None."""
        clause = self._clauses.get((pair.kind, *pair.names))
        return clause if clause is not None and self._catalogue[clause].applies_to(release) else None
