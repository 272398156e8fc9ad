"""Hypothesis state machines as library code.

A test, a run or your own suite binds a machine to a lockstep::

    lockstep = Lockstep([JvmIndex("3.9.2")], scratch)
    TestOffsetIndex = OffsetMachine.bind(lockstep).TestCase
"""

from conformance.machines.broker import BrokerMachine
from conformance.machines.cache import CacheMachine
from conformance.machines.compaction import CompactionMachine
from conformance.machines.files import FilesMachine
from conformance.machines.index import IndexMachine
from conformance.machines.log import LogMachine
from conformance.machines.machine import Machine
from conformance.machines.offset import OffsetMachine
from conformance.machines.segment import SegmentMachine
from conformance.machines.tiered import TieredMachine
from conformance.machines.time import TimeMachine
from conformance.machines.transaction import TransactionMachine
from conformance.machines.wire import WireMachine

MACHINES: dict[str, type[Machine]] = {
    machine.kind: machine
    for machine in (
        OffsetMachine,
        TimeMachine,
        TransactionMachine,
        SegmentMachine,
        LogMachine,
        CompactionMachine,
        CacheMachine,
        TieredMachine,
        BrokerMachine,
        WireMachine,
    )
}
"""All machines; :mod:`conformance.clauses.machines` declares what each is used for."""

__all__ = [
    "MACHINES",
    "BrokerMachine",
    "CacheMachine",
    "CompactionMachine",
    "FilesMachine",
    "IndexMachine",
    "LogMachine",
    "Machine",
    "OffsetMachine",
    "SegmentMachine",
    "TieredMachine",
    "TimeMachine",
    "TransactionMachine",
    "WireMachine",
]
