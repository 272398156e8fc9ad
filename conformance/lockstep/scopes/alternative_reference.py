"""Reference for a third-party log that executes some steps in another permitted way."""

from __future__ import annotations

from typing import TYPE_CHECKING

from conformance.implementations.kidx.log import ReferenceLog
from conformance.lockstep.scopes.log_files import LogParticipant
from conformance.lockstep.scopes.tolerances import AllowedVariant, Lengths, ObservedFiles
from conformance.operations import OK, Operation
from conformance.operations.log import LogObservation

if TYPE_CHECKING:
    from pathlib import Path

    from conformance.lockstep.participant import Participant


class AlternativeReference:
    """Reference that executes an example from its beginning, with permitted variants of some steps.

    A variant (:class:`~conformance.lockstep.scopes.tolerances.AllowedVariant`) may execute another operation before or
    after its own, delete segments, or truncate the indexes to their entries.
    """

    def __init__(self, release: str, directory: Path) -> None:
        directory.mkdir(parents=True)
        self.log = LogParticipant(ReferenceLog(release), directory)
        self.log.implementation.begin(directory)
        self._lengths: Lengths = {}

    def is_like(self, reference: Participant) -> bool:
        """Return True if the indexes have as many entries as in another reference; entries of zeros count."""
        own_lengths: Lengths = self.log.implementation.index_lengths()
        other_lengths: Lengths = reference.implementation.index_lengths()
        return own_lengths == other_lengths

    def perform(self, step: AllowedVariant) -> ObservedFiles:
        """Execute a step, and return its observation and the files after it."""
        operation = step.operation
        if operation.name == "damage_log_file":
            self.log.corrupt(*operation.args)
            return LogObservation(OK, None), self.log.read()
        if step.cuts_indexes and operation.name == "open_log":
            self.perform(AllowedVariant("", Operation("crash_log"), cuts_indexes=True))
        before = self.log.names()
        if step.first is not None:
            self.log.perform(step.first)
        observation = self.log.perform(operation)
        if step.last is not None and observation.outcome.value:
            observation = observation._replace(state=self.log.perform(step.last).state)
        if operation.name == "crash_log":
            # In old releases, closing the log creates the files of indexes that were never opened.
            for name in self.log.names().keys() - before.keys():
                self.log.corrupt(name, "remove_file", ())
            if step.cuts_indexes:
                for name, length in self._lengths.items():
                    self.log.corrupt(name, "cut_file", (length,))
        self._lengths = self.log.implementation.index_lengths()
        if step.deletes_segments and observation.outcome.error is None and observation.state is not None:
            observation = observation._replace(state=self.log.implementation.delete_before_start())
        return observation, self.log.read()

    def end(self) -> None:
        """Remove the reference and its files."""
        self.log.implementation.end()
        self.log.clear()
