"""Reader of a ``.log`` file in blocks, in bounded memory."""

from __future__ import annotations

import os
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple, Self

import google_crc32c
import numpy as np

from kidx.errors import KidxError
from kidx.files import open_regular
from kidx.layout import CHECKSUMMED_FROM, LOG_OVERHEAD, RECORD_BATCH, RECORD_BATCH_OVERHEAD
from kidx.records.base import Storage
from kidx.records.file_bytes import check_log_size
from kidx.records.legacy import LegacyRecordBatch
from kidx.scan.batch_headers import batch_size, fill_large, old_wrappers, walk
from kidx.scan.jit import worth_compiling
from kidx.scan.rows import BATCH, CORRUPT, FULL, MORE, ODD, Array

BLOCK_BYTES: Final = 2 << 20
"""Number of bytes per read; a larger batch makes the buffer grow."""

LARGE_BATCH: Final = 64 << 20
"""Size in bytes above which a batch is not loaded whole. Few brokers accept batches of more than a megabyte."""

_ROWS: Final = 1 << 15
Quick = Callable[[Array, int, int, int, int], tuple[int, int]]
"""Function that processes ordinary batches; see :meth:`LogBlocks.rows`."""
_MOST: Final = 64 << 20
"""Number of bytes that are searched."""
_CHECKSUMMED: Final = 4 * _MOST
"""Number of bytes whose checksum is computed: headers of a hostile file may all claim the rest of the file."""
_MAGIC_AT: Final = RECORD_BATCH.field("magic").offset
_MAGIC: Final = 2
_ATTRIBUTES: Final = 0x7F


@dataclass(slots=True)
class LogTail:
    """End of a log.

    Attributes:
        valid_bytes: end of the last complete batch.
        file_size: size of the file when it was opened, or its readable size if it shrank since.
        kind: ``whole`` if the last batch ends the file; ``partial``: a batch exceeds the end, or fewer than 18 bytes
            remain; ``zeros``: a preallocated or never written tail; ``corrupt``: a length below 14.
        shrank_while_reading: True if the file became shorter while it was read.
    """

    valid_bytes: int = 0
    file_size: int = 0
    kind: Literal["whole", "partial", "zeros", "corrupt"] = "whole"
    shrank_while_reading: bool = False


