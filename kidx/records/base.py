"""Common interface of batches of every magic (``RecordBatch.java``)."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

from kidx.java_values import to_long
from kidx.records.codecs import Codec
from kidx.records.errors import RecordStreamError
from kidx.records.record import MAX_RECORD_BODY_SIZE, Record, TimestampType

if TYPE_CHECKING:
    from collections.abc import Iterator

    from kidx.dialect import Decompressor
    from kidx.records.file_bytes import Buffer
    from kidx.records.offset_timestamps import OffsetTimestamp


_LARGE: Final = 1 << 24
"""Maximum number of bytes per chunk while a large batch is read for its checksum."""


class RecordBatch(Protocol):
    """One batch, decoded on demand.

    Any access to a corrupt batch can raise what Kafka raises there, always a :class:`kidx.errors.KidxError`. Iteration
    yields the records in file order. Compressed records are all read before the first is yielded, as in Kafka; if they
    do not fit in memory, they are then read a second time.
    """

    @property
    def position(self) -> int:
        """Byte position of its first byte in the buffer or file."""

    @property
    def size_in_bytes(self) -> int:
        """Total size in bytes, including the 12 bytes up to the end of the length field (RB-2)."""

    @property
    def magic(self) -> int:
        """Format of the batch: 0, 1 or 2."""

    @property
    def base_offset(self) -> int:
        """Offset of the first record. In a compressed v0 or v1 batch, the records are read to find it."""

    @property
    def last_offset(self) -> int:
        """Offset of the last record, also after compaction removed it (RB-2)."""

    @property
    def next_offset(self) -> int:
        """Offset after the last."""

    @property
    def crc(self) -> int:
        """Stored checksum, unsigned 32 bits."""

    @property
    def max_timestamp(self) -> int:
        """Largest timestamp in milliseconds: from the header (v2), from wrapper or record (v1), -1 (v0) (RB-3)."""

    @property
    def timestamp_type(self) -> TimestampType:
        """Origin of the timestamps: the producer or the broker."""

    @property
    def codec(self) -> Codec:
        """Compression codec of the records."""

    @property
    def is_compressed(self) -> bool:
        """True if the records are compressed."""

    @property
    def count(self) -> int | None:
        """Number of records in the batch; None in v0 and v1, whose header has no such field."""

    @property
    def producer_id(self) -> int:
        """Producer id, -1 if unknown."""

    @property
    def producer_epoch(self) -> int:
        """Producer epoch, -1 if unknown."""

    @property
    def base_sequence(self) -> int:
        """Sequence number of the first record, -1 if unknown."""

    @property
    def last_sequence(self) -> int:
        """Sequence number of the last record, -1 if unknown."""

    @property
    def partition_leader_epoch(self) -> int:
        """Epoch of the leader that appended the batch, -1 if unknown."""

    @property
    def is_transactional(self) -> bool:
        """True if the batch belongs to a transaction."""

    @property
    def is_control(self) -> bool:
        """True if the batch holds control records."""

    @property
    def delete_horizon_ms(self) -> int | None:
        """Time in milliseconds from which its tombstones may be deleted; None if compaction has not set it (3.1.0+)."""

    @property
    def is_valid(self) -> bool:
        """True if size and checksum are valid."""

    def ensure_valid(self) -> None:
        """Check size and checksum.

        Raises:
            CorruptRecordError: the size or the checksum is wrong.
        """

    def to_bytes(self) -> bytes:
        """Return the stored bytes of the batch."""

    def __iter__(self) -> Iterator[Record]:
        """Iterate over the records."""

    def streaming_iterator(self, max_record_body_size: int = MAX_RECORD_BODY_SIZE) -> Iterator[Record]:
        """Iterate over the records; decompress no more than the caller consumes."""

    def offset_timestamps(
        self, max_record_body_size: int = MAX_RECORD_BODY_SIZE, *, streaming: bool = False
    ) -> Iterator[OffsetTimestamp]:
        """Yield offset and timestamp of each record; keys and values of large records are skipped, not loaded.

        Args:
            max_record_body_size: limit as in :meth:`streaming_iterator`; ignored unless ``streaming`` is True.
            streaming: True to raise the errors that :meth:`streaming_iterator` raises, at the same records; False to
                raise the errors of iteration.
        """


class Storage(NamedTuple):
    """Buffer that batches are stored in.

    Attributes:
        buffer: the bytes.
        in_file: True if the bytes are a file. In a file, Kafka reads 61 bytes of header even if the batch is shorter;
            in memory, it never reads past the batch.
        source: name of the buffer in errors.
        decompressor: codec libraries that read the records; kidx's libraries by default.
    """

    buffer: Buffer
    in_file: bool
    source: str
    decompressor: Decompressor | None = None


class StoredBatch(ABC):
    """Batch whose prefix has been read.

    Args:
        storage: the buffer that holds the batch.
        position: byte position of the batch in that buffer.
        size: total size of the batch in bytes, also as the attribute ``size_in_bytes``.
        magic: format of the batch, from the prefix.
    """

    __slots__ = ("_buffer", "_storage", "magic", "position", "size_in_bytes")

    def __init__(self, storage: Storage, position: int, size: int, magic: int) -> None:
        self._storage = storage
        self._buffer = storage.buffer
        self.position = position
        self.size_in_bytes = size
        self.magic = magic

    @property
    def source(self) -> str:
        """Name of the buffer in errors."""
        return self._storage.source

    @property
    @abstractmethod
    def last_offset(self) -> int:
        """Offset of the last record."""

    @property
    @abstractmethod
    def codec(self) -> Codec:
        """Compression codec of the records."""

    @property
    def next_offset(self) -> int:
        """Offset after the last."""
        return to_long(self.last_offset + 1)

    @property
    def is_compressed(self) -> bool:
        """True if the records are compressed."""
        return self.codec is not Codec.NONE

    def _bytes(self, start: int) -> bytes:
        """Return the bytes of the batch from ``start``, relative to its first byte, to its end."""
        data = self._buffer[self.position + start : self.position + self.size_in_bytes]
        if len(data) < self.size_in_bytes - start:
            raise RecordStreamError(f"Failed to load record batch at position {self.position} from {self.source}")
        return data if isinstance(data, bytes) else bytes(data)

    def _chunks(self, start: int) -> Iterator[bytes]:
        """Yield the bytes from ``start`` to the end; a large batch in several chunks."""
        if self.size_in_bytes <= _LARGE:
            yield self._bytes(start)
            return
        end = self.position + self.size_in_bytes
        for at in range(self.position + start, end, _LARGE):
            chunk = self._buffer[at : min(at + _LARGE, end)]
            if len(chunk) < min(_LARGE, end - at):
                raise RecordStreamError(f"Failed to load record batch at position {self.position} from {self.source}")
            yield chunk if isinstance(chunk, bytes) else bytes(chunk)

    def to_bytes(self) -> bytes:
        """Return the stored bytes of the batch."""
        return self._bytes(0)

    def __repr__(self) -> str:
        return f"{type(self).__name__}(position={self.position}, size_in_bytes={self.size_in_bytes})"
