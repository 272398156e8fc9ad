"""A walk from batch to batch through a log, which is read in windows; batch bodies that are not needed are skipped."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Final

from kidx.layout import LOG_OVERHEAD, MESSAGE_OVERHEAD_V0, PREFIX, RECORD_BATCH_OVERHEAD
from kidx.records import RecordBatch, iter_batches
from kidx.records.errors import CorruptRecordError

if TYPE_CHECKING:
    from kidx.storage import RangeReader

WINDOW: Final = 1 << 20
"""Number of bytes of one read; a larger batch is read as a whole."""
BEYOND: Final = 1 << 13
"""Number of bytes of one read past the planned end."""


class BatchWalk:
    """An iteration over the batches from one byte position to another.

    Args:
        start: the position of the first batch.
        end: the expected end of the last batch; past it, the walk reads :data:`BEYOND` bytes at a time.
        hard_end: the end of the log; ``end`` by default.
        source: the name of the log in errors.
        wanted: a predicate on a batch's header: True if its records are needed; all records by default.
        may_grow: True if a broker may be appending to the log. The walk then ends at zeros or at an incomplete batch,
            which :func:`is_unfinished` recognizes, without an error.

    Attributes:
        position: the position after the last batch; less than ``hard_end`` if no complete batch follows. It may be set
            to continue at another batch.
        window, base: the bytes that were read, and their position in the log.
        hard_end: the end of the log.
        is_over: True if the walk reached its end.
        ends_in_zeros: True if only zeros follow the last batch, as in a preallocated log.
    """

    def __init__(
        self,
        reader: RangeReader,
        start: int,
        end: int,
        hard_end: int | None = None,
        *,
        source: str,
        wanted: Callable[[RecordBatch], bool] | None = None,
        may_grow: bool = False,
    ) -> None:
        self._reader = reader
        self._end = end
        self.hard_end = end if hard_end is None else hard_end
        self._source = source
        self._wanted = wanted
        self.base = start
        self.window = b""
        self.position = start
        self._may_grow = may_grow
        self.ends_in_zeros = self.is_over = False

    def __iter__(self) -> Iterator[tuple[int, RecordBatch, bool]]:
        """Yield the position, the batch, and True if its body was read.

        Raises:
            CorruptRecordError: a length that no batch can have (RB-4).
            OSError: the log cannot be read.
        """
        yield from self._batches()
        self.is_over = True

    def _batches(self) -> Iterator[tuple[int, RecordBatch, bool]]:
        while self.position < self.hard_end - PREFIX.size:
            if self.position + RECORD_BATCH_OVERHEAD > self.base + len(self.window):
                self._read(RECORD_BATCH_OVERHEAD)
            try:
                batch = self._here()
            except CorruptRecordError:
                if not self._may_grow:
                    raise
                if is_unfinished(self._reader, self.position):
                    self.ends_in_zeros = True
                    return
                if not self._has_changed():
                    raise
                continue
            if batch is None:
                return
            size = batch.size_in_bytes
            wanted = self._wanted is None or batch.magic < 2 or self._wanted(batch)
            if wanted and self.position + size > self.base + len(self.window):
                self._read(size)
                batch = self._here()
                if batch is None:
                    return
            position = self.position
            self.position += size
            yield position, batch, wanted

    def _here(self) -> RecordBatch | None:
        start = self.position - self.base
        if start + PREFIX.size > len(self.window):
            raise CorruptRecordError(f"{self._source} ends at byte {self.base + len(self.window)}, within a batch")
        return next(iter_batches(self.window, start, self.hard_end - self.base, source=self._source), None)

    def _has_changed(self) -> bool:
        """Read the window again; return True if the batch here begins with other bytes now: it was appended since."""
        before = self.window[self.position - self.base :][: PREFIX.size]
        self._read(RECORD_BATCH_OVERHEAD)
        return self.window[: PREFIX.size] != before

    def _read(self, least: int) -> None:
        """Read the window that begins at the current position."""
        planned = self._end - self.position
        length = min(WINDOW, planned) if planned > 0 else BEYOND
        self.base = self.position
        self.window = self._reader.read(self.position, max(length, least))


def is_unfinished(reader: RangeReader, position: int) -> bool:
    """Return True if a position of a log begins an incomplete batch of a broker, followed by zeros.

    Preallocated logs (``preallocate``) end so, whether the broker runs or was killed. A batch with any other corruption
    has its last bytes, or another batch after it.

    Raises:
        OSError: the log cannot be read.
    """
    head = reader.read(position, PREFIX.size).ljust(PREFIX.size, b"\0")
    length = PREFIX.struct.unpack(head)[1]
    end = position + (LOG_OVERHEAD + length if length >= MESSAGE_OVERHEAD_V0 else RECORD_BATCH_OVERHEAD)
    if end < reader.size and not reader.is_zero_from(end):
        return False
    if length < MESSAGE_OVERHEAD_V0:
        return True
    written = reader.read(position, end - position).rstrip(b"\0")
    return end < reader.size and len(written) < end - position - 1
