"""From batch to batch through a log that is read in windows, without batch bodies that the query does not read."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Final

from kidx.records import RecordBatch, iter_batches
from kidx.records.errors import CorruptRecordError
from kidx.records.layout import PREFIX, RECORD_BATCH_OVERHEAD

if TYPE_CHECKING:
    from kidx.tables.storage import RangeReader

WINDOW: Final = 1 << 20
"""Bytes read at once; a batch that is larger is read as a whole."""
BEYOND: Final = 1 << 13
"""Bytes read at once behind the end that was planned."""


class BatchWalk:
    """The batches from one byte position to another.

    Args:
        reader: of the log.
        start: where the first batch begins.
        end: where the last one is expected to end: reading beyond is done in small steps.
        hard_end: where the log ends; by default ``end``.
        source: what to call the log in errors.
        wanted: says from a batch's header whether its records will be looked at; by default all are.

    Attributes:
        position: behind the last batch; short of ``hard_end`` if what follows is no whole batch. It may be
            set: the walk goes on there.
        window, base: bytes that have been read, and where in the log they begin.
        hard_end: where the log ends.
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
    ) -> None:
        self._reader = reader
        self._end = end
        self.hard_end = end if hard_end is None else hard_end
        self._source = source
        self._wanted = wanted
        self.base = start
        self.window = b""
        self.position = start

    def __iter__(self) -> Iterator[tuple[int, RecordBatch, bool]]:
        """Position, batch, and whether its body is there.

        Raises:
            CorruptRecordError: a length that no batch can have (RB-4).
            OSError: the log cannot be read.
        """
        while self.position < self.hard_end - PREFIX.size:
            if self.position + RECORD_BATCH_OVERHEAD > self.base + len(self.window):
                self._read(RECORD_BATCH_OVERHEAD)
            batch = self._here()
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
            raise CorruptRecordError(f"{self._source} ends at {self.base + len(self.window)}, within a batch")
        return next(iter_batches(self.window, start, self.hard_end - self.base, source=self._source), None)

    def _read(self, least: int) -> None:
        """Reads the window that begins where we are."""
        planned = self._end - self.position
        length = min(WINDOW, planned) if planned > 0 else BEYOND
        self.base = self.position
        self.window = self._reader.read(self.position, max(length, least))
