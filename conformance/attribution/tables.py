"""Tables of all machines (generators of operations): the clauses that each has in its own table."""

from __future__ import annotations

from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Final

from conformance.attribution.rules import ANY, Rules, each_variant
from conformance.clauses import load_clauses
from conformance.clauses.editions import in_edition
from conformance.clauses.machines import MACHINES

if TYPE_CHECKING:
    from conformance.attribution.rules import Row
    from conformance.clauses import Clause

_MODULES: Final = {machine: import_module(f"conformance.attribution.{machine}") for machine in MACHINES}
"""The module of each machine: it has either rows (``ROWS``) or the ids of all clauses (``CLAUSES``)."""


@cache
def rows_of(machine: str) -> tuple[Row, ...]:
    """Return the rows of a machine, each of one clause; none for a server machine.

    ``cleaned`` has the rows about compaction; its steps exercise the rows of ``log`` as well.
    """
    return each_variant(getattr(_MODULES[machine], "ROWS", ()))


@cache
def _clauses_of(machine: str) -> frozenset[str]:
    exercised: frozenset[str] = getattr(_MODULES[machine], "CLAUSES", frozenset(row.clause for row in rows_of(machine)))
    return exercised


@cache
def rules_of(machine: str, release: str) -> Rules:
    """Return the rows of a machine that apply in a release."""
    return Rules(rows_of(machine), release)


@cache
def machines_of(clause: str) -> tuple[str, ...]:
    """Return the machines that have a clause in their own tables; empty if no step can exercise it.

    ``cleaned``, whose steps exercise the rows of its base, ``log``, as well, is not named for those.
    """
    return tuple(machine for machine in MACHINES if clause in _clauses_of(machine))


def clauses_for(machine: str, release: str) -> tuple[Clause, ...]:
    """Return the clauses of a machine's own table that apply to a release, of the edition in force.

    They have the order of the catalogue. The rows of a base, which ``cleaned`` has, are not among them.

    Raises:
        ValueError: The machine is unknown.
    """
    if machine not in MACHINES:
        raise ValueError(f"unknown machine {machine!r}; choose from {', '.join(MACHINES)}")
    exercised = _clauses_of(machine)
    wanted = (clause for clause in load_clauses().values() if clause.id in exercised and in_edition(clause.id))
    return tuple(clause for clause in wanted if clause.applies_to(release))


@cache
def operations_for(machine: str, clause: str) -> frozenset[str]:
    """Return the operations of a machine that can exercise a clause; empty if all can, or if they are not known."""
    shared = MACHINES[machine].base
    rows = (*(rows_of(shared) if shared in MACHINES else ()), *rows_of(machine))
    named = [row.operations for row in rows if row.clause == clause]
    return frozenset() if ANY in named else frozenset(name for names in named for name in names.split())
