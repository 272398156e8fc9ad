"""What levels have in common that compare all files of a directory by name: those of a log, and of a cache."""

from __future__ import annotations

from typing import TYPE_CHECKING

from conformance.lockstep.level import Group, Level, Seen

if TYPE_CHECKING:
    from collections.abc import Mapping

    from conformance.lockstep.participant import Participant
    from conformance.operations import Operation

Files = dict[str, bytes]


class DirectoryLevel(Level[Seen, Files]):
    """The files of a directory; a damage is an operation with the path of a file, what happens to it, and numbers."""

    def __init__(self) -> None:
        self.no_files = {}

    def by_name(self, files: Files, name: None) -> Mapping[str, bytes | None]:
        """See the base class."""
        del name
        return files

    def damaged(self, operation: Operation, name: None) -> str:
        """See the base class."""
        del name
        path: str = operation.args[0]
        return path

    def damage(self, group: Group[Seen, Files], operation: Operation, name: None) -> None:
        """Damage one of the files of those that take part."""
        for participant in (group.reference, *group.beside):
            if participant.active:
                self.damage_one(participant, operation, name)
        group.files = group.reference.read()

    def damage_one(self, participant: Participant, operation: Operation, name: None) -> None:
        """See the base class."""
        del name
        path, how, numbers = operation.args
        participant.damage(path, how, tuple(numbers))  # type: ignore[attr-defined]
