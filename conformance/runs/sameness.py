"""Sameness of divergences: what all occurrences of one divergence have in common, whatever found it."""

from __future__ import annotations

from typing import NamedTuple


class Sameness(NamedTuple):
    """Properties that all occurrences of one divergence share; every kind of run fills in those that it knows.

    Attributes:
        implementation: The implementation, by its ``-i`` argument or its name as a participant.
        clause: The failing clause without the letter of its variant, or all implicated clauses; empty if no clause
            covers the step.
        operation: The operation or the request; empty if the divergence is the same after any operation.
        aspect: The part of the result that differs, and how.
        circumstances: What else the divergence depends on.
    """

    implementation: str
    clause: str = ""
    operation: str = ""
    aspect: str = ""
    circumstances: frozenset[str] = frozenset()

    def needs_more_than(self, other: Sameness) -> bool:
        """Return True if this is the other divergence in further circumstances."""
        return self[:-1] == other[:-1] and self.circumstances > other.circumstances

    def overlaps(self, other: Sameness) -> bool:
        """Return True if the divergences are equal, or share circumstances and everything else."""
        return self == other or (self[:-1] == other[:-1] and not self.circumstances.isdisjoint(other.circumstances))
