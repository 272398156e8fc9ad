"""Difference between the behaviour of two Kafka releases, and its trace."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    from conformance.experiments.release_diff.execution import ExecutionRecord
    from conformance.experiments.release_diff.implicated import ImplicatedClauses
    from conformance.lockstep import Divergence
    from conformance.operations import Operation
    from conformance.runs.sameness import Sameness

Place = tuple[str, str, tuple[str, ...]]
"""Place of a difference: state machine, operation and aspects (``outcome``, ``state`` or ``bytes``)."""


def place_of(machine: str, divergence: Divergence) -> Place:
    """Return the place of a difference."""
    return machine, divergence.operation.name, divergence.aspects


@dataclass(frozen=True)
class Difference:
    """One behaviour in which two releases differ.

    Attributes:
        machine: The state machine that found the difference.
        divergence: The divergence of the new release from the old release's reference, in the last operation.
        operations: The shrunk trace.
        implicated: The clauses that separate the releases at this step; without any, the difference is a finding.
        old: The execution of the trace by the old release.
        new: The execution of the trace by the new release.
        trace: The path of the trace.
        unobserved: Fields of the state that the rest of the search does not compare. Otherwise, a difference that is
            only in the state would end every example in which it occurs.
        identity: The key of equal differences: the families of the clauses that separate the releases at this step;
            without such clauses the operation, the aspects and the kinds of outcome.
        also: Machine, operation and aspects of other steps with the same difference.
        more: Other traces with this difference, in steps that its clauses do not cover.
    """

    machine: str
    divergence: Divergence
    operations: tuple[Operation, ...]
    implicated: ImplicatedClauses
    old: ExecutionRecord
    new: ExecutionRecord
    trace: Path
    unobserved: tuple[str, ...]
    identity: Sameness
    also: tuple[Place, ...] = ()
    more: tuple[Path, ...] = ()

    @property
    def place(self) -> Place:
        """Machine, operation and aspects of the step that differs."""
        return place_of(self.machine, self.divergence)
