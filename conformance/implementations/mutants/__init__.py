"""Reviewed defects of the reference, to test whether the machines find them; each is an implementation ``mutant:NAME``.

A mutant is the reference with one defect. It is compared with the unchanged reference in the dialect of one release, so
neither Java nor Kafka's jars are needed. ``conformance mutate`` measures after how many examples each is found.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from conformance.errors import ToolError
from conformance.implementations.mutants import (
    cache,
    choices,
    cleaning,
    leader,
    log,
    log_choices,
    mapped,
    offset,
    producers,
    search,
    segment,
    segment_choices,
    tiered,
    time,
    transaction,
)
from conformance.implementations.mutants.registry import MUTANTS, Mutant, defect
from conformance.operations import Observation, Outcome
from conformance.operations.outcomes import FAILURE

if TYPE_CHECKING:
    from conformance.implementations.protocol import Implementation
    from conformance.operations import Operation


def mutant(name: str) -> Mutant:
    """Return the mutant of a name.

    Raises:
        ToolError: There is no mutant of that name.
    """
    planted = MUTANTS.get(name) or choices.CHOICES.get(name)
    if planted is None:
        raise ToolError(f"unknown mutant {name!r}; `conformance mutate --list` lists all")
    return planted


def implementation_of(mutant: Mutant, release: str) -> Implementation:
    """Return the reference with the defective class of the mutant."""
    reference: Any = mutant.reference
    members: dict[str, Any] = {}
    if issubclass(mutant.defect, reference):
        reference = mutant.defect
    else:
        members[mutant.attribute] = mutant.defect
    members["perform"] = careful(reference.perform)
    made: Any = type("Mutant", (reference,), members)(release)
    made.name = f"mutant:{mutant.name} {release}"
    return made  # type: ignore[no-any-return]


def careful(perform: Any) -> Any:
    """Return ``perform`` with Python exceptions, which a defect may cause, as the outcome of a crash."""

    def performed(self: Any, operation: Operation) -> Any:
        try:
            return perform(self, operation)
        except Exception as error:  # noqa: BLE001 -- see above
            return Observation(Outcome(FAILURE, None, repr(error)), None)

    return performed


__all__ = [
    "MUTANTS",
    "Mutant",
    "cache",
    "choices",
    "cleaning",
    "defect",
    "implementation_of",
    "leader",
    "log",
    "log_choices",
    "mapped",
    "mutant",
    "offset",
    "producers",
    "search",
    "segment",
    "segment_choices",
    "tiered",
    "time",
    "transaction",
]
