"""A ``.log`` file read block by block, in bounded memory.

Files are read with ``pread`` into one buffer and not mapped: a mapped file that is cut while it is read kills the
process, and its pages count as the process's own. The buffer stays in the processor's cache while its batches are
looked at, which makes up for the copy.
"""

from __future__ import annotations

import os
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal, Self

import google_crc32c
import numpy as np

from kidx.errors import KidxError
from kidx.files import open_regular
from kidx.records.base import Storage
from kidx.records.legacy import LegacyRecordBatch
from kidx.scan.compiled import worth_compiling
from kidx.scan.rows import BATCH, CORRUPT, FULL, MORE, ODD, Array
from kidx.scan.walk import batch_size, fill_large, old_wrappers, walk

BLOCK_BYTES: Final = 2 << 20
"""Bytes read at once; a larger batch makes the buffer grow."""

LARGE_BATCH: Final = 64 << 20
"""Bytes from which on a batch is not held as a whole. Only few brokers take batches of more than a megabyte."""

_ROWS: Final = 1 << 15


@dataclass(slots=True)
class LogTail:
    """How a log ends.

    Attributes:
        valid_bytes: end of the last whole batch.
        file_size: of the file when it was opened, or as far as it could be read if it shrank since.
        kind: ``whole`` if the last batch ends the file; ``partial``: a batch goes beyond the end, or fewer than 18
            bytes are left; ``zeros``: room that was reserved, or never written; ``corrupt``: a length below 14.
        shrunk: the file became shorter while it was read.
    """

    valid_bytes: int = 0
    file_size: int = 0
    kind: Literal["whole", "partial", "zeros", "corrupt"] = "whole"
    shrunk: bool = False


Quick = Callable[[Array, int, int, int, int], tuple[int, int]]
"""See :meth:`LogBlocks.rows`."""


