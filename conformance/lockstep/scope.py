"""Scope of a lockstep: the object that its participants implement, such as an index file, a segment, a log or a topic.

A scope defines the files and how they are read, the comparison, the releases that behave alike, the reference, the
abstract model if any, the corruption of files, and the clauses that a step exercises. The implementation, not the
scope, determines whether a participant executes steps in batches
(:class:`~conformance.implementations.protocol.BatchedImplementation`).

A new scope is a subclass of :class:`Scope`, a :class:`~conformance.lockstep.participant.Participant` that reads its
files, and a subclass of :class:`~conformance.lockstep.lockstep.Lockstep` with the scope in its attribute ``scope``.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any, ClassVar, Generic, TypeVar

from conformance.implementations.protocol import provides_codecs, with_codecs_of
from conformance.operations.op import Effect
from kidx.dialect import dialect_of, representative, version_of

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Hashable, Iterable, Mapping
    from pathlib import Path

    from conformance.lockstep.divergence import Divergence, Entries
    from conformance.lockstep.participant import Participant
    from conformance.operations import Operation
    from conformance.operations.op import Op
    from kidx.dialect import Dialect

ObservationT = TypeVar("ObservationT")
"""An observation: the outcome of an operation, and the state after it."""
Files = TypeVar("Files")
"""The contents of the files that are compared."""


class Scope(Generic[ObservationT, Files]):
    """Definition of a kind of object for a lockstep; instances have no state and may be shared."""

    participant: Callable[[Any, Path], Participant]
    """A function or class that returns the participant of an implementation and its directory."""
    reference: Callable[[str], Any]
    """A function or class that returns kidx as an implementation, for a release."""
    operations: ClassVar[Mapping[str, Op]] = {}
    """The declarations of the operations, by name."""
    empty_observation: ObservationT
    """The observation before the first step of an example."""
    no_files: Files
    """The files of an empty directory."""
    no_file_name: Any = None
    """The name of the files before any operation has named files."""
    file_selecting_operations: ClassVar[frozenset[str]] = frozenset()
    """The operations after which files with a different name are compared; :meth:`named` returns the name."""
    corrupting_operations: ClassVar[frozenset[str]]
    """The operations that the harness executes itself, on files that no participant has open."""
    close_operation: ClassVar[Operation]
    """The operation that is added to a trace if an implementation fails at the end of an example."""
    aspects: ClassVar[tuple[str, ...]] = ("outcome", "text", "state", "bytes")
    """The aspects that are compared, in the order in which they are reported."""

    sections: ClassVar[tuple[str, ...]]
    """The sections of the table of release differences (:mod:`kidx.dialect.table`) that concern this kind of object.

    Releases that differ only in other sections share a reference.
    """

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        cls.corrupting_operations = frozenset(
            name for name, each in cls.operations.items() if each.effect is Effect.DAMAGES
        )

    # -- releases ----------------------------------------------------------------------------------------------

    def rules(self, release: str) -> Hashable:
        """Return a value that is equal for releases that behave alike; their subjects share a reference."""
        return dialect_of(release).rules(*self.sections)

    def key(self, release: str) -> str:
        """Return the name under which exercised clauses are counted; releases that behave alike have the same name."""
        return representative(release, *self.sections)

    def representative_order(self, releases: Iterable[str]) -> Iterable[str]:
        """Return the releases in order of preference: of releases that behave alike, the first gets the reference."""
        return releases

    def order(self, release: str) -> Any:
        """Return the sort key of a group; strategies use the last group."""
        return version_of(release)

    # -- participants ------------------------------------------------------------------------------------------

    def model(self, release: str) -> Any:
        """Return the abstract model that the reference is compared with, or None if the scope has no model."""
        del release

    def named(self, operation: Operation, before: Any) -> Any:
        """Return the name of the files that are compared after one of the operations in ``file_selecting_operations``.

        Args:
            operation: The next operation.
            before: The current name.
        """
        del operation, before

    def files_after(self, reference: Participant, operation: Operation, before: Files) -> Files:
        """Return the reference's files after an operation.

        Args:
            before: The files before the operation.
        """
        del operation, before
        files: Files = reference.read()
        return files

    def by_name(self, files: Files, name: Any) -> Mapping[str, bytes | None]:
        """Return the compared files by their paths in the participant's directory; None for a file that does not exist.

        Args:
            name: The name of the files, as returned by :meth:`named`.
        """
        raise NotImplementedError(f"{type(self).__name__} has no batched participants")

    def bytes_of(self, files: Files) -> int:
        """Return the total size of the files in bytes."""
        return sum([len(content) for content in self.by_name(files, self.no_file_name).values() if content])

    def corrupted_path(self, operation: Operation, name: Any) -> str:
        """Return the path, as in :meth:`by_name`, of the file that a corrupting operation changes."""
        raise NotImplementedError(f"{type(self).__name__} corrupts no files")

    def corrupt(self, group: Group[ObservationT, Files], operation: Operation, name: Any) -> None:
        """Corrupt a file of every unbatched participant of a group, and update the reference's files."""
        raise NotImplementedError(f"{type(self).__name__} corrupts no files")

    # -- attribution -------------------------------------------------------------------------------------------

    def corrupt_one(self, participant: Participant, operation: Operation, name: Any) -> None:
        """Corrupt a file of one participant, as :meth:`corrupt` does for all; required for shared references."""
        raise NotImplementedError(f"{type(self).__name__} corrupts the files of all participants together")

    def tracked(self, release: str) -> Any:
        """Return the state that attribution tracks, at the beginning of an example; None if it tracks nothing."""
        del release

    def is_reachable_by_broker(self, operation: Operation, tracked: Any, after: tuple[ObservationT, Files]) -> bool:
        """Return True if a broker can execute a step; called before :meth:`track`."""
        del operation, tracked, after
        return True

    def is_of_a_broker(
        self,
        operation: Operation,
        clauses: tuple[str, ...],
        seen: tuple[tuple[ObservationT, Files], tuple[ObservationT, Files]],
        actual: tuple[ObservationT, Files],
    ) -> bool:
        """Return True if a broker can have the files and the arguments of a step; called after a divergence only.

        Args:
            clauses: The clauses that the step exercises.
            seen: The reference's observations and files before and after the step.
            actual: The subject's observation and files.
        """
        del operation, clauses, seen, actual
        return True

    def entries_of(self, observation: ObservationT) -> Entries | None:
        """Return the number of entries in the index files by suffix, if the files are of one segment."""
        del observation
        return None

    def clauses_of(
        self,
        operation: Operation,
        dialect: Dialect,
        tracked: Any,
        before: tuple[ObservationT, Files],
        after: tuple[ObservationT, Files],
        known: dict[Any, Any],
    ) -> tuple[str, ...]:
        """Return the clauses that a step of the reference exercises; called before :meth:`track`.

        Args:
            dialect: The dialect of the group.
            tracked: The tracked state of the group.
            before: The observation and the files before the step.
            after: The observation and the files after the step.
            known: A cache that the groups of a step share; empty for the first group.
        """
        del operation, dialect, tracked, before, after, known
        return ()

    def implicated_clauses(
        self,
        clauses: tuple[str, ...],
        operation: Operation,
        dialect: Dialect,
        seen: tuple[tuple[ObservationT, Files], tuple[ObservationT, Files]],
        expected: tuple[ObservationT, Files],
        actual: tuple[ObservationT, Files],
    ) -> tuple[str, ...]:
        """Return the exercised clauses that a divergence implicates; by default all of them.

        Args:
            clauses: The clauses that the step exercises.
            dialect: The dialect of the group.
            seen: The reference's observations and files before and after the step.
            expected: The observation and the files that the subject is compared with, without tolerated differences.
            actual: The subject's observation and files.
        """
        del operation, dialect, seen, expected, actual
        return clauses

    def hidden(self, tracked: Any, operation: Operation) -> tuple[str, ...]:
        """Return the clauses below MUST by which parts of the state came about that no state reports, and a step uses.

        Args:
            tracked: The tracked state before the step.
        """
        del tracked, operation
        return ()

    def follow(self, history: Any, operation: Operation, observation: ObservationT, tracked: Any) -> None:
        """Update a participant's history with a step of the reference; called after :meth:`track`."""
        del history, operation, observation, tracked

    def remember(self, history: Any, divergence: Divergence) -> None:
        """Add to a participant's history a difference that does not count, after which the participant continues."""
        del history, divergence

    def rests_on(
        self,
        history: Any,
        hidden: tuple[str, ...],
        divergence: Divergence,
        expected: ObservationT,
        actual: ObservationT,
    ) -> Collection[str]:
        """Return the clauses below MUST by which the state came about that a difference depends on.

        Args:
            hidden: The result of :meth:`hidden` before the step.
            divergence: The difference.
            expected: The reference's observation.
            actual: The participant's observation.
        """
        del history, divergence, expected, actual
        return hidden

    def carried(self, history: Any, divergence: Divergence) -> Collection[str]:
        """Return the clauses below MUST by which the length came about, if the outcomes differ and it still differs."""
        del history, divergence
        return ()

    def track(self, tracked: Any, operation: Operation, observation: ObservationT) -> None:
        """Update the tracked state with a step or with a corruption by the harness."""
        del tracked, operation, observation


