"""Buffer of the cleaner: the bytes that are read, filtered and written at a time (``growBuffersOrFail``; CL-6)."""

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
"""Default of the broker's ``message.max.bytes``: the buffer may grow to this size, or to the topic's maximum."""


class Chunk(NamedTuple):
    """Part of a segment.

    Attributes:
        data: the bytes.
        bytes_left: number of bytes from the start of ``data`` to the end of the segment.
        decompressor: codec libraries that read the records; kidx's libraries if None.
    """

    data: bytes
    bytes_left: int
    decompressor: Decompressor | None

    @property
    def batches(self) -> Iterator[RecordBatch]:
        """Batches that are complete."""
        return iter_memory_batches(self.data, decompressor=self.decompressor)


class CleanerBuffer:
    """Buffers for reading and writing, which have the same size.

    Args:
        size: initial size in bytes, used as long as each batch fits.
        largest: maximum size of a batch in bytes, set by the topic.

    Attributes:
        capacity: current size in bytes.
    """

    def __init__(self, size: int, largest: int) -> None:
        self._size = size
        self._largest = largest
        self.capacity = size

    def read(self, segment: LogSegment, position: int) -> Chunk:
        """Return the bytes from a position on, as many as fit in the buffer.

        Raises:
            OSError: the log cannot be read.
        """
        data = segment.log.read_bytes(position, min(self.capacity, segment.size - position))
        return Chunk(data, segment.size - position, segment.log.dialect.decompressor)

    def grow(self, chunk: Chunk) -> None:
        """Grow the buffer to the batch that the chunk begins with, or at least to a larger size.

        Raises:
            IllegalStateError: the chunk begins with no batch, or the batch exceeds the maximum size.
            CorruptRecordError: the batch is longer than the rest of the segment.
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
        """Reset the buffer to its initial size."""
        self.capacity = min(self.capacity, self._size)
