"""Base classes of scopes and participants with all files of a directory (logs and caches), read after every step."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, ClassVar, Final

from conformance.attribution.rules import DirectoryStep
from conformance.attribution.tables import rules_of
from conformance.lockstep.file_reader import READING, UnreadableFile, corrupt, remove
from conformance.lockstep.participant import Participant
from conformance.lockstep.scope import Group, ObservationT, Scope
from conformance.operations.log import TOPIC_DIRECTORY
from conformance.operations.op import Files as FilesAfter
from kidx.discovery import PARTITION_METADATA

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from conformance.operations import Operation
    from kidx.dialect import Dialect

Files = dict[str, bytes]


class DirectoryScope(Scope[ObservationT, Files]):
    """Scope of a directory; the arguments of a corruption are a path, a file operation, and its arguments.

    All files are compared, so no operation selects files by name: ``name`` is None.
    """

    machine: ClassVar[str]
    """The machine whose rows its steps exercise."""

    def __init__(self) -> None:
        self.no_files = {}

    def files_after(self, reference: Participant, operation: Operation, before: Files) -> Files:
        """Return all files; they are read only if the operation can have changed them. A lookup may create an index."""
        files = self.operations[operation.name].files
        if files is FilesAfter.LEAVES:
            return before
        participant: LogParticipant = reference  # type: ignore[assignment]
        if files is FilesAfter.MAKES and participant.has_names(before):  # it can only create files
            return before
        return participant.read()

    def by_name(self, files: Files, name: None) -> Mapping[str, bytes | None]:
        """See the base class."""
        del name
        return files

    def corrupted_path(self, operation: Operation, name: None) -> str:
        """See the base class."""
        del name
        path: str = operation.args[0]
        return path

    def corrupt(self, group: Group[ObservationT, Files], operation: Operation, name: None) -> None:
        """Corrupt one of the files of the active participants."""
        for participant in (group.reference, *group.unbatched):
            if participant.active:
                self.corrupt_one(participant, operation, name)
        group.files = group.reference.read()

    def corrupt_one(self, participant: Participant, operation: Operation, name: None) -> None:
        """See the base class."""
        del name
        path, how, numbers = operation.args
        participant.corrupt(path, how, tuple(numbers))  # type: ignore[attr-defined]

    def clauses_of(
        self,
        operation: Operation,
        dialect: Dialect,
        tracked: Any,
        before: tuple[Any, Files],
        after: tuple[Any, Files],
        known: dict[Any, Any],
    ) -> tuple[str, ...]:
        """See the base class."""
        del known
        outcome, now = after[0]
        step = DirectoryStep(operation.args, tracked, before[0].state, outcome, now, before[1], after[1])
        return rules_of(self.machine, dialect.release).exercised(operation.name, outcome.error, step)

    def track(self, tracked: Any, operation: Operation, observation: ObservationT) -> None:
        """Update the tracked state, if there is one."""
        if tracked is not None:
            tracked.track(operation, observation)


COMPARED: Final = (
    ".log",
    ".index",
    ".timeindex",
    ".txnindex",
    ".snapshot",
    "leader-epoch-checkpoint",
    ".cleaned",
    ".swap",
    ".deleted",
    PARTITION_METADATA,
)
"""The ends of the names of files that are compared."""
_MOST: Final = 1 << 12
"""The size in bytes of the first read, which is sufficient for most files; a larger buffer is slower to allocate."""
_OPEN_FILES: Final = 368
"""The maximum number of files that all participants keep open between reads; a process may have 1,024 open files."""


class LogParticipant(Participant):
    """Implementation with a directory of files.

    Attributes:
        open_files: The number of files that all participants together have open.
        below: The directory of the compared files, relative to the participant's directory.
        compared: The ends of the names of files that are compared.
    """

    open_files: ClassVar[int] = 0
    below: ClassVar[str] = TOPIC_DIRECTORY
    compared: ClassVar[tuple[str, ...]] = COMPARED

    def __init__(self, implementation: Any, directory: Path) -> None:
        super().__init__(implementation, directory)
        self._topic = f"{directory}/{self.below}"
        self._descriptors: dict[tuple[str, int], int] = {}

    def begin(self) -> None:
        """Begin an example in an empty directory."""
        self.clear()
        self.directory.mkdir(parents=True, exist_ok=True)
        super().begin()

    def clear(self) -> None:
        """Remove the directory."""
        self._release()
        remove(str(self.directory))

    def _release(self) -> None:
        self._release_others({})

    def _release_others(self, names: dict[str, int]) -> None:
        """Close all files except those with these names and inodes."""
        for name, inode in self._descriptors.keys() - names.items():
            os.close(self._descriptors.pop((name, inode)))
            LogParticipant.open_files -= 1

    def names(self) -> dict[str, int]:
        """Return name and inode of every file that is compared."""
        try:
            with os.scandir(self._topic) as entries:
                return {entry.name: entry.inode() for entry in entries if entry.name.endswith(self.compared)}
        except OSError:  # no directory, or one that cannot be read
            return {}

    def has_names(self, names: Mapping[str, bytes]) -> bool:
        """Return True if these are the names of the files that are compared."""
        try:
            listed = os.listdir(self._topic)  # noqa: PTH208 -- executed for every lookup of every participant
        except OSError:
            listed = []
        return {name for name in listed if name.endswith(self.compared)} == names.keys()

    def read(self) -> Files:
        """Return name and content of every file that is compared."""
        names = self.names()
        if len(self._descriptors) > len(names):
            self._release_others(names)
        # The inode identifies an open file, because no other file gets this inode while the file is open.
        open_ones = self._descriptors
        files: Files = {}
        for name, inode in names.items():
            try:
                files[name] = self._opened(name) if (file := open_ones.get((name, inode))) is None else _read(file)
            except FileNotFoundError:
                pass  # a thread of the implementation has deleted it
            except OSError as error:
                files[name] = UnreadableFile.of(error)
        return files

    def _opened(self, name: str) -> bytes:
        """Return the content of a file that is not open yet."""
        descriptor = os.open(f"{self._topic}/{name}", READING)
        if LogParticipant.open_files < _OPEN_FILES:
            self._descriptors[name, os.fstat(descriptor).st_ino] = descriptor
            LogParticipant.open_files += 1
            return _read(descriptor)
        try:
            return _read(descriptor)
        finally:
            os.close(descriptor)

    def listing(self) -> list[str]:
        """Return the names of the files that are compared, sorted."""
        return sorted(self.read())

    def corrupt(self, path: str, how: str, numbers: tuple[Any, ...]) -> None:
        """Corrupt a file, which no participant has open."""
        corrupt(self.directory / self.below / path, how, numbers)


def _read(descriptor: int) -> bytes:
    content = os.pread(descriptor, _MOST, 0)
    return content if len(content) < _MOST else os.pread(descriptor, os.fstat(descriptor).st_size, 0)
