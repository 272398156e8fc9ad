"""Scope of a log: all files in its directory."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from conformance.attribution.log import clauses_of_log_step
from conformance.attribution.log_implicated import implicated_clauses, narrow_clauses, with_end_snapshot
from conformance.attribution.log_step import Files, TrackedLog, track_corruption, track_log_step
from conformance.clauses import load_clauses
from conformance.implementations.kidx.log import ReferenceLog
from conformance.lockstep.lockstep import Lockstep
from conformance.lockstep.scopes.directory import DirectoryScope, LogParticipant
from conformance.lockstep.scopes.external_log import ExternalLogParticipant
from conformance.operations import OK, Operation
from conformance.operations.log import LOG_OPS, LogObservation
from conformance.operations.log_capabilities import CAPABILITIES, missing

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable
    from pathlib import Path

    from conformance.lockstep.divergence import Divergence, FileDifference
    from kidx.dialect import Dialect


ObservedFiles = tuple[LogObservation, Files]


_RIGHT: Final = frozenset({"sound", "room", "sparse.index", "sparse.timeindex"})
"""Keywords for index files whose entries are right for the log."""


def _has_right_entries(file: FileDifference) -> bool:
    return not _RIGHT.isdisjoint(file.how)


class LogScope(DirectoryScope[LogObservation]):
    """Scope of the files of a log.

    Error messages are not compared: they are intended for operators, and contain segments with all their fields.
    """

    reference = ReferenceLog
    empty_observation = LogObservation(OK, None)
    close_operation = Operation("close_log", (True,))
    aspects = ("outcome", "state", "bytes")
    operations = LOG_OPS
    sections = ("index", "segment", "log", "producers", "leader", "cleaning")  # of kidx.dialect.table

    def participant(self, implementation: Any, directory: Path) -> LogParticipant:
        """See the base class."""
        if implementation.capabilities is not None:
            return ExternalLogParticipant(implementation, directory)
        return LogParticipant(implementation, directory)

    def tracked(self, release: str) -> TrackedLog:
        """See the base class."""
        del release
        return TrackedLog()

    def clauses_of(
        self,
        operation: Operation,
        dialect: Dialect,
        tracked: TrackedLog,
        before: ObservedFiles,
        after: ObservedFiles,
        known: dict[Any, Any],
    ) -> tuple[str, ...]:
        """See the base class."""
        return clauses_of_log_step(operation, dialect, before[0].state, after[0], tracked, before[1], after[1], known)

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
        before, after = seen
        found = implicated_clauses(clauses, operation, dialect, before[0].state, after, expected[0], actual[0])
        found = narrow_clauses(found, operation, expected, actual)
        return with_end_snapshot(found, expected, actual[1])

    def is_reachable_by_broker(self, operation: Operation, tracked: TrackedLog, after: ObservedFiles) -> bool:
        """See the base class: files in a directory with another name are not compared, and may differ unseen."""
        del operation, after
        return not tracked.renamed

    def hidden(self, tracked: TrackedLog, operation: Operation) -> tuple[str, ...]:
        """See the base class.

        A state includes neither the entries that a truncation leaves in an index, nor the place of the high watermark,
        which is known after an update. Before the log start there is no such place.
        """
        if operation.name != "raise_high_watermark":
            return ("LG-83",) if tracked.is_truncated else ()
        if tracked.is_watermark_before:
            return ("LG-10",)
        return ("LG-31c",) if tracked.is_truncated else ()

    def rests_on(
        self,
        history: Any,
        hidden: tuple[str, ...],
        divergence: Divergence,
        expected: LogObservation,
        actual: LogObservation,
    ) -> Collection[str]:
        """See the base class.

        Only other entries, which are right for the log, depend on the entries. On the place of an equal high watermark
        depends whether it can be raised, and which indexes are opened for that.
        """
        del history
        catalogue, aspects = load_clauses(), set(divergence.aspects)
        hidden = tuple(each for each in hidden if catalogue[each].applies_to(divergence.release))
        have_right_entries = all(map(_has_right_entries, divergence.files))
        if divergence.operation.name != "raise_high_watermark":
            return hidden if aspects == {"bytes"} and have_right_entries else ()
        both_succeed = expected.outcome.error is None and actual.outcome.error is None
        is_of_place = "LG-10" in hidden or (both_succeed and "state" not in aspects)
        return hidden if is_of_place and have_right_entries else ()

    def track(self, tracked: TrackedLog, operation: Operation, observation: LogObservation) -> None:
        """See the base class."""
        if operation.name in self.corrupting_operations:
            track_corruption(tracked, operation.args[0])
        else:
            track_log_step(tracked, operation, observation)


class LogLockstep(Lockstep[LogObservation, Files]):
    """Lockstep of logs, with the arguments of the base class.

    Attributes:
        capabilities: The capabilities that every subject has.
        lacking: The operations that a participant does not have.
    """

    scope = LogScope()

    def __init__(self, subjects: Iterable[Any], scratch: Path, **options: Any) -> None:
        super().__init__(subjects, scratch, **options)
        declared = [subject.capabilities for subject in self.subjects]
        everything = frozenset(CAPABILITIES)
        self.capabilities = everything.intersection(*(each for each in declared if each is not None))
        self.lacking = frozenset(name for name in LOG_OPS if not self.supports(name))
        self._can_all = not self.lacking and self.capabilities == everything

    def can(self, operation: Operation) -> bool:
        """Return True if every participant has an operation and the capabilities that it needs."""
        if self._can_all:
            return True
        return operation.name not in self.lacking and not missing(operation, self.capabilities)
