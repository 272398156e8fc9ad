"""What a lockstep has to know about the thing that its participants keep: an index file, a segment, a log, a topic.

A level is the answer to: which files are there, and how are they read? What is compared? Which releases behave alike?
What is the reference, and is there an abstract model of it? How does the harness damage a file? Which clauses does a
step exercise? Whether a participant performs steps in batches is a matter of the implementation
(:class:`~conformance.implementations.protocol.Follower`).

A new level is a subclass of :class:`Level`, a :class:`~conformance.lockstep.participant.Participant` that reads its
files, and a subclass of :class:`~conformance.lockstep.lockstep.Lockstep` with the level in its attribute ``level``.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from typing import TYPE_CHECKING, Any, ClassVar, Generic, TypeVar

from conformance.implementations.protocol import lends_libraries, with_libraries_of
from kidx.dialect import dialect_of, version_of

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Mapping
    from pathlib import Path

    from conformance.lockstep.participant import Participant
    from conformance.operations import Operation
    from kidx.dialect import Dialect

Seen = TypeVar("Seen")
"""An observation: the outcome of an operation, and the state after it."""
Files = TypeVar("Files")
"""The content of the files that are compared."""


class Level(ABC, Generic[Seen, Files]):
    """What a kind of thing is to a lockstep. An object of it has no state: several locksteps may share one."""

    nothing: Seen
    """The observation before the first step of an example."""
    no_files: Files
    """The files of an empty directory."""
    unnamed: Any = None
    """The name of the files before an operation has named any."""
    naming: ClassVar[frozenset[str]] = frozenset()
    """The operations after which files of another name are compared: :meth:`named` says which."""
    damaging: ClassVar[frozenset[str]] = frozenset()
    """The operations that the harness performs itself, on files that no participant has open."""
    closing: ClassVar[Operation]
    """The operation that a failure at the end of an example is reported as: a replay of it fails again."""
    aspects: ClassVar[tuple[str, ...]] = ("outcome", "text", "state", "bytes")
    """What is compared, in the order in which it is told."""

    # -- releases ----------------------------------------------------------------------------------------------

    @abstractmethod
    def rules(self, release: str) -> Hashable:
        """What makes two releases alike here: subjects with the same rules share a reference."""

    @abstractmethod
    def key(self, release: str) -> str:
        """A name for :meth:`rules`, by which exercised clauses are counted."""

    def by_preference(self, releases: Iterable[str]) -> Iterable[str]:
        """Releases in the order in which they may speak for all that are alike: the first one does."""
        return releases

    def order(self, release: str) -> Any:
        """Sorts groups; strategies look at the last one."""
        return version_of(release)

    # -- participants ------------------------------------------------------------------------------------------

    @abstractmethod
    def participant(self, implementation: Any, directory: Path) -> Participant:
        """An implementation with its files."""

    @abstractmethod
    def reference(self, release: str) -> Any:
        """kidx, as an implementation."""

    def model(self, release: str) -> Any:
        """The abstract model that the reference is held to; None if there is none."""
        del release

    def named(self, operation: Operation, before: Any) -> Any:
        """The name of the files that are compared after one of the operations in ``naming``.

        Args:
            operation: what is about to be performed.
            before: the name up to now.
        """
        del operation, before

    def files_after(self, reference: Participant, operation: Operation, before: Files) -> Files:
        """The reference's files after an operation; ``before`` are those before it."""
        del operation, before
        files: Files = reference.read()
        return files

    def by_name(self, files: Files, name: Any) -> Mapping[str, bytes | None]:
        """The files that are compared by their paths in the participant's directory; None for one that is not there.

        Args:
            files: the files.
            name: of the files, as :meth:`named` gives it.
        """
        raise NotImplementedError(f"{type(self).__name__} has no batched participants")

    def bytes_of(self, files: Files) -> int:
        """How many bytes the files have together."""
        return sum([len(content) for content in self.by_name(files, self.unnamed).values() if content])

    def damaged(self, operation: Operation, name: Any) -> str:
        """The path, as in :meth:`by_name`, of the file that one of the operations in ``damaging`` is about."""
        raise NotImplementedError(f"{type(self).__name__} damages no files")

    def damage(self, group: Group[Seen, Files], operation: Operation, name: Any) -> None:
        """Damages a file of every participant of a group, but of batched ones, and notes the reference's files."""
        raise NotImplementedError(f"{type(self).__name__} damages no files")

    # -- attribution -------------------------------------------------------------------------------------------

    def damage_one(self, participant: Participant, operation: Operation, name: Any) -> None:
        """Damages a file of one participant, as :meth:`damage` does of all; where references are shared."""
        raise NotImplementedError(f"{type(self).__name__} damages the files of all participants together")

    def tracked(self, release: str) -> Any:
        """The state that attribution tracks through an example, at its beginning; None where it tracks nothing."""
        del release

    def is_reachable_by_broker(self, operation: Operation, tracked: Any, after: tuple[Seen, Files]) -> bool:
        """Return whether a broker may come to a step; asked before it is tracked."""
        del operation, tracked, after
        return True

    def clauses_of(
        self,
        operation: Operation,
        dialect: Dialect,
        tracked: Any,
        before: tuple[Seen, Files],
        after: tuple[Seen, Files],
        known: dict[Any, Any],
    ) -> tuple[str, ...]:
        """The clauses that a step of the reference exercises; ``tracked`` has not been told of it yet.

        Args:
            operation: what was done.
            dialect: of the group.
            tracked: of the group.
            before: observation and files of the step before.
            after: those of the step.
            known: empty for the first group of a step; for what the others need not find out again.
        """
        del operation, dialect, tracked, before, after, known
        return ()

    def at_stake(
        self,
        clauses: tuple[str, ...],
        operation: Operation,
        dialect: Dialect,
        seen: tuple[tuple[Seen, Files], tuple[Seen, Files]],
        expected: tuple[Seen, Files],
        actual: tuple[Seen, Files],
    ) -> tuple[str, ...]:
        """Of the clauses that a step exercises those that a difference is about; all of them where none can be told.

        Args:
            clauses: those that the step exercises.
            operation: what was done.
            dialect: of the group.
            seen: the reference's observation and files of the step before, and of the step.
            expected: what the subject is held to; the reference's observation and files, perhaps with less in them.
            actual: what it shows, and its files.
        """
        del operation, dialect, seen, expected, actual
        return clauses

    def track(self, tracked: Any, operation: Operation, observation: Seen) -> None:
        """Takes a step into account, or a damage."""
        del tracked, operation, observation


