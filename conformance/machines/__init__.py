"""State machines, as library code.

A test, a run or your own suite binds one of them to a lockstep::

    lockstep = Lockstep([JvmIndex("3.9.2")], scratch)
    TestOffsetIndex = OffsetMachine.bind(lockstep).TestCase
"""

from conformance.machines.cache import CacheMachine
from conformance.machines.compaction import CompactionMachine
from conformance.machines.files import FilesMachine
from conformance.machines.index import IndexMachine
from conformance.machines.log import LogMachine
from conformance.machines.machine import Machine
from conformance.machines.offset import OffsetMachine
from conformance.machines.segment import SegmentMachine
from conformance.machines.time import TimeMachine
from conformance.machines.transaction import TransactionMachine

MACHINES: dict[str, type[Machine]] = {
    machine.kind: machine
    for machine in (OffsetMachine, TimeMachine, TransactionMachine, SegmentMachine, LogMachine, CompactionMachine)
}

REPLAYED: dict[str, type[Machine]] = MACHINES | {CacheMachine.kind: CacheMachine}
"""Machines whose traces are replayed; runs do not have the cache machine."""

__all__ = [
    "MACHINES",
    "REPLAYED",
    "CacheMachine",
    "CompactionMachine",
    "FilesMachine",
    "IndexMachine",
    "LogMachine",
    "Machine",
    "OffsetMachine",
    "SegmentMachine",
    "TimeMachine",
    "TransactionMachine",
]
