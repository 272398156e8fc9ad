"""Start offset of each leader epoch: the ``leader-epoch-checkpoint`` file (``LeaderEpochFileCache``).

The file is text: a version (0), the number of entries, and a line ``epoch offset`` for each, oldest first. A new log
has an empty file.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from kidx.errors import InvalidArgumentError
from kidx.files import read_text
from kidx.java_values import INT_MAX, LONG_MAX, java_fields, java_lines
from kidx.printable import counted, shortened

if TYPE_CHECKING:
    import os
    from collections.abc import Sequence

FILE_NAME: Final = "leader-epoch-checkpoint"
_VERSION: Final = 0
_DIGITS: Final = re.compile(r"[+-]?\d{1,40}")


class EpochEntry(NamedTuple):
    """Leader epoch, and the offset at which it starts."""

    epoch: int
    start_offset: int  # offset of its first record


def read_epochs(path: Path) -> list[EpochEntry]:
    """Return the entries of a checkpoint file; empty if it does not exist, is empty, or ends after its version.

    Raises:
        OSError: the file cannot be read, has another version, or its number of lines differs from its second line.
    """
    try:
        entries = stored_epochs(path)
    except InvalidArgumentError as error:
        raise OSError(f"{path} is not a checkpoint of leader epochs: {error}") from error
    for entry in entries:
        if entry.epoch < 0 or entry.start_offset < 0:
            raise OSError(f"{path} is not a checkpoint of leader epochs: {entry} has a negative number")
    return entries


def stored_epochs(path: Path) -> list[EpochEntry]:
    """Return the entries as a log reads them, including negative ones (``CheckpointFile.java``, LG-78).

    Raises:
        OSError: See :func:`read_epochs`.
        InvalidArgumentError: an entry is not an ``int`` and a ``long``, or the number of entries is negative.
    """
    try:
        lines = java_lines(read_text(path))
    except FileNotFoundError:
        return []
    if not lines:
        return []
    try:
        version, *counts = (_number(line, INT_MAX) for line in lines[:2])
    except InvalidArgumentError as error:
        raise OSError(f"{path} is not a checkpoint of leader epochs: {error}") from error
    if version != _VERSION:
        raise OSError(f"{path} is a checkpoint of leader epochs of version {version}, not {_VERSION}")
    if not counts:
        return []
    if counts[0] < 0:
        raise InvalidArgumentError(f"Illegal Capacity: {counts[0]}")
    entries = [_entry(line, number, path) for number, line in enumerate(lines[2:], 3)]
    if counts[0] != len(entries):
        raise OSError(
            f"{path} is not a checkpoint of leader epochs: it has {counted(len(entries), 'entry')}, not {counts[0]}"
        )
    return entries


def _entry(line: str, number: int, path: Path) -> EpochEntry:
    match java_fields(line):
        case epoch, start_offset:
            try:
                return EpochEntry(_number(epoch, INT_MAX), _number(start_offset, LONG_MAX))
            except InvalidArgumentError as error:
                raise InvalidArgumentError(f"{path}, line {number}: {error}") from error
    raise OSError(
        f"{path} is not a checkpoint of leader epochs: line {number} is not an epoch and an offset: {shortened(line)}"
    )


def checkpoint_text(entries: Sequence[EpochEntry]) -> str:
    """Return the content of a checkpoint file with these entries."""
    lines = [str(_VERSION), str(len(entries)), *(f"{entry.epoch} {entry.start_offset}" for entry in entries)]
    return "".join(f"{line}\n" for line in lines)


def _number(text: str, largest: int) -> int:
    """Return the number that ``Integer.parseInt`` or ``Long.parseLong`` parses."""
    if not _DIGITS.fullmatch(text) or not ~largest <= (number := int(text)) <= largest:
        raise InvalidArgumentError(f"not a number: {shortened(text)}")
    return number


class LeaderEpochs:
    """Leader epochs of one log.

    Attributes:
        entries: the entries, oldest first.
    """

    def __init__(self, entries: list[EpochEntry]) -> None:
        self.entries = entries

    @property
    def latest_epoch(self) -> int | None:
        """Newest epoch, or None."""
        return self.entries[-1].epoch if self.entries else None

    @property
    def earliest_entry(self) -> EpochEntry | None:
        """Oldest entry, or None."""
        return self.entries[0] if self.entries else None

    def epoch_of(self, offset: int) -> int | None:
        """Return the leader epoch of an offset, or None (``epochForOffset``)."""
        found = None
        for epoch, start in self.entries:
            if start > offset:
                break
            found = epoch
        return found

    def end_of(self, epoch: int, end_offset: int) -> tuple[int, int] | None:
        """Return the largest epoch up to ``epoch`` and the offset at which it ends, or None (``endOffsetFor``).

        Args:
            epoch: a leader epoch; if it is older than all entries, it ends where the oldest one begins.
            end_offset: the log end offset, where the newest epoch ends.
        """
        if epoch < 0:
            return None
        if epoch == self.latest_epoch:
            return epoch, end_offset
        newer = next((entry for entry in self.entries if entry.epoch > epoch), None)
        if newer is None:
            return None
        older = [entry.epoch for entry in self.entries if entry.epoch <= epoch]
        return (older[-1] if older else epoch), newer.start_offset


class LeaderEpochCache(LeaderEpochs):
    """Leader epochs of one log, written to the file on every change.

    Args:
        path: the checkpoint file; an empty file is created if it does not exist.
        numbers_escape: True if an entry that is not a number raises an argument error, not a file error (LG-78).
        are_checked: True to remove the entries of the file that contradict a later entry.

    Raises:
        OSError: the file cannot be read or created.
        InvalidArgumentError: an entry is negative, or with ``numbers_escape`` not a number.
    """

    def __init__(self, path: str | os.PathLike[str], *, numbers_escape: bool = True, are_checked: bool = True) -> None:
        self.path = Path(path)
        super().__init__([])
        try:
            stored = stored_epochs(self.path)
        except InvalidArgumentError as error:
            if numbers_escape:
                raise
            raise OSError(f"Malformed line in checkpoint file ({self.path}): {error}") from error
        if are_checked:
            for entry in stored:
                self._add(entry)
        else:
            self.entries = stored
        self.path.touch()

    def assign(self, epoch: int, start_offset: int) -> None:
        """Record the start of an epoch unless it is the newest one already, and remove entries that contradict it.

        Raises:
            InvalidArgumentError: ``epoch`` or ``start_offset`` is negative.
        """
        if self._add(EpochEntry(epoch, start_offset)):
            self._write()

    def _add(self, entry: EpochEntry) -> bool:
        epoch, start_offset = entry
        if epoch < 0 or start_offset < 0:
            raise InvalidArgumentError(f"Received invalid partition leader epoch entry {entry}")
        if self.entries and epoch == self.entries[-1].epoch and start_offset >= self.entries[-1].start_offset:
            return False
        retained = [before for before in self.entries if before.epoch < epoch and before.start_offset < start_offset]
        self.entries = [*retained, entry]
        return True

    def truncate_from_end(self, end_offset: int) -> None:
        """Remove the epochs that began at or past ``end_offset``, if the newest one did."""
        if self.entries and self.entries[-1].start_offset >= end_offset:
            self.entries = [entry for entry in self.entries if entry.start_offset < end_offset]
            self._write()

    def truncate_from_start(self, start_offset: int) -> None:
        """Remove the epochs that ended before ``start_offset``; the epoch that contains it now begins there."""
        before = [entry for entry in self.entries if entry.start_offset <= start_offset]
        if before:
            after = [entry for entry in self.entries if entry.start_offset > start_offset]
            self.entries = [EpochEntry(before[-1].epoch, start_offset), *after]
            self._write()

    def clear(self) -> None:
        """Remove all epochs."""
        self.entries = []
        self._write()

    def _write(self) -> None:
        partial = self.path.with_name(self.path.name + ".tmp")
        partial.write_text(checkpoint_text(self.entries), "utf-8")
        partial.replace(self.path)
