"""The cleaner's buffer: how much of a segment is read, filtered and written at once (``growBuffersOrFail``; CL-6)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from kidx.errors import IllegalStateError
from kidx.records import CorruptRecordError, iter_memory_batches
from kidx.records.layout import LOG_OVERHEAD, PREFIX

if TYPE_CHECKING:
    from collections.abc import Iterator

    from kidx.dialect import Decompressor
    from kidx.records import RecordBatch
    from kidx.segment import LogSegment

LARGEST_MESSAGE: Final = 1_048_588
"""``message.max.bytes`` of the broker by default: the buffer may grow to this size, or to that of the topic."""


class Chunk(NamedTuple):
    """Bytes of a segment, how many there are from their first one to its end, and what reads their records."""

    data: bytes
    bytes_left: int
    decompressor: Decompressor | None

    @property
    def batches(self) -> Iterator[RecordBatch]:
        """Those that are whole."""
        return iter_memory_batches(self.data, decompressor=self.decompressor)


class CleanerBuffer:
    """The buffers for reading and for writing, which are of one size.

    Args:
        size: bytes, as long as each batch fits.
        largest: bytes of a batch, by the topic.

    Attributes:
        capacity: bytes now.
    """

    def __init__(self, size: int, largest: int) -> None:
        self._size = size
        self._largest = largest
        self.capacity = size

    def read(self, segment: LogSegment, position: int) -> Chunk:
        """The bytes from a position on that fit.

        Raises:
            OSError: the log cannot be read.
        """
        with segment.log.path.open("rb") as file:
            file.seek(position)
            data = file.read(min(self.capacity, segment.size - position))
            return Chunk(data, segment.size - position, segment.log.dialect.decompressor)

    def grow(self, chunk: Chunk) -> None:
        """Makes room for the batch that the chunk begins with, or at least more room.

        Raises:
            IllegalStateError: no batch begins there, or it is larger than any may be.
            CorruptRecordError: it is longer than the rest of the segment.
        """
        limit = self._largest
        if self.capacity >= limit:
            limit = self._size_of_first(chunk)
        limit = max(limit, LARGEST_MESSAGE)
        if self.capacity >= limit:
            raise IllegalStateError(f"This log contains a message larger than maximum allowable size of {limit}.")
        self.capacity = min(self.capacity * 2, limit)

    def _size_of_first(self, chunk: Chunk) -> int:
        if len(chunk.data) < PREFIX.size:
            raise IllegalStateError("Could not determine next batch size")
        size = LOG_OVERHEAD + int.from_bytes(chunk.data[8:LOG_OVERHEAD], signed=True)
        if size <= 0:
            raise IllegalStateError(f"Invalid batch size {size}")
        if size <= self.capacity:
            raise IllegalStateError(f"Batch size {size} < buffer size {self.capacity}, but not processed")
        if size > chunk.bytes_left:
            raise CorruptRecordError(
                f"Log segment may be corrupt, batch size {size} > {chunk.bytes_left} bytes left in segment"
            )
        return size

    def restore(self) -> None:
        """The size that it began with."""
        self.capacity = min(self.capacity, self._size)