class Group(Generic[ObservationT, Files]):
    """Subjects whose releases behave alike, with the reference and the model that they are compared with.

    Attributes:
        dialect: The reference's dialect, which uses the subjects' compression libraries if they provide them.
        unbatched: The subjects that execute a step right after the reference: all except the batched ones.
        tracked: The tracked state of attribution before a step.
        exercised: The number of steps that exercised each clause.
        executed: The number of steps of each operation.
        observation, files: The reference's observation and files after the last step.
    """

    def __init__(
        self,
        scope: Scope[ObservationT, Files],
        release: str,
        subjects: list[Participant],
        directory: Path,
        *,
        model: bool,
    ) -> None:
        self._scope = scope
        self.dialect = with_codecs_of(dialect_of(release), [subject.implementation for subject in subjects])
        self.reference = scope.participant(scope.reference(release), directory)
        if self.dialect.decompressor is not None:
            self.reference.implementation.perform_for([self.dialect])
        self.model = scope.model(release) if model else None
        self.subjects = subjects
        self.unbatched = [participant for participant in subjects if not participant.batched]
        self.exercised: Counter[str] = Counter()
        self.executed: Counter[str] = Counter()
        for subject in subjects:
            subject.clauses.counts, subject.operations.counts = self.exercised, self.executed
        self.begin()

    def begin(self) -> None:
        """Begin an example."""
        if self.model is not None:
            self.model.begin()
        self.tracked = self._scope.tracked(self.dialect.release)
        self.observation, self.files = self._scope.empty_observation, self._scope.no_files


