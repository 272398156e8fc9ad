"""What the machines of all three kinds of index do: open, close, crash, damage, delete, rename, read, cut.

Subclass recipe: set ``kind`` and ``suffix``, add the rules that append, and return from ``closed_calls`` what may be
tried on an index that is closed. Every rule ends with an index open, so that no rule needs a precondition.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Self

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, rule

from conformance.implementations.protocol import Requiring
from conformance.implementations.spec import implementation_factory
from conformance.lockstep import Lockstep
from conformance.operations import SIGNATURES, Observation, Operation, State
from conformance.operations.index_capabilities import has_unusual_arguments
from conformance.strategies import index as strategies
from conformance.strategies.index_probe import Aim, IndexProbe
from kidx.layout import ABORTED_TXN, OFFSET_INDEX, TIME_INDEX

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path

    from conformance.implementations.protocol import Implementation
    from conformance.kafka.jar_fetch import Progress
    from conformance.lockstep import Divergence

_SUFFIXES = ("", "", ".deleted", ".swap", ".cleaned")
_NOWHERE = "missing/"
_MAPPED = ("offset", "time")
_ENTRY_SIZES = {"offset": OFFSET_INDEX.size, "time": TIME_INDEX.size, "transaction": ABORTED_TXN.size}


class IndexMachine(RuleBasedStateMachine):
    """Drives a lockstep through the life of one index file."""

    kind: ClassVar[str]
    suffix: ClassVar[str]
    lockstep: ClassVar[Lockstep]
    left_out: ClassVar[frozenset[str]] = frozenset()

    @classmethod
    def bind(cls, lockstep: Lockstep) -> type[Self]:
        """This machine, driving ``lockstep``; it leaves out what a participant lacks."""
        left_out = frozenset(name for name in SIGNATURES if not lockstep.supports(name))
        members = {"lockstep": lockstep, "left_out": left_out, "__module__": cls.__module__}
        return type(cls.__name__, (cls,), members)

    @classmethod
    def subject(cls, specification: str, release: str, progress: Progress | None = None) -> Implementation:
        """The implementation that a specification such as ``jvm`` names, for a release.

        Raises:
            NotDrivenError: a build that does not have what the machine needs.
            ToolError: it cannot be had here.
        """
        implementation = implementation_factory(specification)(release, progress)
        if isinstance(implementation, Requiring):
            implementation.require(cls.kind)
        return implementation

    @classmethod
    def new_lockstep(
        cls,
        subjects: Iterable[Implementation],
        scratch: Path,
        *,
        releases: Iterable[str] = (),
        on_divergence: Callable[[Divergence], int] = lambda _: False,
    ) -> Lockstep:
        """A lockstep of the kind this machine drives."""
        return Lockstep(subjects, scratch, releases=releases, on_divergence=on_divergence)

    def __init__(self) -> None:
        super().__init__()
        self.probe = IndexProbe(self.lockstep, self.kind)
        self.path = ""
        self.created_size = 0
        self.misnamed = False
        self.lockstep.begin()

    def teardown(self) -> None:
        """Removes the example's files; called by Hypothesis, also after a failure."""
        self.lockstep.end()

    def do(self, name: str, *arguments: Any) -> Observation | None:
        """Performs an operation with every participant. None without participants (the benchmark's baseline)."""
        operation = Operation(name, arguments)
        if name in self.left_out or (has_unusual_arguments(operation) and not self.has("odd_arguments")):
            return None
        if self.lockstep.groups:
            return self.lockstep.perform(operation)
        self.lockstep.statistics.steps += 1
        return None

    @property
    def state(self) -> State | None:
        """The state of the newest dialect's reference; None if nothing has been opened, or without participants."""
        groups = self.lockstep.groups
        return groups[-1].observation.state if groups else None

    def has(self, capability: str) -> bool:
        """Return whether every participant has a capability of indexes."""
        return capability in self.lockstep.capabilities

    # -- opening -----------------------------------------------------------------------------------------------

    def create(self, base_offset: int, max_index_size: int) -> None:
        """Opens a file that does not exist yet."""
        if not self.has("odd_arguments") and self.kind in _MAPPED:
            base_offset, max_index_size = abs(base_offset), max(max_index_size, _ENTRY_SIZES[self.kind])
        self.probe.base_offset = base_offset
        self.probe.max_index_size = self.created_size = max_index_size
        self.path = f"{base_offset:020d}{self.suffix}"
        self.open("read-write")

    def open(self, how: str) -> None:
        """Opens the file read-write, read-only, or after an attempt in a directory that does not exist.

        A new file that is refused is left behind empty, and then is opened (AI-3, AI-4, AI-5). Releases differ in
        what an unmapped index does to the file, so it may be new to some only; in the end it is open in all of them.
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

    @rule(aim=strategies.cut_points())
    def truncate_to(self, aim: Aim) -> None:
        """Removes what is at or beyond an offset."""
        self.do("truncate_to", self.probe.offset(aim))

    @rule(suffix=st.sampled_from(_SUFFIXES), directory=st.sampled_from(("", "", "", _NOWHERE)))
    def rename(self, suffix: str, directory: str) -> None:
        """Moves the open index's file, as Kafka does before deleting or swapping; a move to nowhere fails (AI-21)."""
        name = f"{self.probe.base_offset:020d}{self.suffix}{suffix}"
        if "rename" in self.left_out:
            return
        self.move(directory + name)
        if not directory:
            self.path = name
        self.lockstep.compare_directories()

    def move(self, path: str) -> None:
        """Renames; a failure changes the name all the same, and the name may then be another file's (AI-21)."""
        seen = self.do("rename", path)
        self.misnamed = self.misnamed or (seen is not None and seen.outcome.error is not None)

    def close_and_damage(self, how: str, calls: list[Operation], damages: list[Operation]) -> None:
        """Closes, crashes or deletes, tries calls on what is closed, and damages the file."""
        if how in self.left_out:
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
    """How an index is released: closed as Kafka does, as a killed process leaves it, or deleted."""
    return st.sampled_from(("close", "close", "crash", "delete"))


def calls_on_closed(kind: str, suffix: str) -> st.SearchStrategy[list[Operation]]:
    """Calls that some release answers although the file is unmapped (AI-16, AI-19, AI-20)."""
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
    """How a file is opened again."""
    return st.sampled_from(("read-write", "read-write", "read-only", "missing"))


def damages_of(kind: str) -> st.SearchStrategy[list[Operation]]:
    """Up to two damages: the second one finds the file as the first one left it."""
    return st.lists(strategies.damages(_ENTRY_SIZES[kind]), max_size=2)
