"""Statistics of a lockstep that drives a server."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field


@dataclass(slots=True)
class ServerStatistics:
    """Statistics of all topics of a server: executed operations and compared results."""

    topics: int = 0
    steps: int = 0
    answers: int = 0
    """The number of compared responses to lookups."""
    restarts: int = 0
    kills: int = 0
    acknowledged: int = 0
    """The number of batches that the server has acknowledged, and so must not lose."""
    expected: int = 0
    """The number of divergences that are known and do not count."""
    clauses: Counter[str] = field(default_factory=Counter)
    """The number of correct results that are evidence for each clause."""

    @property
    def stops(self) -> int:
        """The number of stops of the server, clean or not."""
        return self.restarts + self.kills