class LogBlocks:
    """Iterates over a log: arrays of :data:`~kidx.scan.walk.BATCH`, each overwritten by the next; a context manager.

    Args:
        path: a ``.log`` file.
        end: byte position not to read past; the size of the file by default.
        checked: whether to compute checksums.
        compiled: by the compiled kernel or the plain one; see :func:`~kidx.scan.compiled.worth_compiling`.

    Attributes:
        tail: how the log ends; final once the iteration is over.
        bytes_read: so far.
        compiled: which kernel is at work.

    Raises:
        OSError: the file cannot be opened or read, or is no regular file.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        end: int | None = None,
        checked: bool = True,
        compiled: bool | None = None,
    ) -> None:
        self.path = Path(path)
        self._checked = checked
        self._descriptor = open_regular(path)
        size = os.fstat(self._descriptor).st_size
        self.compiled = worth_compiling(size) if compiled is None else compiled
        self.tail = LogTail(file_size=size if end is None else min(end, size))
        self.bytes_read = 0
        self._buffer = np.empty(min(BLOCK_BYTES, max(self.tail.file_size, 1)), np.uint8)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        os.close(self._descriptor)

    def __iter__(self) -> Iterator[Array]:
        return self.rows()

    def rows(self, quick: Quick | None = None) -> Iterator[Array]:
        """The batches as rows, block by block.

        Args:
            quick: is offered the batches first, and takes those that need no row: called with the buffer, how much of
                it is filled, where the next batch begins, the buffer's position in the file and the file's end, it
                tells where it stopped and why: MORE, as :func:`~kidx.scan.walk.walk`, or ODD for a batch that is to
                be a row, and at the end.
        """
        rows = np.empty(min(_ROWS, self.tail.file_size // 26 + 1), BATCH)
        start = filled = position = 0  # position: of the buffer's first byte in the file
        reason, at_once = MORE, len(rows) if quick is None else 1
        while reason in {MORE, FULL, ODD}:
            if reason == MORE:
                position, filled = self._fill(position, start, filled)
                start = 0
            before, count = start, 0
            if quick is not None:
                start, reason = quick(self._buffer, filled, start, position, self.tail.file_size)
                # Where nothing is ordinary, more and more rows are read before the next try.
                at_once = 1 if start > before else min(2 * at_once, len(rows))
            if quick is None or reason == ODD:
                count, start, reason = walk(
                    self._buffer,
                    filled,
                    rows[:at_once],
                    start=start,
                    file_position=position,
                    file_end=self.tail.file_size,
                    checked=self._checked,
                    compiled=self.compiled,
                )
            self.tail.valid_bytes = position + start
            if count:
                self._read_wrappers(rows[:count], position)
                yield rows[:count]
            elif reason == MORE and start == 0 and filled == len(self._buffer):
                size = batch_size(self._buffer)
                if size <= LARGE_BATCH:
                    self._grow(size)
                    continue
                filled = 0  # what follows is read anew
                if self._read_large(rows[:1], position, size):
                    position += size
                    self.tail.valid_bytes = position
                    yield rows[:1]
        self._end(reason)

    def _fill(self, position: int, start: int, filled: int) -> tuple[int, int]:
        """Moves what is left to the front and reads on."""
        left = filled - start
        self._buffer[:left] = self._buffer[start:filled]
        position += start
        while left < len(self._buffer) and position + left < self.tail.file_size:
            wanted = min(len(self._buffer) - left, self.tail.file_size - position - left)
            got = os.preadv(self._descriptor, [self._buffer[left : left + wanted].data], position + left)
            if got == 0:
                self.tail.file_size, self.tail.shrunk = position + left, True
            left += got
            self.bytes_read += got
        return position, left

    def _grow(self, size: int) -> None:
        larger = np.empty(max(len(self._buffer) * 2, size), np.uint8)
        larger[: len(self._buffer)] = self._buffer
        self._buffer = larger

    def _read_large(self, rows: Array, position: int, size: int) -> bool:
        """The row of a batch of which only the beginning is in the buffer: its checksum is taken piece by piece.

        Returns:
            Whether the batch is still there.
        """
        start = fill_large(self._buffer, size, position, rows)
        if not self._checked:
            return True
        modern = int(rows["magic"][0]) >= 2
        crc, at, end = 0, position + start, position + size
        while at < end:
            data = os.pread(self._descriptor, min(BLOCK_BYTES, end - at), at)
            if not data:
                self.tail.file_size, self.tail.shrunk = at, True
                return False
            crc = google_crc32c.extend(crc, data) if modern else zlib.crc32(data, crc)
            at += len(data)
            self.bytes_read += len(data)
        rows["crc_ok"] &= crc == rows["crc"]
        return True

    def _read_wrappers(self, rows: Array, position: int) -> None:
        """The first offset of a compressed batch of v0 or v1; left as it is if its records cannot be read."""
        for number in old_wrappers(rows):
            row = rows[number]
            at = int(row["position"]) - position
            size = int(row["size"])
            storage = Storage(self._buffer[at : at + size].tobytes(), in_file=True, source=str(self.path))
            batch = LegacyRecordBatch(storage, 0, size, int(row["magic"]), int(row["last_offset"]))
            try:
                rows["base_offset"][number] = batch.base_offset
            except KidxError:
                rows["crc_ok"][number] = False

    def _end(self, reason: int) -> None:
        tail = self.tail
        if tail.valid_bytes == tail.file_size:
            tail.kind = "whole"
        elif self._is_zeros():
            tail.kind = "zeros"
        else:
            tail.kind = "corrupt" if reason == CORRUPT else "partial"

    def _is_zeros(self) -> bool:
        position = self.tail.valid_bytes
        while position < self.tail.file_size:
            data = os.pread(self._descriptor, min(BLOCK_BYTES, self.tail.file_size - position), position)
            if not data:
                break
            if data.count(0) != len(data):
                return False
            position += len(data)
        return True


def scan_log(
    path: str | os.PathLike[str], *, checked: bool = True, compiled: bool | None = None
) -> tuple[np.ndarray[Any, Any], LogTail]:
    """All batches of a log as one array of :data:`~kidx.scan.walk.BATCH`, 96 bytes a batch, and how the log ends.

    Raises:
        OSError: the file cannot be read.
    """
    with LogBlocks(path, checked=checked, compiled=compiled) as blocks:
        parts = [rows.copy() for rows in blocks]
        return np.concatenate(parts) if parts else np.zeros(0, BATCH), blocks.tail