class Group(Generic[Seen, Files]):
    """The subjects whose releases behave alike, with the reference and the model that they are held to.

    Attributes:
        dialect: the reference's, which compresses and decompresses with the subjects' libraries if they lend them.
        beside: the subjects that perform a step right after the reference: all but the batched ones.
        tracked: what attribution knows before a step.
        exercised: how many steps exercised each clause.
        observation: the reference's after the last step, and ``files``: its files after it.
    """

    def __init__(
        self, level: Level[Seen, Files], release: str, subjects: list[Participant], directory: Path, *, model: bool
    ) -> None:
        self._level = level
        self.dialect = with_libraries_of(dialect_of(release), [subject.implementation for subject in subjects])
        self.reference = level.participant(level.reference(release), directory)
        if self.dialect.decompressor is not None:
            self.reference.implementation.perform_for([self.dialect])
        self.model = level.model(release) if model else None
        self.subjects = subjects
        self.beside = [participant for participant in subjects if not participant.batched]
        self.exercised: Counter[str] = Counter()
        self.begin()

    def begin(self) -> None:
        """Starts an example."""
        if self.model is not None:
            self.model.begin()
        self.tracked = self._level.tracked(self.dialect.release)
        self.observation, self.files = self._level.nothing, self._level.no_files

    def remove(self, participant: Participant) -> None:
        """Takes a subject out for good."""
        self.subjects.remove(participant)
        self.beside = [other for other in self.subjects if not other.batched]


def grouped(
    level: Level[Seen, Files],
    participants: Iterable[Participant],
    releases: Iterable[str],
    scratch: Path,
    *,
    model: bool,
) -> list[Group[Seen, Files]]:
    """Subjects by the rules of their releases, with a reference for each; the newest dialect comes last.

    Those that lend their codec libraries are held to a reference of their own release: libraries follow other rules.

    Args:
        level: says which releases are alike.
        participants: the subjects.
        releases: whose reference is wanted even without a subject.
        scratch: for the references' files.
        model: hold the references to the abstract model.
    """
    participants = list(participants)
    lenders = [p.implementation.release for p in participants if lends_libraries(p.implementation)]
    alike: dict[Hashable, str] = {}
    for release in (*lenders, *level.by_preference(releases)):
        alike.setdefault(level.rules(release), release)
    members: dict[str, list[Participant]] = {release: [] for release in (*lenders, *alike.values())}
    for participant in participants:
        release = participant.implementation.release
        home = release if release in lenders else alike.setdefault(level.rules(release), release)
        members.setdefault(home, []).append(participant)
    return [
        Group(level, release, members[release], scratch / f"kidx-{release}", model=model)
        for release in sorted(members, key=level.order)
    ]
