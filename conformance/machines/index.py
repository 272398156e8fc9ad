"""Base class of the machines of all three kinds of index: open, close, crash, corrupt, delete, rename and read.

To write a machine, set ``kind`` and ``suffix``, and add the rules that append and that reopen. Every rule ends with an
open index, so no rule needs a precondition.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Self

from hypothesis import strategies as st
from hypothesis.stateful import rule

from conformance.implementations.protocol import CapabilityChecked
from conformance.implementations.spec import implementation_factory
from conformance.lockstep import Lockstep
from conformance.machines.machine import Machine
from conformance.operations import SIGNATURES, Observation, Operation, State
from conformance.operations.index_capabilities import LARGEST_BASE, has_unusual_arguments
from conformance.strategies import index as strategies
from conformance.strategies.index_probe import AnchoredNumber, IndexProbe
from kidx.layout import ABORTED_TXN, OFFSET_INDEX, TIME_INDEX

if TYPE_CHECKING:
    from conformance.implementations.protocol import Implementation
    from conformance.kafka.jar_fetch import Progress

_SUFFIXES = ("", "", ".deleted", ".swap", ".cleaned")
_NOWHERE = "missing/"  # a directory that does not exist
_MAPPED = ("offset", "time")
_ENTRY_SIZES = {"offset": OFFSET_INDEX.size, "time": TIME_INDEX.size, "transaction": ABORTED_TXN.size}


class IndexMachine(Machine):
    """Machine of one index file.

    Attributes:
        skipped_operations: The names of the operations that a participant does not support.
        probe: The keys and sizes of the index, near which rules choose their arguments.
        path: The name of the file.
        created_size: The maximum size with which the file was created, in bytes.
        misnamed: True if a failed rename has left a wrong path in the index (AI-21).
    """

    lockstep_type = Lockstep
    suffix: ClassVar[str]
    lockstep: ClassVar[Lockstep]
    skipped_operations: ClassVar[frozenset[str]] = frozenset()

    @classmethod
    def bind(cls, lockstep: Lockstep, **members: Any) -> type[Self]:
        """Return this machine bound to a lockstep; the rules skip operations that a participant does not support."""
        skipped_operations = frozenset(name for name in SIGNATURES if not lockstep.supports(name))
        return super().bind(lockstep, skipped_operations=skipped_operations, **members)

    @classmethod
    def subject(cls, specification: str, release: str, progress: Progress | None = None) -> Implementation:
        """Return the implementation that a specification such as ``jvm`` names, for a release.

        Raises:
            NotDrivenError: The implementation is a build that lacks a capability that the machine needs.
            ToolError: The implementation is not available here.
        """
        implementation = implementation_factory(specification)(release, progress)
        if isinstance(implementation, CapabilityChecked):
            implementation.require(cls.kind)
        return implementation

    def __init__(self) -> None:
        super().__init__()
        self.probe = IndexProbe(self.lockstep, self.kind)
        self.path = ""
        self.created_size = 0
        self.misnamed = False
        self.lockstep.begin()

    def teardown(self) -> None:
        """Remove the example's files; called by Hypothesis, also after a failure."""
        self.lockstep.end()

    def do(self, name: str, *arguments: Any) -> Observation | None:
        """Execute an operation with every participant; return None if it is skipped, or without participants."""
        operation = Operation(name, arguments)
        if name in self.skipped_operations or (has_unusual_arguments(operation) and not self.has("odd_arguments")):
            return None
        if self.lockstep.groups:
            return self.lockstep.perform(operation)
        self.lockstep.statistics.steps += 1
        return None

    @property
    def state(self) -> State | None:
        """State in the reference of the newest tested release; None before an opening or without participants."""
        groups = self.lockstep.groups
        return groups[-1].observation.state if groups else None

    def has(self, capability: str) -> bool:
        """Return True if every participant has a capability."""
        return capability in self.lockstep.capabilities

    # -- opening -----------------------------------------------------------------------------------------------

    def create(self, base_offset: int, max_index_size: int) -> None:
        """Open a file that does not exist yet."""
        if not self.has("odd_arguments") and self.kind in _MAPPED:
            base_offset = min(abs(base_offset), LARGEST_BASE)
            max_index_size = max(max_index_size, _ENTRY_SIZES[self.kind])
        self.probe.base_offset = base_offset
        self.probe.max_index_size = self.created_size = max_index_size
        self.path = f"{base_offset:020d}{self.suffix}"
        self.open("read-write")

    def open(self, how: str) -> None:
        """Open the file, until it is open in all releases.

        A rejected new file remains as an empty file, which the next attempt opens (AI-3, AI-4, AI-5). Releases differ
        in the effect of calls on a closed index, so the file may be missing in some of them only.

        Args:
            how: ``"read-write"``, ``"read-only"``, or ``"missing"`` to try in a missing directory first.
        """
        needed = {"read-only": "read_only", "missing": "odd_arguments"}
        if how in needed and not self.has(needed[how]):
            how = "read-write"
        attempts = [(self.path, how != "read-only"), (self.path, True), (self.path, True)]
        if how == "missing":
            attempts[0] = (_NOWHERE + self.path, True)
        for path, writable in attempts:
            self.do("open", self.kind, path, self.probe.base_offset, self.probe.max_index_size, writable)
            if all(group.observation.state is not None for group in self.lockstep.groups):
                break
        self.misnamed = False

    # -- rules -------------------------------------------------------------------------------------------------

    @rule(number=strategies.cut_points())
    def truncate_to(self, number: AnchoredNumber) -> None:
        """Remove the entries at or beyond an offset."""
        self.do("truncate_to", self.probe.offset(number))

    @rule(suffix=st.sampled_from(_SUFFIXES), directory=st.sampled_from(("", "", "", _NOWHERE)))
    def rename(self, suffix: str, directory: str) -> None:
        """Rename the file of the open index, as before a deletion or swap; with a missing directory, too (AI-21)."""
        name = f"{self.probe.base_offset:020d}{self.suffix}{suffix}"
        if "rename" in self.skipped_operations:
            return
        self.move(directory + name)
        if not directory:
            self.path = name
        self.lockstep.compare_directories()

    def move(self, path: str) -> None:
        """Rename the file. A failed renaming changes the index's path nevertheless (AI-21)."""
        seen = self.do("rename", path)
        self.misnamed = self.misnamed or (seen is not None and seen.outcome.error is not None)

    def close_and_damage(self, how: str, calls: list[Operation], damages: list[Operation]) -> None:
        """Close, crash or delete the index, try calls on the closed index, and corrupt the file."""
        if how in self.skipped_operations:
            how = "close"
        self.do(how)
        if how != "crash" and self.has("calls_after_close"):
            for call in calls:
                if self.do(call.name, *call.args) is not None and call.name == "rename":
                    self.path = call.args[0]
        for damage in damages:
            self.do(damage.name, *damage.args)
        self.lockstep.compare_directories()


