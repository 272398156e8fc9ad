"""Hypothesis state machines as library code.

A test, a run or your own suite binds a machine to a lockstep::

    from conformance.machines import OffsetMachine

    lockstep = Lockstep([JvmIndex("3.9.2")], scratch)
    TestOffsetIndex = OffsetMachine.bind(lockstep).TestCase
"""

from pkgutil import resolve_name
from typing import Final

from conformance.clauses import machines
from conformance.machines.machine import Machine

MACHINES: Final[dict[str, type[Machine]]] = {
    name: resolve_name(f"{__name__}.{name}:{name.title()}Machine") for name in machines.MACHINES
}
"""All machines; :mod:`conformance.clauses.machines` declares them."""


def __getattr__(name: str) -> type[Machine]:
    """Return a machine's class, or a base class of it, by its own name, such as ``OffsetMachine``."""
    for machine in MACHINES.values():
        for each in machine.__mro__:
            if each.__name__ == name:
                return each
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
