"""An index file to a lockstep: one file, its abstract model, and the rules of its release."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from conformance.attribution import TrackedIndex, clauses_of, follow
from conformance.implementations.kidx.index import ReferenceIndex
from conformance.implementations.model import Model
from conformance.lockstep.generator_coverage import state_of_index
from conformance.lockstep.level import Group, Level
from conformance.lockstep.lockstep import Lockstep
from conformance.lockstep.participant import Participant
from conformance.lockstep.watched_file import WatchedFile, damaged, overwrite
from conformance.operations import FILE_OPERATIONS, OK, Observation, Operation
from kidx.dialect import dialect_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    from kidx.dialect import Dialect

_NAMING = {"open": 1, "rename": 0}
"""Operations after which another file is looked at, and which argument names it."""
_REPLACING = frozenset({"open", "rename", "delete"})
"""Operations after which the reference's file may be another, or gone."""
_READING = frozenset({"lookup", "entry", "fetch_upper_bound", "collect_aborted", "all_aborted", "sanity_check"})
"""Operations after which the reference's file is what it was: if it is not, the next other one shows it. Those of the
subjects are looked at after every operation."""

Seen = tuple[Observation, bytes | None]


class IndexParticipant(Participant):
    """An implementation, its directory, and the file it works on."""

    def __init__(self, implementation: Any, directory: Path) -> None:
        super().__init__(implementation, directory)
        self.file = WatchedFile()

    def clear(self) -> None:
        """Removes its files."""
        self.file.release()
        super().clear()

    def watch(self, name: str) -> None:
        """Reads the file of this name from now on."""
        self.file.watch(self.prefix + name)

    def read(self) -> bytes | None:
        """What is in its file right now; None if there is none."""
        return self.file.read()


class IndexLevel(Level[Observation, bytes | None]):
    """One index file, of any of the three kinds."""

    nothing = Observation(OK, None)
    no_files = None
    unnamed = ""
    naming = frozenset(_NAMING)
    damaging = FILE_OPERATIONS
    closing = Operation("close")

    def rules(self, release: str) -> str:
        """See the base class."""
        return dialect_of(release).index_rules

    def key(self, release: str) -> str:
        """See the base class."""
        return dialect_of(release).index_rules

    def by_preference(self, releases: Iterable[str]) -> Iterable[str]:
        """The last one speaks for all that are alike."""
        return reversed(list(releases))

    def order(self, release: str) -> str:
        """By rules, X1 first."""
        return dialect_of(release).index_rules

    def participant(self, implementation: Any, directory: Path) -> IndexParticipant:
        """See the base class."""
        return IndexParticipant(implementation, directory)

    def reference(self, release: str) -> ReferenceIndex:
        """See the base class."""
        return ReferenceIndex(release)

    def model(self, release: str) -> Model:
        """See the base class."""
        return Model(release)

    def named(self, operation: Operation, before: str) -> str:
        """An opening and a renaming name the file."""
        del before
        name: str = operation.args[_NAMING[operation.name]]
        return name

    def files_after(self, reference: Participant, operation: Operation, before: bytes | None) -> bytes | None:
        """The file, read only as far as the operation can have changed it."""
        name = operation.name
        if name in _READING:
            return before
        file: WatchedFile = reference.file  # type: ignore[attr-defined]
        return file.read() if name in _REPLACING else file.read_again()

    def by_name(self, files: bytes | None, name: str) -> Mapping[str, bytes | None]:
        """See the base class."""
        return {name: files} if name else {}

    def bytes_of(self, files: bytes | None) -> int:
        """See the base class."""
        return len(files or b"")

    def damaged(self, operation: Operation, name: str) -> str:
        """See the base class."""
        del operation
        return name

    def damage(self, group: Group[Observation, bytes | None], operation: Operation, name: str) -> None:
        """Changes every file alike; they are all the same, as the step before has shown."""
        group.observation = Observation(OK, group.observation.state)
        if group.files is None and operation.name != "write_file":
            return
        group.files = damaged(group.files or b"", operation.name, operation.args)
        for participant in (group.reference, *group.beside):
            if participant.active:
                overwrite(participant.prefix + name, group.files)
                participant.watch(name)

    def tracked(self, release: str) -> TrackedIndex:
        """See the base class."""
        return TrackedIndex(release)

    def clauses_of(
        self,
        operation: Operation,
        dialect: Dialect,
        tracked: TrackedIndex,
        before: Seen,
        after: Seen,
        known: dict[Any, Any],
    ) -> tuple[str, ...]:
        """See the base class."""
        del dialect, known
        if operation.name == "open":
            tracked.preexisting = before[1] is not None
        return clauses_of(operation, tracked, after[0])

    track = staticmethod(follow)

    def state_word(self, tracked: TrackedIndex, before: Observation) -> str:
        """See the base class."""
        del before
        return state_of_index(tracked)


class IndexLockstep(Lockstep[Observation, "bytes | None"]):
    """Participants that perform operations on an index file together; the arguments are those of the base class."""

    level = IndexLevel()
