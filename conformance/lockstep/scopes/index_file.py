"""Participant with one index file."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from conformance.lockstep.file_reader import StepFileReader, overwrite
from conformance.lockstep.participant import Participant

if TYPE_CHECKING:
    from pathlib import Path

    from conformance.operations import Operation


class IndexParticipant(Participant):
    """Implementation of an index, with its directory and its file."""

    def __init__(self, implementation: Any, directory: Path) -> None:
        super().__init__(implementation, directory)
        self.file = StepFileReader()

    def clear(self) -> None:
        """See the base class."""
        self.file.release()
        super().clear()

    def watch(self, name: str) -> None:
        """See the base class."""
        self.file.watch(self.prefix + name)

    def corrupt(self, operation: Operation, name: str, content: bytes | None) -> None:
        """Replace the content of the closed file by the corrupted content of the reference's file.

        Args:
            operation: The corruption.
            name: The name of the file.
            content: The content of the reference's file after the corruption, or None if the file is removed.
        """
        del operation
        overwrite(self.prefix + name, content)
        self.watch(name)

    def read(self) -> bytes | None:
        """Return the current content of the file, or None if it does not exist."""
        return self.file.read()
