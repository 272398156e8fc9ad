"""Tables of all machines: the clauses that the operations of each machine can exercise."""

from __future__ import annotations

from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Final

from conformance.attribution.rules import ANY, Rules
from conformance.clauses import load_clauses
from conformance.clauses.machines import FILE_MACHINES, MACHINES

if TYPE_CHECKING:
    from collections.abc import Mapping

    from conformance.attribution.rules import Row
    from conformance.clauses import Clause

_MODULES: Final = {machine: import_module(f"conformance.attribution.{machine}") for machine in MACHINES}

ROWS: Final[Mapping[str, tuple[Row, ...]]] = {machine: _MODULES[machine].ROWS for machine in FILE_MACHINES}
"""The rows, by machine. ``cleaned`` has the rows about compaction; its steps exercise the rows of ``log`` as well."""

_CLAUSES: Final[Mapping[str, frozenset[str]]] = {
    machine: frozenset(row.clause for row in ROWS[machine]) if machine in ROWS else _MODULES[machine].CLAUSES
    for machine in MACHINES
}


@cache
def rules_of(machine: str, release: str) -> Rules:
    """Return the rows of a machine that apply in a release."""
    return Rules(ROWS[machine], release)


@cache
def machines_of(clause: str) -> tuple[str, ...]:
    """Return the machines whose steps can exercise a clause; empty if no step can."""
    return tuple(machine for machine in MACHINES if clause in _CLAUSES[machine])


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
    rows = (*ROWS.get(MACHINES[machine].operations, ()), *ROWS.get(machine, ()))
    named = [row.operations for row in rows if row.clause == clause]
    return frozenset() if ANY in named else frozenset(name for names in named for name in names.split())
