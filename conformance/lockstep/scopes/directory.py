"""Base class of the scopes (kinds of object that a lockstep tests) with all files of a directory: logs and caches."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from conformance.attribution.rules import DirectoryStep
from conformance.attribution.tables import rules_of
from conformance.lockstep.scope import Group, ObservationT, Scope
from conformance.operations.op import Files as FilesAfter

if TYPE_CHECKING:
    from collections.abc import Mapping

    from conformance.lockstep.participant import Participant
    from conformance.lockstep.scopes.log_files import LogParticipant
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
