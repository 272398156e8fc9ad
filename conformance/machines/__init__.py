"""The state machines, as library code.

A test, a campaign or your own suite binds one to a lockstep::

lockstep = Lockstep([JvmIndex("3.9.2")], scratch)
TestOffsetIndex = OffsetMachine.bind(lockstep).TestCase
"""

from conformance.machines.index import IndexMachine
from conformance.machines.offset import OffsetMachine
from conformance.machines.time import TimeMachine
from conformance.machines.transaction import TransactionMachine

MACHINES: dict[str, type[IndexMachine]] = {
    machine.kind: machine for machine in (OffsetMachine, TimeMachine, TransactionMachine)
}

__all__ = ["MACHINES", "IndexMachine", "OffsetMachine", "TimeMachine", "TransactionMachine"]
