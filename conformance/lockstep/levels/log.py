"""Lockstep one level up: all parties keep a log in a directory of their own, and every file of it is compared.

As in :mod:`conformance.lockstep`, a *subject* must have its reference's outcome, state and bytes after every operation.
Two releases share a reference if no column and no property of their dialects tells them apart.
"""

from __future__ import annotations

import os
import shutil
from dataclasses import fields
from functools import cache, cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from conformance.attribution.log import clauses_of_log_step
from conformance.attribution.log_step import Files, LogSituation, follow_log
from conformance.implementations.kidx.log import ReferenceLog
from conformance.lockstep.files import FilesGroup, FilesLockstep
from conformance.lockstep.generator_coverage import state_of_log
from conformance.lockstep.participant import Party
from conformance.lockstep.watched_file import damage
from conformance.operations import OK, Operation
from conformance.operations.log import TOPIC_DIRECTORY, LogObservation
from kidx.dialect import DIALECTS, Dialect, dialect_of

if TYPE_CHECKING:
    from collections.abc import Sequence

COMPARED = (".log", ".index", ".timeindex", ".txnindex", ".snapshot", "leader-epoch-checkpoint")
"""The files whose names and bytes are compared."""


def rules_of(dialect: Dialect) -> tuple[object, ...]:
    """Everything that a dialect says, without the number of the release."""
    derived = (name for name, value in vars(Dialect).items() if isinstance(value, property | cached_property))
    names = {*derived, *(column.name for column in fields(Dialect))} - {"release", "version"}
    return tuple(getattr(dialect, name) for name in sorted(names))


@cache
def representative(release: str) -> str:
    """The oldest release with the same rules: what a log's tally is kept under."""
    wanted = rules_of(dialect_of(release))
    return next(other for other, dialect in DIALECTS.items() if rules_of(dialect) == wanted)


class LogParty(Party):
    """An implementation, and the directory of its log."""

    def begin(self) -> None:
        """Starts an example in an empty directory."""
        self.clear()
        self.directory.mkdir(parents=True)
        super().begin()

    def clear(self) -> None:
        """Removes the directory."""
        shutil.rmtree(self.directory, ignore_errors=True)

    def read(self) -> Files:
        """Name and content of every file that is compared."""
        found = {}
        try:
            with os.scandir(self.directory / TOPIC_DIRECTORY) as entries:
                for entry in entries:
                    if entry.name.endswith(COMPARED):
                        descriptor = os.open(entry.path, os.O_RDONLY)
                        found[entry.name] = os.read(descriptor, 1 << 24)
                        os.close(descriptor)
        except FileNotFoundError:
            return {}
        return found

    def listing(self) -> list[str]:
        """Names of the files that are compared: which snapshots and checkpoints there are is another matter."""
        return sorted(self.read())


class LogGroup(FilesGroup[LogParty]):
    """The subjects of one set of rules, and the reference they are held to."""

    nothing = LogObservation(OK, None)
    no_files: ClassVar[Files] = {}

    def __init__(self, release: str, reference: LogParty, subjects: list[LogParty]) -> None:
        super().__init__(release, reference, subjects)
        self.situation = LogSituation()

    def begin(self) -> None:
        """Starts an example."""
        super().begin()
        self.situation = LogSituation()


class LogLockstep(FilesLockstep[LogParty, LogGroup]):
    """A set of parties that perform operations on logs together; the arguments are those of the base class.

    Texts are not compared: what a log says in a refusal (segments with all their fields) is for its operator.
    """

    damaging = "damage_log_file"

    state_word = staticmethod(state_of_log)

    @staticmethod
    def rules(release: str) -> tuple[object, ...]:
        """See the base class."""
        return rules_of(dialect_of(release))

    @staticmethod
    def key(release: str) -> str:
        """See the base class."""
        return representative(release)

    def party(self, implementation: Any, directory: Path) -> LogParty:
        """See the base class."""
        return LogParty(implementation, directory)

    def group(self, release: str, subjects: list[LogParty], directory: Path) -> LogGroup:
        """See the base class."""
        return LogGroup(release, LogParty(ReferenceLog(release), directory), subjects)

    def damage(self, group: LogGroup, arguments: Sequence[Any]) -> None:
        """See the base class."""
        path, how, numbers = arguments
        for party in group.parties():
            damage(party.directory / TOPIC_DIRECTORY / path, how, tuple(numbers))
        group.situation.damaged.add(Path(path).suffix or path)

    def clauses_of(
        self, group: LogGroup, operation: Operation, observation: LogObservation, files: Files
    ) -> tuple[str, ...]:
        """See the base class."""
        was = group.observation.state
        clauses = clauses_of_log_step(operation, group.dialect, was, observation, group.situation, group.files, files)
        follow_log(group.situation, operation, observation)
        return clauses
