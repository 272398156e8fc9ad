"""A log to a lockstep: all files in its directory. Releases are alike if nothing in their dialects tells them apart."""

from __future__ import annotations

from dataclasses import fields
from functools import cache
from typing import TYPE_CHECKING, Any

from conformance.attribution.log import clauses_of_log_step
from conformance.attribution.log_answers import clauses_at_stake
from conformance.attribution.log_step import Files, TrackedLog, follow_damage, follow_log
from conformance.implementations.kidx.log import ReferenceLog
from conformance.lockstep.generator_coverage import state_of_log
from conformance.lockstep.level import Group, Level
from conformance.lockstep.levels.foreign_log import ForeignLogParticipant
from conformance.lockstep.levels.log_files import LogParticipant
from conformance.lockstep.lockstep import Lockstep
from conformance.operations import OK, Operation
from conformance.operations.log import LOG_SIGNATURES, LogObservation
from conformance.operations.log_capabilities import CAPABILITIES, missing
from kidx.dialect import BEHAVIOURS, DIALECTS, Dialect, dialect_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    from conformance.lockstep.participant import Participant


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


_WITHOUT_FILES = frozenset({"set_clock", "expire_producers", "verify_transaction"})
"""Operations of the reference that touch no file."""
_LOOK_UPS = frozenset({"list_offsets", "read_log", "offset_snapshot", "update_high_watermark"})
"""Those that change no file, and may make an index: a high watermark has the first unstable offset looked up."""


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
        if getattr(implementation, "capabilities", None) is not None:
            return ForeignLogParticipant(implementation, directory)
        return LogParticipant(implementation, directory)

    def reference(self, release: str) -> ReferenceLog:
        """See the base class."""
        return ReferenceLog(release)

    def files_after(self, reference: Participant, operation: Operation, before: Files) -> Files:
        """All files, read only as far as the operation can have changed them: a look-up may make an index."""
        if operation.name in _WITHOUT_FILES:
            return before
        participant: LogParticipant = reference  # type: ignore[assignment]
        if operation.name in _LOOK_UPS and participant.has_names(before):
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
        participant.damage(path, how, tuple(numbers))  # type: ignore[attr-defined]

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

    def at_stake(
        self,
        clauses: tuple[str, ...],
        operation: Operation,
        dialect: Dialect,
        seen: tuple[Seen, Seen],
        expected: LogObservation,
        actual: LogObservation,
    ) -> tuple[str, ...]:
        """See the base class."""
        before, after = seen
        return clauses_at_stake(clauses, operation, dialect, before[0].state, after, expected, actual)

    def track(self, tracked: TrackedLog, operation: Operation, observation: LogObservation) -> None:
        """See the base class."""
        if operation.name in self.damaging:
            follow_damage(tracked, operation.args[0])
        else:
            follow_log(tracked, operation, observation)

    def state_word(self, tracked: TrackedLog, before: LogObservation) -> str:
        """See the base class."""
        del tracked
        return state_of_log(before.state)


class LogLockstep(Lockstep[LogObservation, Files]):
    """Participants that perform operations on a log together; the arguments are those of the base class.

    Attributes:
        capabilities: those that every subject has.
        lacking: the operations that a participant does not have.
    """

    level = LogLevel()

    def __init__(self, subjects: Iterable[Any], scratch: Path, **options: Any) -> None:
        super().__init__(subjects, scratch, **options)
        told = [getattr(subject, "capabilities", None) for subject in self.subjects]
        everything = frozenset(CAPABILITIES)
        self.capabilities = everything.intersection(*(mine for mine in told if mine is not None))
        self.lacking = frozenset(name for name in LOG_SIGNATURES if not self.supports(name))
        self._can_all = not self.lacking and self.capabilities == everything

    def can(self, operation: Operation) -> bool:
        """Whether every participant has what an operation needs; found out when the lockstep was made."""
        if self._can_all:
            return True
        return operation.name not in self.lacking and not missing(operation, self.capabilities)
