"""The files of a log's directory, read after every step."""

from __future__ import annotations

import os
import shutil
from typing import TYPE_CHECKING, Any, ClassVar, Final

from conformance.lockstep.participant import Participant
from conformance.lockstep.watched_file import damage
from conformance.operations.log import TOPIC_DIRECTORY

if TYPE_CHECKING:
    from collections.abc import Mapping
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
_MOST: Final = 1 << 12
"""Bytes that most files are shorter than. Room for more takes longer to get than such a file to read."""
_OPEN_FILES: Final = 368
"""So many files of all logs stay open from one look to the next: a process may have 1,024."""


class LogParticipant(Participant):
    """An implementation, and a directory of files.

    Attributes:
        open_files: how many files all of them together have open.
        below: the directory of the files, below its own.
        compared: the ends of the names of files that are compared.
    """

    open_files: ClassVar[int] = 0
    below: ClassVar[str] = TOPIC_DIRECTORY
    compared: ClassVar[tuple[str, ...]] = COMPARED

    def __init__(self, implementation: Any, directory: Path) -> None:
        super().__init__(implementation, directory)
        self._topic = f"{directory}/{self.below}"
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
        self._release_others({})

    def _release_others(self, names: dict[str, int]) -> None:
        """Closes all but the files of these names and inodes."""
        for name, inode in self._descriptors.keys() - names.items():
            os.close(self._descriptors.pop((name, inode)))
            LogParticipant.open_files -= 1

    def names(self) -> dict[str, int]:
        """Name and inode of every file that is compared."""
        try:
            with os.scandir(self._topic) as entries:
                return {entry.name: entry.inode() for entry in entries if entry.name.endswith(self.compared)}
        except FileNotFoundError:
            return {}

    def has_names(self, names: Mapping[str, bytes]) -> bool:
        """Whether these are the names of the files that are compared."""
        try:
            listed = os.listdir(self._topic)  # noqa: PTH208 -- every look-up of every participant comes by here
        except FileNotFoundError:
            listed = []
        return {name for name in listed if name.endswith(self.compared)} == names.keys()

    def read(self) -> Files:
        """Name and content of every file that is compared."""
        names = self.names()
        if len(self._descriptors) > len(names):
            self._release_others(names)
        # As long as a file is open, no other one gets its inode.
        open_ones = self._descriptors
        return {
            name: self._opened(name) if (file := open_ones.get((name, inode))) is None else _read(file)
            for name, inode in names.items()
        }

    def _opened(self, name: str) -> bytes:
        """What is in a file that is not open yet."""
        descriptor = os.open(f"{self._topic}/{name}", os.O_RDONLY)
        if LogParticipant.open_files < _OPEN_FILES:
            self._descriptors[name, os.fstat(descriptor).st_ino] = descriptor
            LogParticipant.open_files += 1
            return _read(descriptor)
        content = _read(descriptor)
        os.close(descriptor)
        return content

    def listing(self) -> list[str]:
        """Names of the files that are compared: which snapshots and checkpoints there are is another matter."""
        return sorted(self.read())

    def damage(self, path: str, how: str, numbers: tuple[Any, ...]) -> None:
        """Damages one of the files, which nothing has open."""
        damage(self.directory / self.below / path, how, numbers)


def _read(descriptor: int) -> bytes:
    content = os.pread(descriptor, _MOST, 0)
    return content if len(content) < _MOST else os.pread(descriptor, os.fstat(descriptor).st_size, 0)
