"""Scope of a log with a local and a remote tier: all local files, and the state of the remote segments."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from conformance.attribution.tiered import tiered_clauses_of
from conformance.implementations.kidx.tiered import ReferenceTiered
from conformance.lockstep.lockstep import Lockstep
from conformance.lockstep.scopes.directory import DirectoryScope, Files
from conformance.lockstep.scopes.log_files import LogParticipant
from conformance.operations import OK, Operation
from conformance.operations.tiered import TIERED_OPS, TieredObservation

if TYPE_CHECKING:
    from pathlib import Path

    from kidx.dialect import Dialect

ObservedFiles = tuple[TieredObservation, Files]


class TieredScope(DirectoryScope[TieredObservation]):
    """Scope of a tiered log. Messages are not compared, as in the scope of a log."""

    empty_observation = TieredObservation(OK, None)
    corrupting_operations = frozenset({"damage_log_file"})
    close_operation = Operation("close_log", (True,))
    aspects = ("outcome", "state", "bytes")
    operations = TIERED_OPS
    sections = ("index", "segment", "log", "producers", "leader", "remote")  # of kidx.dialect.table

    def participant(self, implementation: Any, directory: Path) -> LogParticipant:
        """See the base class."""
        return LogParticipant(implementation, directory)

    def reference(self, release: str) -> ReferenceTiered:
        """See the base class."""
        return ReferenceTiered(release)

    def clauses_of(
        self,
        operation: Operation,
        dialect: Dialect,
        tracked: None,
        before: ObservedFiles,
        after: ObservedFiles,
        known: dict[Any, Any],
    ) -> tuple[str, ...]:
        """See the base class."""
        del tracked, known
        return tiered_clauses_of(operation, dialect.release, before[0].state, after[0])


class TieredLockstep(Lockstep[TieredObservation, Files]):
    """Participants that execute operations on a tiered log together; the arguments are the ones of the base class."""

    scope = TieredScope()
