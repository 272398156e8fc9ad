"""A log to a lockstep: all files in its directory. Releases are alike if nothing in their dialects tells them apart."""

from __future__ import annotations

import os
import shutil
from dataclasses import fields
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from conformance.attribution.log import clauses_of_log_step
from conformance.attribution.log_step import Files, TrackedLog, follow_log
from conformance.implementations.kidx.log import ReferenceLog
from conformance.lockstep.generator_coverage import state_of_log
from conformance.lockstep.level import Group, Level
from conformance.lockstep.lockstep import Lockstep
from conformance.lockstep.participant import Participant
from conformance.lockstep.watched_file import damage
from conformance.operations import OK, Operation
from conformance.operations.log import TOPIC_DIRECTORY, LogObservation
from kidx.dialect import BEHAVIOURS, DIALECTS, Dialect, dialect_of

if TYPE_CHECKING:
    from collections.abc import Mapping

COMPARED = (".log", ".index", ".timeindex", ".txnindex", ".snapshot", "leader-epoch-checkpoint")
"""The files whose names and bytes are compared."""


def rules_of(dialect: Dialect) -> tuple[object, ...]:
    """Everything that a dialect says, without the number of the release."""
    names = {*BEHAVIOURS, *(column.name for column in fields(Dialect))} - {"release", "version"}
    return tuple(getattr(dialect, name) for name in sorted(names))


@cache
def representative(release: str) -> str:
    """The oldest release with the same rules: clauses are counted under it."""
    wanted = rules_of(dialect_of(release))
    return next(other for other, dialect in DIALECTS.items() if rules_of(dialect) == wanted)


Seen = tuple[LogObservation, Files]


_WITHOUT_FILES = frozenset({"set_clock", "update_high_watermark"})
"""Operations of the reference that touch no file."""
_LARGEST = 1 << 24
"""So many bytes of a file are compared."""
_OPEN_FILES = 16
"""So many files stay open from one look to the next: there may be 23 references, and 1,024 files in a process."""


class LogParticipant(Participant):
    """An implementation, and the directory of its log."""

    def __init__(self, implementation: Any, directory: Path) -> None:
        super().__init__(implementation, directory)
        self._topic = f"{directory}/{TOPIC_DIRECTORY}"
        self._descriptors: dict[tuple[str, int], int] = {}

    def begin(self) -> None:
        """Starts an example in an empty directory."""
        self.clear()
        self.directory.mkdir(parents=True)
        super().begin()

    def clear(self) -> None:
        """Removes the directory."""
        self._release()
        shutil.rmtree(self.directory, ignore_errors=True)

    def _release(self) -> None:
        for descriptor in self._descriptors.values():
            os.close(descriptor)
        self._descriptors = {}

    def names(self) -> dict[str, int]:
        """Name and inode of every file that is compared."""
        try:
            with os.scandir(self._topic) as entries:
                return {entry.name: entry.inode() for entry in entries if entry.name.endswith(COMPARED)}
        except FileNotFoundError:
            return {}

    def read(self) -> Files:
        """Name and content of every file that is compared."""
        names = self.names()
        if len(self._descriptors) > len(names):
            self._release()
        return {name: self._content(name, inode) for name, inode in names.items()}

    def _content(self, name: str, inode: int) -> bytes:
        """What is in a file. As long as one is open, no other one gets its inode."""
        descriptor = self._descriptors.get((name, inode))
        if descriptor is not None:
            return os.pread(descriptor, _LARGEST, 0)
        descriptor = os.open(f"{self._topic}/{name}", os.O_RDONLY)
        if len(self._descriptors) < _OPEN_FILES:
            self._descriptors[name, os.fstat(descriptor).st_ino] = descriptor
            return os.pread(descriptor, _LARGEST, 0)
        content = os.pread(descriptor, _LARGEST, 0)
        os.close(descriptor)
        return content

    def listing(self) -> list[str]:
        """Names of the files that are compared: which snapshots and checkpoints there are is another matter."""
        return sorted(self.read())


class LogLevel(Level[LogObservation, Files]):
    """The files of a log.

    Texts are not compared: what a log says in a refusal (segments with all their fields) is for its operator.
    """

    nothing = LogObservation(OK, None)
    damaging = frozenset({"damage_log_file"})
    closing = Operation("close_log", (True,))
    aspects = ("outcome", "state", "bytes")

    def __init__(self) -> None:
        self.no_files = {}

    def rules(self, release: str) -> tuple[object, ...]:
        """See the base class."""
        return rules_of(dialect_of(release))

    def key(self, release: str) -> str:
        """See the base class."""
        return representative(release)

    def participant(self, implementation: Any, directory: Path) -> LogParticipant:
        """See the base class."""
        return LogParticipant(implementation, directory)

    def reference(self, release: str) -> ReferenceLog:
        """See the base class."""
        return ReferenceLog(release)

    def files_after(self, reference: Participant, operation: Operation, before: Files) -> Files:
        """All files, read only as far as the operation can have changed them: a look-up may make an index."""
        if operation.name in _WITHOUT_FILES:
            return before
        participant: LogParticipant = reference  # type: ignore[assignment]
        if operation.name == "list_offsets" and participant.names().keys() == before.keys():
            return before
        return participant.read()

    def by_name(self, files: Files, name: None) -> Mapping[str, bytes | None]:
        """See the base class."""
        del name
        return files

    def damaged(self, operation: Operation, name: None) -> str:
        """See the base class."""
        del name
        path: str = operation.args[0]
        return path

    def damage(self, group: Group[LogObservation, Files], operation: Operation, name: None) -> None:
        """Damages one of the files of those that take part."""
        for participant in (group.reference, *group.beside):
            if participant.active:
                self.damage_one(participant, operation, name)
        group.files = group.reference.read()

    def damage_one(self, participant: Participant, operation: Operation, name: None) -> None:
        """See the base class."""
        del name
        path, how, numbers = operation.args
        damage(participant.directory / TOPIC_DIRECTORY / path, how, tuple(numbers))

    def tracked(self, release: str) -> TrackedLog:
        """See the base class."""
        del release
        return TrackedLog()

    def clauses_of(
        self,
        operation: Operation,
        dialect: Dialect,
        tracked: TrackedLog,
        before: Seen,
        after: Seen,
        known: dict[Any, Any],
    ) -> tuple[str, ...]:
        """See the base class."""
        return clauses_of_log_step(operation, dialect, before[0].state, after[0], tracked, before[1], after[1], known)

    def track(self, tracked: TrackedLog, operation: Operation, observation: LogObservation) -> None:
        """See the base class."""
        if operation.name in self.damaging:
            path = operation.args[0]
            tracked.damaged.add(Path(path).suffix or path)
        else:
            follow_log(tracked, operation, observation)

    def state_word(self, tracked: TrackedLog, before: LogObservation) -> str:
        """See the base class."""
        del tracked
        return state_of_log(before.state)


class LogLockstep(Lockstep[LogObservation, Files]):
    """Participants that perform operations on a log together; the arguments are those of the base class."""

    level = LogLevel()
