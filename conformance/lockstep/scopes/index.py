"""Scope of an index file, with an abstract model."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from conformance.attribution import (
    TrackedIndex,
    clauses_of,
    implicated_clauses,
    is_reachable_by_broker,
    track_opening,
    track_step,
)
from conformance.attribution.history import follow, hidden, remember, rests_on
from conformance.implementations.kidx.index import ReferenceIndex
from conformance.implementations.model import Model
from conformance.lockstep.file_reader import StepFileReader, corrupted
from conformance.lockstep.lockstep import Lockstep
from conformance.lockstep.scope import Group, Scope
from conformance.lockstep.scopes.entries_only import EntriesOnlyParticipant
from conformance.lockstep.scopes.index_file import IndexParticipant
from conformance.operations import OK, Observation, Operation
from conformance.operations.index import INDEX_OPS
from conformance.operations.index_capabilities import INDEX_CAPABILITIES, can_execute
from conformance.operations.op import Files

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping
    from pathlib import Path

    from conformance.attribution.history import History
    from conformance.lockstep.divergence import Divergence
    from conformance.lockstep.participant import Participant
    from kidx.dialect import Dialect

_NAMING = {name: each.names_file for name, each in INDEX_OPS.items() if each.names_file >= 0}
"""The operations that select another file, each with the position of the argument that names it."""
_REPLACING = frozenset(name for name, each in INDEX_OPS.items() if each.files is Files.REPLACES)
"""The operations after which the reference's file may be a different one, or removed."""
_READING = frozenset(name for name, each in INDEX_OPS.items() if each.looks)
"""The operations that do not change the reference's file, so that it is not read again; subjects' files always are."""

ObservedFiles = tuple[Observation, bytes | None]


class IndexScope(Scope[Observation, bytes | None]):
    """Scope of one index file, of any of the three kinds."""

    reference = ReferenceIndex
    operations = INDEX_OPS
    empty_observation = Observation(OK, None)
    no_files = None
    no_file_name = ""
    file_selecting_operations = frozenset(_NAMING)
    close_operation = Operation("close")
    sections = ("index",)  # of kidx.dialect.table

    def representative_order(self, releases: Iterable[str]) -> Iterable[str]:
        """Return the releases in reverse order: of releases that behave alike, the newest gets the reference."""
        return reversed(list(releases))

    def participant(self, implementation: Any, directory: Path) -> IndexParticipant:
        """See the base class."""
        if "preallocation" not in getattr(implementation, "capabilities", INDEX_CAPABILITIES):
            return EntriesOnlyParticipant(implementation, directory)
        return IndexParticipant(implementation, directory)

    def model(self, release: str) -> Model:
        """See the base class."""
        return Model(release)

    def named(self, operation: Operation, before: str) -> str:
        """Return the name of the file, which is an argument of the operation."""
        del before
        name: str = operation.args[_NAMING[operation.name]]
        return name

    def files_after(self, reference: Participant, operation: Operation, before: bytes | None) -> bytes | None:
        """Return the content of the file; it is read only if the operation can have changed it."""
        name = operation.name
        if name in _READING:
            return before
        file: StepFileReader = reference.file  # type: ignore[attr-defined]
        return file.read() if name in _REPLACING else file.read_again()

    def by_name(self, files: bytes | None, name: str) -> Mapping[str, bytes | None]:
        """See the base class."""
        return {name: files} if name else {}

    def bytes_of(self, files: bytes | None) -> int:
        """See the base class."""
        return len(files or b"")

    def corrupted_path(self, operation: Operation, name: str) -> str:
        """See the base class."""
        del operation
        return name

    def corrupt(self, group: Group[Observation, bytes | None], operation: Operation, name: str) -> None:
        """Apply the corruption to the reference's file, and give all participants the same content."""
        group.observation = Observation(OK, group.observation.state)
        if group.files is None and operation.name != "write_file":
            return
        group.files = corrupted(group.files or b"", operation.name, operation.args)
        for participant in (group.reference, *group.unbatched):
            if participant.active:
                participant.corrupt(operation, name, group.files)  # type: ignore[attr-defined]

    def tracked(self, release: str) -> TrackedIndex:
        """See the base class."""
        return TrackedIndex(release)

    def clauses_of(
        self,
        operation: Operation,
        dialect: Dialect,
        tracked: TrackedIndex,
        before: ObservedFiles,
        after: ObservedFiles,
        known: dict[Any, Any],
    ) -> tuple[str, ...]:
        """See the base class."""
        del dialect, known
        if operation.name == "open":
            track_opening(tracked, operation, before[1])
        return clauses_of(operation, tracked, after[0])

    def is_reachable_by_broker(self, operation: Operation, tracked: TrackedIndex, after: ObservedFiles) -> bool:
        """See the base class."""
        return is_reachable_by_broker(operation, tracked, after[0])

    def implicated_clauses(
        self,
        clauses: tuple[str, ...],
        operation: Operation,
        dialect: Dialect,
        seen: tuple[ObservedFiles, ObservedFiles],
        expected: ObservedFiles,
        actual: ObservedFiles,
    ) -> tuple[str, ...]:
        """See the base class."""
        del dialect, expected
        return implicated_clauses(clauses, operation, seen[0][1], actual[0])

    def remember(self, history: History, divergence: Divergence) -> None:
        """See the base class."""
        of_bytes = "bytes" in divergence.aspects
        remember(history, divergence.operation, divergence.clauses, divergence.fields, of_bytes=of_bytes)

    def rests_on(
        self,
        history: History,
        hidden: tuple[str, ...],
        divergence: Divergence,
        expected: Observation,
        actual: Observation,
    ) -> Collection[str]:
        """See the base class."""
        of_length = divergence.is_of_length
        return (*hidden, *rests_on(history, divergence.operation, expected, actual, of_length=of_length))

    hidden = staticmethod(hidden)
    follow = staticmethod(follow)
    track = staticmethod(track_step)


class IndexLockstep(Lockstep[Observation, "bytes | None"]):
    """Lockstep of index files, with the arguments of the base class.

    Attributes:
        capabilities: The capabilities that every subject has.
    """

    scope = IndexScope()

    def __init__(self, subjects: Iterable[Any], scratch: Path, **options: Any) -> None:
        super().__init__(subjects, scratch, **options)
        declared = [getattr(subject, "capabilities", None) for subject in self.subjects]
        self.capabilities = frozenset(INDEX_CAPABILITIES).intersection(*(each for each in declared if each is not None))

    def count_at(self, level: str) -> None:
        """See the base class; at level must, machines only make calls that a broker makes."""
        if level == "must":
            self.capabilities -= {"calls_after_close", "odd_arguments"}

    def can_execute(self, operations: Iterable[Operation]) -> bool:
        """See the base class."""
        return super().can_execute(operations) and can_execute(operations, self.capabilities)
