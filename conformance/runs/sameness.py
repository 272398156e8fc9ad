"""Sameness of divergences: the properties that all occurrences of one divergence share."""

from __future__ import annotations

from typing import NamedTuple


class Sameness(NamedTuple):
    """Properties that all occurrences of one divergence share. Each kind of run sets those that it knows.

    Attributes:
        implementation: The implementation, by its ``-i`` argument or its name as a participant.
        clause: The failing clause without the letter of its variant, or all implicated clauses; empty if no clause
            applies to the step.
        operation: The operation or the request; empty if the divergence does not depend on it.
        aspect: The part of the result that differs, and the kind of difference.
        circumstances: The other conditions of the divergence.
    """

    implementation: str
    clause: str = ""
    operation: str = ""
    aspect: str = ""
    circumstances: frozenset[str] = frozenset()

    def needs_more_than(self, other: Sameness) -> bool:
        """Return True if this is the other divergence under additional circumstances."""
        return self[:-1] == other[:-1] and self.circumstances > other.circumstances

    def overlaps(self, other: Sameness) -> bool:
        """Return True if the divergences are equal, or differ only in their circumstances and share one of these."""
        return self == other or (self[:-1] == other[:-1] and not self.circumstances.isdisjoint(other.circumstances))
