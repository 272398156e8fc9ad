"""The evidence of some examples, so that it can be sent from one process to another and added up in a fixed order."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from conformance.implementations.replies import WAITED
from conformance.runs.differences.shapes import shape_of
from conformance.runs.differences.sightings import Sightings

if TYPE_CHECKING:
    from conformance.lockstep.divergence import Divergence
    from conformance.lockstep.generator_coverage import Kind
    from conformance.operations import Operation

FAILURES: Final = 200
"""A program that has failed so often on one machine (crashed, talked nonsense) leaves it: each costs a new start."""
_WAITED: Final = 67
"""A failure after a wait of ten seconds counts as so many: the third one is the last."""
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
        kinds: the steps that the newest dialect's reference went through.
        drawn: how many of the examples were drawn, and no kept traces; ``drawn_kinds``: the steps of those.
        credited: for each participant, how many steps exercised each clause while it took part.
        excused: for each participant, how many steps differed in a way that is excused for want of a capability, by the
            words of the excuse.
        lacking: for each participant, the operations that it was asked for and does not have.
        sightings: the differences that count.
        expected: for each participant, the clauses of differences that are known or do not count.
        met: numbers of the expectations that a difference has met.
        waited: for each participant, how many ``examples`` and ``steps`` others have performed in its place.
        failed: for each participant, how many examples ended with a failure, by its shape.
        departed: what counts towards leaving the run: failures, and with ``--fail-fast`` the first difference.
        left: for each participant that has left the run, how many examples and steps there were until then.
        broken: the reference itself is wrong; then nothing can be held to it.
        cut: the time was up.
    """

    number: int = KEPT
    examples: int = 0
    steps: int = 0
    kinds: Counter[Kind] = field(default_factory=Counter)
    drawn: int = 0
    drawn_kinds: Counter[Kind] = field(default_factory=Counter)
    credited: dict[str, Counter[str]] = field(default_factory=dict)
    excused: dict[str, Counter[str]] = field(default_factory=dict)
    lacking: dict[str, set[str]] = field(default_factory=dict)
    sightings: Sightings = field(default_factory=Sightings)
    expected: dict[str, set[str]] = field(default_factory=dict)
    met: set[int] = field(default_factory=set)
    waited: dict[str, Counter[str]] = field(default_factory=dict)
    failed: dict[str, Counter[str]] = field(default_factory=dict)
    departed: dict[str, int] = field(default_factory=dict)
    left: dict[str, tuple[int, int]] = field(default_factory=dict)
    broken: Shown | None = None
    cut: bool = False

    def add(self, chunk: Evidence, limit: int) -> None:
        """Adds the next chunk. What a participant did after it had left the run does not count.

        Args:
            chunk: its evidence.
            limit: of what counts towards leaving the run, see ``departed``.
        """
        gone = self.gone(limit)
        self.number = chunk.number
        self.examples += chunk.examples
        self.steps += chunk.steps
        self.kinds.update(chunk.kinds)
        self.drawn += chunk.drawn
        self.drawn_kinds.update(chunk.drawn_kinds)
        counted = (self.credited, chunk.credited), (self.excused, chunk.excused), (self.failed, chunk.failed)
        for totals, chunks in (*counted, (self.waited, chunk.waited)):
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
        for participant in self.gone(limit) - gone:
            self.left[participant] = self.examples, self.steps
        self.broken = self.broken or chunk.broken
        self.cut = self.cut or chunk.cut

    def done_by(self, participant: str) -> tuple[int, int]:
        """Return how many examples and steps a participant was there for."""
        examples, steps = self.left.get(participant, (self.examples, self.steps))
        waited = self.waited.get(participant, Counter())
        return examples - waited["examples"], steps - waited["steps"]

    def note_failure(self, divergence: Divergence) -> None:
        """Count a failure of a participant, which ends the example for it."""
        name, text = divergence.participant, str(divergence.actual.text or "")
        self.failed.setdefault(name, Counter())[shape_of(divergence).removeprefix("bulk_")] += 1
        self.departed[name] = self.departed.get(name, 0) + (_WAITED if text.startswith(WAITED) else 1)

    def gone(self, limit: int) -> set[str]:
        """The participants that have left the run."""
        return {participant for participant, times in self.departed.items() if times >= limit}


def is_over(evidence: Evidence, participants: Iterable[str], limit: int) -> bool:
    """Whether going on makes no sense: the reference is wrong, the time is up, or every participant has left."""
    names = set(participants)
    return evidence.broken is not None or evidence.cut or (bool(names) and names <= evidence.gone(limit))
