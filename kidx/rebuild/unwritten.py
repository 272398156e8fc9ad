"""Index files that are built in memory and written at the end, so that a full disk causes an ordinary error.

A broker maps a sparse file instead. If the disk is full when a process writes to a mapped page, the process is killed.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from kidx.index.abstract import AbstractIndex
from kidx.index.mapped_buffer import MappedBuffer
from kidx.index.offset import OffsetIndex
from kidx.index.time import TimeIndex
from kidx.java_numbers import round_down

_ANONYMOUS = -1
"""File descriptor of anonymous memory."""


class Unwritten(AbstractIndex[Any]):
    """Index that has no file before :meth:`write`."""

    def _create_and_map(self) -> MappedBuffer:
        self.length = self._preallocated_size()
        return MappedBuffer(_ANONYMOUS, self.length, writable=True, name=self._file)

    def resize(self, new_size: int) -> bool:
        """Resize the memory, as :meth:`AbstractIndex.resize` does with a file."""
        size = round_down(new_size, self.entry_size)
        if size == self.length:
            return False
        before = self._mapped()
        buffer = MappedBuffer(_ANONYMOUS, size, writable=True, name=self._file)
        copied = min(before.position, size)
        buffer.data[:copied] = before.data[:copied]
        buffer.seek(before.position)
        before.close()
        self._mmap, self.length, self.max_entries = buffer, size, size // self.entry_size
        return True

    def write(self) -> None:
        """Write the file.

        Raises:
            OSError: the file cannot be created or written; a part of it may exist.
        """
        Path(self._file).write_bytes(memoryview(self._mapped().data)[: self.length])


class UnwrittenOffsetIndex(Unwritten, OffsetIndex):
    """The ``.index`` of a log that is rebuilt."""


class UnwrittenTimeIndex(Unwritten, TimeIndex):
    """The ``.timeindex`` of a log that is rebuilt."""
