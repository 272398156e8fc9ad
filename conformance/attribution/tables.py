"""Tables of all machines: the clauses that the operations of each machine can exercise."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Final

from conformance.attribution import broker, index, log, segment, tiered
from conformance.attribution import cache as remote
from conformance.attribution.log_cleaning import CLEANING_ROWS
from conformance.attribution.rules import ANY
from conformance.clauses import load_clauses
from conformance.clauses.machines import MACHINES

if TYPE_CHECKING:
    from collections.abc import Mapping

    from conformance.attribution.rules import Row
    from conformance.clauses import Clause

ROWS: Final[Mapping[str, tuple[Row, ...]]] = {
    **index.ROWS,
    "segment": segment.ROWS,
    "log": log.ROWS,
    "cleaned": CLEANING_ROWS,
    "cache": remote.ROWS,
    "tiered": tiered.ROWS,
}
"""The rows, by machine. ``cleaned`` has the rows about compaction; its steps exercise the rows of ``log`` as well."""

# The wire machine has no rows: these are the clauses that its requests exercise.
_WIRE: Final = (
    "LO-1 LO-2b LO-3a LO-4 LO-5 LO-6 LO-9 LO-10 LO-12 LO-13 LO-14 LO-15b LO-15c LO-20 LO-23 LO-24 LO-25 LO-26 LO-27"
    " LG-1 LG-12 LG-20 LG-24 FE-1 FE-2 FE-3"
)
_CLAUSES: Final = {
    **{machine: frozenset(row.clause for row in rows) for machine, rows in ROWS.items()},
    "broker": broker.CLAUSES,
    "wire": frozenset(_WIRE.split()),
}


@cache
def machines_of(clause: str) -> tuple[str, ...]:
    """Return the machines whose steps can exercise a clause; empty if no step can."""
    return tuple(machine for machine in MACHINES if clause in _CLAUSES.get(machine, ()))


def clauses_for(machine: str, release: str) -> tuple[Clause, ...]:
    """Return the clauses that a machine can exercise on a release, in the catalogue's order.

    Raises:
        ValueError: The machine is unknown.
    """
    if machine not in MACHINES:
        raise ValueError(f"unknown machine {machine!r}; choose from {', '.join(MACHINES)}")
    exercised = _CLAUSES[machine]
    return tuple(clause for clause in load_clauses().values() if clause.id in exercised and clause.applies_to(release))


@cache
def operations_for(machine: str, clause: str) -> frozenset[str]:
    """Return the operations of a machine that can exercise a clause; empty if all can, or if they are not known."""
    rows = (*log.ROWS, *CLEANING_ROWS) if machine == "cleaned" else ROWS.get(machine, ())
    named = [row.operations for row in rows if row.clause == clause]
    return frozenset() if ANY in named else frozenset(name for names in named for name in names.split())
