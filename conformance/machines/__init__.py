"""State machines, as library code.

A test, a run or your own suite binds one of them to a lockstep::

    lockstep = Lockstep([JvmIndex("3.9.2")], scratch)
    TestOffsetIndex = OffsetMachine.bind(lockstep).TestCase
"""

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, ClassVar, Protocol

from conformance.kafka.jar_fetch import Progress
from conformance.lockstep import Divergence
from conformance.machines.cache import CacheMachine
from conformance.machines.compaction import CompactionMachine
from conformance.machines.files import FilesMachine
from conformance.machines.index import IndexMachine
from conformance.machines.log import LogMachine
from conformance.machines.offset import OffsetMachine
from conformance.machines.segment import SegmentMachine
from conformance.machines.time import TimeMachine
from conformance.machines.transaction import TransactionMachine


class Machine(Protocol):
    """Interface that every machine offers to a run, whatever it drives."""

    kind: ClassVar[str]

    @classmethod
    def bind(cls, lockstep: Any) -> type[Any]:
        """Return the machine, bound to a lockstep of the same kind."""

    @classmethod
    def subject(cls, specification: str, release: str, progress: Progress | None = None) -> Any:
        """Return the implementation that a specification such as ``jvm`` names, for a release.

        Raises:
            NotDrivenError: The machine cannot drive this implementation.
            ToolError: The implementation is not available here.
        """

    @classmethod
    def new_lockstep(
        cls,
        subjects: Iterable[Any],
        scratch: Path,
        *,
        releases: Iterable[str] = (),
        on_divergence: Callable[[Divergence], int] = lambda _: False,
    ) -> Any:
        """Return a lockstep of the kind that the machine drives."""


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