def closings() -> st.SearchStrategy[str]:
    """Draw how an index is released: closed by Kafka, left by a killed process, or deleted."""
    return st.sampled_from(("close", "close", "crash", "delete"))


def calls_on_closed(kind: str, suffix: str) -> st.SearchStrategy[list[Operation]]:
    """Draw calls that some release executes although the file is unmapped (AI-16, AI-19, AI-20)."""
    plain = [Operation(name) for name in ("close", "flush", "sanity_check", "reset", "delete")]
    plain += [Operation("truncate_to", (0,)), Operation("rename", (f"closed{suffix}",))]
    if kind == "transaction":
        plain += [
            Operation("all_aborted"),
            Operation("append_aborted", (1, 2, 3, 4)),
            Operation("collect_aborted", (0, 9)),
        ]
    else:
        plain += [Operation(name) for name in ("trim", "truncate")]
        plain += [Operation("lookup", (0,)), Operation("entry", (0,)), Operation("resize", (_ENTRY_SIZES[kind],))]
        append = ("append", (7, 7)) if kind == "offset" else ("maybe_append", (7, 7, True))
        plain.append(Operation(*append))
    return st.lists(st.sampled_from(plain), max_size=2)


def openings() -> st.SearchStrategy[str]:
    """Draw how a file is reopened."""
    return st.sampled_from(("read-write", "read-write", "read-only", "missing"))


def damages_of(kind: str) -> st.SearchStrategy[list[Operation]]:
    """Draw up to two corruptions, which are applied one after the other."""
    return st.lists(strategies.damages(_ENTRY_SIZES[kind]), max_size=2)
