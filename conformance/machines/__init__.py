"""The state machines, as library code.

A test, a campaign or your own suite binds one to a lockstep::

lockstep = Lockstep([JvmIndex("3.9.2")], scratch)
TestOffsetIndex = OffsetMachine.bind(lockstep).TestCase
"""

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, ClassVar, Protocol

from conformance.kafka.jar_fetch import Progress
from conformance.lockstep import Divergence
from conformance.machines.cleaned import CleanedMachine
from conformance.machines.files import FilesMachine
from conformance.machines.index import IndexMachine
from conformance.machines.log import LogMachine
from conformance.machines.offset import OffsetMachine
from conformance.machines.segment import SegmentMachine
from conformance.machines.time import TimeMachine
from conformance.machines.transaction import TransactionMachine


class Machine(Protocol):
    """What every machine offers to a run, whatever it drives."""

    kind: ClassVar[str]

    @classmethod
    def bind(cls, lockstep: Any) -> type[Any]:
        """The machine, driving a lockstep of its own kind."""

    @classmethod
    def subject(cls, specification: str, release: str, progress: Progress | None = None) -> Any:
        """The implementation that a specification such as ``jvm`` names, for a release.

        Raises:
            NotDrivenError: the machine cannot drive such a one.
            ToolError: it cannot be had here.
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
        """A lockstep of the kind the machine drives."""


MACHINES: dict[str, type[Machine]] = {
    machine.kind: machine
    for machine in (OffsetMachine, TimeMachine, TransactionMachine, SegmentMachine, LogMachine, CleanedMachine)
}

__all__ = [
    "MACHINES",
    "CleanedMachine",
    "FilesMachine",
    "IndexMachine",
    "LogMachine",
    "Machine",
    "OffsetMachine",
    "SegmentMachine",
    "TimeMachine",
    "TransactionMachine",
]
