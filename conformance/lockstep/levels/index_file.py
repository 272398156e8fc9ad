"""A participant with one index file."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from conformance.lockstep.participant import Participant
from conformance.lockstep.watched_file import WatchedFile, overwrite

if TYPE_CHECKING:
    from pathlib import Path

    from conformance.operations import Operation


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

    def damage(self, operation: Operation, name: str, content: bytes | None) -> None:
        """Give the closed file the content that a damage leaves of the reference's.

        Args:
            operation: the damage.
            name: of the file.
            content: what the reference's file is after it; None if it is removed.
        """
        del operation
        overwrite(self.prefix + name, content)
        self.watch(name)

    def read(self) -> bytes | None:
        """What is in its file right now; None if there is none."""
        return self.file.read()