def grouped(
    scope: Scope[ObservationT, Files],
    participants: Iterable[Participant],
    releases: Iterable[str],
    scratch: Path,
    *,
    model: bool,
) -> list[Group[ObservationT, Files]]:
    """Return the subjects in groups whose releases behave alike, each with a reference; the newest dialect is last.

    Subjects that provide their compression libraries are in a separate group for their release, because these libraries
    differ between releases.

    Args:
        scope: The scope, which defines the releases that behave alike.
        participants: The subjects.
        releases: The releases that have a reference even without a subject.
        scratch: The directory for the references' files.
        model: True to compare the references with the abstract model.
    """
    participants = list(participants)
    with_codecs = [p.implementation.release for p in participants if provides_codecs(p.implementation)]
    alike: dict[Hashable, str] = {}
    for release in (*with_codecs, *scope.representative_order(releases)):
        alike.setdefault(scope.rules(release), release)
    members: dict[str, list[Participant]] = {release: [] for release in (*with_codecs, *alike.values())}
    for participant in participants:
        release = participant.implementation.release
        shared = release if release in with_codecs else alike.setdefault(scope.rules(release), release)
        members.setdefault(shared, []).append(participant)
    return [
        Group(scope, release, members[release], scratch / f"kidx-{release}", model=model)
        for release in sorted(members, key=scope.order)
    ]
