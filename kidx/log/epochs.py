"""At which offset each leader's epoch began: the ``leader-epoch-checkpoint`` file (``LeaderEpochFileCache``).

The file is text: a version (0), the number of entries, and a line ``epoch offset`` for each, oldest first. A new log
has an empty file.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Final, NamedTuple

from kidx.errors import InvalidArgumentError
from kidx.files import read_text
from kidx.java_numbers import INT_MAX, LONG_MAX
from kidx.printable import shortened

FILE_NAME: Final = "leader-epoch-checkpoint"
_VERSION: Final = "0"


class EpochEntry(NamedTuple):
    """A leader's epoch, and the offset of its first record."""

    epoch: int
    start_offset: int


def read_epochs(path: Path) -> list[EpochEntry]:
    """The entries of a checkpoint file; none if it does not exist or is empty.

    Raises:
        OSError: it cannot be read, is of another version, or its lines are not what its second one says.
    """
    try:
        lines = read_text(path).splitlines()
    except FileNotFoundError:
        return []
    if not lines:
        return []
    try:
        count = int(lines[1])
    except (IndexError, ValueError):
        count = -1
    if lines[0] != _VERSION or count < 0 or count != len(lines) - 2:
        raise OSError(
            f"{path} is not a checkpoint of leader epochs of version {_VERSION}: it begins with "
            f"{shortened(lines[0])} and has {len(lines) - 2} entries"
        )
    return [_entry(line, number, path) for number, line in enumerate(lines[2:], 3)]


def _entry(line: str, number: int, path: Path) -> EpochEntry:
    try:
        entry = EpochEntry(*map(int, line.split()))
    except (ValueError, TypeError):
        entry = EpochEntry(-1, -1)
    if not (0 <= entry.epoch <= INT_MAX and 0 <= entry.start_offset <= LONG_MAX):
        raise OSError(
            f"{path} is not a checkpoint of leader epochs: line {number} is no epoch and offset: {shortened(line)}"
        )
    return entry


class LeaderEpochs:
    """The epochs of one log.

    Attributes:
        entries: oldest first.
    """

    def __init__(self, entries: list[EpochEntry]) -> None:
        self.entries = entries

    @property
    def latest_epoch(self) -> int | None:
        """The newest epoch; None if there is none."""
        return self.entries[-1].epoch if self.entries else None

    @property
    def earliest_entry(self) -> EpochEntry | None:
        """The oldest entry; None if there is none."""
        return self.entries[0] if self.entries else None


class LeaderEpochCache(LeaderEpochs):
    """The epochs of one log, written to the file whenever they change.

    Args:
        path: the checkpoint file; created empty.

    Raises:
        OSError: the file cannot be read or created.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        super().__init__(read_epochs(self.path))
        self.path.touch()

    def assign(self, epoch: int, start_offset: int) -> None:
        """Notes that an epoch began, unless it is the newest one already; entries that contradict it go.

        Raises:
            InvalidArgumentError: one of the numbers is negative.
        """
        entry = EpochEntry(epoch, start_offset)
        if epoch < 0 or start_offset < 0:
            raise InvalidArgumentError(f"Received invalid partition leader epoch entry {entry}")
        if self.entries and epoch == self.entries[-1].epoch and start_offset >= self.entries[-1].start_offset:
            return
        while self.entries and (self.entries[-1].epoch >= epoch or self.entries[-1].start_offset >= start_offset):
            self.entries.pop()
        self.entries.append(entry)
        self._write()

    def truncate_from_end(self, end_offset: int) -> None:
        """Forgets the epochs that began at or behind ``end_offset``."""
        self._keep(lambda: [entry for entry in self.entries if entry.start_offset < end_offset])

    def truncate_from_start(self, start_offset: int) -> None:
        """Forgets the epochs that ended before ``start_offset``; the one that it lies in now begins there."""

        def kept() -> list[EpochEntry]:
            before = [entry for entry in self.entries if entry.start_offset <= start_offset]
            first = [EpochEntry(before[-1].epoch, start_offset)] if before else []
            return first + self.entries[len(before) :]

        self._keep(kept)

    def clear(self) -> None:
        """Forgets all epochs."""
        self.entries = []
        self._write()

    def _keep(self, kept: Callable[[], list[EpochEntry]]) -> None:
        entries = kept()
        if entries != self.entries:
            self.entries = entries
            self._write()

    def _write(self) -> None:
        lines = [_VERSION, str(len(self.entries)), *(f"{entry.epoch} {entry.start_offset}" for entry in self.entries)]
        partial = self.path.with_name(self.path.name + ".tmp")
        partial.write_text("".join(f"{line}\n" for line in lines), "utf-8")
        partial.replace(self.path)
