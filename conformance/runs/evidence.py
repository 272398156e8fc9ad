"""The evidence of some examples, so that it can be sent from one process to another and added up in a fixed order."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from conformance.runs.differences.sightings import Sightings

if TYPE_CHECKING:
    from conformance.lockstep.divergence import Divergence
    from conformance.lockstep.generator_coverage import CellKey
    from conformance.operations import Operation

FAILURES: Final = 3
"""A program that has failed in so many chunks (crashed, been late, talked nonsense) leaves the run."""
KEPT: Final = -1
"""Stands for the number of a chunk: the traces that are kept."""

Shown = tuple["Divergence", tuple["Operation", ...]]
"""A difference, with the steps up to it."""


@dataclass
class Evidence:
    """The evidence of a chunk, or of all chunks up to some point.

    Attributes:
        number: of the chunk; :data:`KEPT` for the kept traces.
        examples: how many were done, and ``steps``: of how many operations.
        cells: operation, state and error, as the newest dialect's reference went through them.
        drawn: how many of the examples were drawn, and no kept traces; ``drawn_cells``: the cells of those.
        credited: for each participant, how many steps exercised each clause while it took part.
        excused: for each participant, how many steps differed in a way that is excused for want of a capability, by the
            words of the excuse.
        lacking: for each participant, the operations that it was asked for and does not have.
        sightings: the differences that count.
        expected: for each participant, the clauses of differences that are known or do not count.
        met: numbers of the expectations that a difference has met.
        departed: participants that take part no longer after so many chunks like this one.
        broken: the reference itself is wrong; then nothing can be held to it.
        cut: the time was up.
    """

    number: int = KEPT
    examples: int = 0
    steps: int = 0
    cells: Counter[CellKey] = field(default_factory=Counter)
    drawn: int = 0
    drawn_cells: Counter[CellKey] = field(default_factory=Counter)
    credited: dict[str, Counter[str]] = field(default_factory=dict)
    excused: dict[str, Counter[str]] = field(default_factory=dict)
    lacking: dict[str, set[str]] = field(default_factory=dict)
    sightings: Sightings = field(default_factory=Sightings)
    expected: dict[str, set[str]] = field(default_factory=dict)
    met: set[int] = field(default_factory=set)
    departed: dict[str, int] = field(default_factory=dict)
    broken: Shown | None = None
    cut: bool = False

    def add(self, chunk: Evidence, limit: int) -> None:
        """Adds the next chunk. What a participant did after it had left the run does not count.

        Args:
            chunk: its evidence.
            limit: after so many chunks that a participant has left early, it has left the run.
        """
        gone = self.gone(limit)
        self.number = chunk.number
        self.examples += chunk.examples
        self.steps += chunk.steps
        self.cells.update(chunk.cells)
        self.drawn += chunk.drawn
        self.drawn_cells.update(chunk.drawn_cells)
        for totals, chunks in ((self.credited, chunk.credited), (self.excused, chunk.excused)):
            for participant, counts in chunks.items():
                if participant not in gone:
                    totals.setdefault(participant, Counter()).update(counts)
        for mine, theirs in ((self.lacking, chunk.lacking), (self.expected, chunk.expected)):
            for participant, names in theirs.items():
                if participant not in gone:
                    mine.setdefault(participant, set()).update(names)
        stayed = ((kind, sighting) for kind, sighting in chunk.sightings.items() if kind.participant not in gone)
        self.sightings.merge(Sightings(stayed))
        self.met |= chunk.met
        for participant, times in chunk.departed.items():
            self.departed[participant] = self.departed.get(participant, 0) + times
        self.broken = self.broken or chunk.broken
        self.cut = self.cut or chunk.cut

    def gone(self, limit: int) -> set[str]:
        """The participants that have left the run."""
        return {participant for participant, times in self.departed.items() if times >= limit}


def is_over(evidence: Evidence, participants: Iterable[str], limit: int) -> bool:
    """Whether going on makes no sense: the reference is wrong, the time is up, or every participant has left."""
    names = set(participants)
    return evidence.broken is not None or evidence.cut or (bool(names) and names <= evidence.gone(limit))
