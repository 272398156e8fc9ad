"""The files of a log's directory, read after every step."""

from __future__ import annotations

import os
import shutil
from typing import TYPE_CHECKING, Any, Final

from conformance.lockstep.participant import Participant
from conformance.lockstep.watched_file import damage
from conformance.operations.log import TOPIC_DIRECTORY

if TYPE_CHECKING:
    from pathlib import Path

    from conformance.attribution.log_step import Files

COMPARED: Final = (
    ".log",
    ".index",
    ".timeindex",
    ".txnindex",
    ".snapshot",
    "leader-epoch-checkpoint",
    ".cleaned",
    ".swap",
)
"""The files whose names and bytes are compared."""
_LARGEST: Final = 1 << 24
"""So many bytes of a file are compared."""
_OPEN_FILES: Final = 16
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

    def damage(self, path: str, how: str, numbers: tuple[Any, ...]) -> None:
        """Damages one of the files, which nothing has open."""
        damage(self.directory / TOPIC_DIRECTORY / path, how, numbers)