class LogBlocks:
    """Iterator over a log: arrays of :data:`~kidx.scan.rows.BATCH`, each overwritten by the next; a context manager.

    Args:
        path: a ``.log`` file.
        end: byte position not to read past; the size of the file by default.
        checked: True to compute checksums.
        compiled: True for the compiled kernel, False for the plain one; see :func:`~kidx.scan.jit.worth_compiling`.

    Attributes:
        tail: the end of the log; final once the iteration is over.
        bytes_read: number of bytes read so far.
        compiled: True if the compiled kernel is used.

    Raises:
        OSError: the file cannot be opened or read, is not a regular file, or is longer than a segment can be.
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
        try:
            check_log_size(path, size)
        except OSError:
            os.close(self._descriptor)
            raise
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
        """Yield the batches as rows, block by block.

        Args:
            quick: function that gets the batches first and processes the batches that need no row, or None. Its
                arguments are the buffer, the number of bytes in it, the start of the next batch, the buffer's position
                in the file and the file's end. It returns the position where it stopped, and the reason: MORE, as
                :func:`~kidx.scan.batch_headers.walk`, or ODD for a batch that needs a row, and at the end of the file.
        """
        rows = np.empty(min(_ROWS, self.tail.file_size // 26 + 1), BATCH)
        start = filled = position = 0  # position of the buffer's first byte in the file
        reason, limit = MORE, len(rows) if quick is None else 1
        while reason in {MORE, FULL, ODD}:
            if reason == MORE:
                position, filled = self._fill(position, start, filled)
                start = 0
            before, count = start, 0
            if quick is not None:
                start, reason = quick(self._buffer, filled, start, position, self.tail.file_size)
                # If no batch is ordinary, more and more rows are read before the next attempt.
                limit = 1 if start > before else min(2 * limit, len(rows))
            if quick is None or reason == ODD:
                count, start, reason = walk(
                    self._buffer,
                    filled,
                    rows[:limit],
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
                filled = 0  # the next block is read from there again
                if self._read_large(rows[:1], position, size):
                    position += size
                    self.tail.valid_bytes = position
                    yield rows[:1]
        self._end(reason)

    def _fill(self, position: int, start: int, filled: int) -> tuple[int, int]:
        """Move the remaining bytes to the front and fill the buffer."""
        remaining = filled - start
        self._buffer[:remaining] = self._buffer[start:filled]
        position += start
        while remaining < len(self._buffer) and position + remaining < self.tail.file_size:
            size = min(len(self._buffer) - remaining, self.tail.file_size - position - remaining)
            got = os.preadv(self._descriptor, [self._buffer[remaining : remaining + size].data], position + remaining)
            if got == 0:
                self.tail.file_size, self.tail.shrank_while_reading = position + remaining, True
            remaining += got
            self.bytes_read += got
        return position, remaining

    def _grow(self, size: int) -> None:
        larger = np.empty(max(len(self._buffer) * 2, size), np.uint8)
        larger[: len(self._buffer)] = self._buffer
        self._buffer = larger

    def _read_large(self, rows: Array, position: int, size: int) -> bool:
        """Read the row of a batch that exceeds the buffer: its checksum is computed chunk by chunk.

        Returns:
            True if the batch is still complete.
        """
        start = fill_large(self._buffer, size, position, rows)
        if not self._checked:
            return True
        modern = int(rows["magic"][0]) >= 2
        crc, at, end = 0, position + start, position + size
        while at < end:
            data = os.pread(self._descriptor, min(BLOCK_BYTES, end - at), at)
            if not data:
                self.tail.file_size, self.tail.shrank_while_reading = at, True
                return False
            crc = google_crc32c.extend(crc, data) if modern else zlib.crc32(data, crc)
            at += len(data)
            self.bytes_read += len(data)
        rows["crc_ok"] &= crc == rows["crc"]
        return True

    def _read_wrappers(self, rows: Array, position: int) -> None:
        """Set the first offset of compressed batches of v0 or v1, unless their records cannot be read."""
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
    """Return all batches of a log as one array of :data:`~kidx.scan.rows.BATCH`, 96 bytes per batch, and the log's end.

    Raises:
        OSError: the file cannot be read.
    """
    with LogBlocks(path, checked=checked, compiled=compiled) as blocks:
        parts = [rows.copy() for rows in blocks]
        return np.concatenate(parts) if parts else np.zeros(0, BATCH), blocks.tail


class HiddenBatch(NamedTuple):
    """A whole batch that no reader reaches.

    Attributes:
        position: position of the batch in the file.
        base_offset, last_offset: first and last offset of the batch.
        size: size in bytes.
        max_timestamp: largest timestamp in milliseconds; -1 for none.
        attributes: the ``ATTRIBUTE_`` bits of :mod:`kidx.layout`.
    """

    position: int
    base_offset: int
    last_offset: int
    records: int
    size: int
    max_timestamp: int
    attributes: int


def hidden_batches(path: str | os.PathLike[str], position: int) -> list[HiddenBatch]:
    """Return the batches of format 2 with a right checksum after the position at which reading a ``.log`` ends.

    The search ends early in a file whose false headers would take minutes to check.

    Args:
        position: position at which a reader of the log stops.

    Raises:
        OSError: the file cannot be read.
    """
    descriptor = open_regular(path)
    try:
        data = os.pread(descriptor, _MOST, position)
    finally:
        os.close(descriptor)
    found: list[HiddenBatch] = []
    end = 1  # no batch begins at the position itself
    left = _CHECKSUMMED
    for start in np.flatnonzero(np.frombuffer(data, np.uint8)[_MAGIC_AT:] == _MAGIC).tolist():
        if start < end or start + RECORD_BATCH_OVERHEAD > len(data):
            continue
        header = RECORD_BATCH.struct.unpack_from(data, start)
        base, length, _, _, crc, attributes, delta, _, max_timestamp, *_, count = header
        after = start + LOG_OVERHEAD + length
        is_likely = start + RECORD_BATCH_OVERHEAD <= after <= len(data) and 0 <= attributes <= _ATTRIBUTES
        is_likely &= base >= 0 and delta >= 0
        if not is_likely:
            continue
        left -= length
        if left < 0:
            break
        if google_crc32c.value(data[start + CHECKSUMMED_FROM : after]) == crc & 0xFFFFFFFF:
            numbers = base, base + delta, max(count, 0), after - start, max_timestamp, attributes
            found.append(HiddenBatch(position + start, *numbers))
            end = after
    return found
