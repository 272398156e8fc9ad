"""What a run sees of differences: how often, of which participant, and the shortest steps that show each."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from conformance.runs.differences.gravity import gravity
from conformance.runs.differences.shapes import shape_of

if TYPE_CHECKING:
    from conformance.lockstep.divergence import Divergence
    from conformance.operations import Operation


class Kind(NamedTuple):
    """What two sightings of one kind have in common: the implementation, the shape, and the clauses at stake."""

    participant: str
    shape: str
    clauses: tuple[str, ...]


@dataclass(slots=True)
class Sighting:
    """One kind of difference, as often as it was seen.

    Attributes:
        divergence: of the gravest sighting, and of those of the shortest steps.
        operations: these steps.
        count: how often it was seen.
    """

    divergence: Divergence
    operations: tuple[Operation, ...]
    count: int = 1


def _order(divergence: Divergence, operations: tuple[Operation, ...]) -> tuple[bool, int, int]:
    """Smaller for the sighting that is kept."""
    promise, rank = gravity(divergence)
    return not promise, -rank, len(operations)


class Sightings(dict[Kind, Sighting]):
    """All kinds of differences that were seen, in the order of their first sighting."""

    def see(self, divergence: Divergence, operations: Iterable[Operation]) -> None:
        """A difference was seen, at the last of these operations."""
        kind = Kind(divergence.participant, shape_of(divergence), divergence.clauses)
        known = self.get(kind)
        if known is None:
            self[kind] = Sighting(divergence, tuple(operations))
            return
        known.count += 1
        steps = tuple(operations)
        if _order(divergence, steps) < _order(known.divergence, known.operations):
            known.divergence, known.operations = divergence, steps

    def merge(self, later: Sightings) -> None:
        """Adds what was seen later; of equally long steps the earlier ones stay."""
        for kind, sighting in later.items():
            known = self.get(kind)
            if known is None:
                self[kind] = sighting
            else:
                known.count += sighting.count
                if _order(sighting.divergence, sighting.operations) < _order(known.divergence, known.operations):
                    known.divergence, known.operations = sighting.divergence, sighting.operations
