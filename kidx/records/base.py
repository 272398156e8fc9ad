"""What batches of every magic have in common (``RecordBatch.java``)."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

from kidx.java_numbers import to_long
from kidx.records.codecs import Codec
from kidx.records.errors import RecordStreamError
from kidx.records.record import MAX_RECORD_BODY_SIZE, Record, TimestampType

if TYPE_CHECKING:
    from collections.abc import Iterator

    from kidx.dialect import Decompressor
    from kidx.records.file_bytes import Buffer
    from kidx.records.stamps import Stamp


_LARGE: Final = 1 << 24
"""Bytes of a batch that are held at once where it is only read through."""


class RecordBatch(Protocol):
    """One batch, decoded as far as it is asked for.

    Any access to a damaged batch can raise what Kafka raises there, always a :class:`kidx.errors.KidxError`.
    Iterating gives the records in file order; compressed ones are all read before the first is given, as in Kafka; if
    they are too many to be held, they are then read a second time.
    """

    @property
    def position(self) -> int:
        """Byte position of its first byte in the buffer or file."""

    @property
    def size_in_bytes(self) -> int:
        """All its bytes, the length field's 12 included (RB-2)."""

    @property
    def magic(self) -> int:
        """The format: 0, 1 or 2."""

    @property
    def base_offset(self) -> int:
        """Offset of the first record. Of a compressed v0 or v1 batch, found by reading the records."""

    @property
    def last_offset(self) -> int:
        """Offset of the last record, also after compaction removed it (RB-2)."""

    @property
    def next_offset(self) -> int:
        """The offset after the last."""

    @property
    def crc(self) -> int:
        """The stored checksum, unsigned 32 bits."""

    @property
    def max_timestamp(self) -> int:
        """Largest timestamp, milliseconds: header (v2), wrapper or record (v1), -1 (v0) (RB-3)."""

    @property
    def timestamp_type(self) -> TimestampType:
        """What set the timestamps: the producer or the broker."""

    @property
    def codec(self) -> Codec:
        """How the records are compressed."""

    @property
    def is_compressed(self) -> bool:
        """Whether they are."""

    @property
    def count(self) -> int | None:
        """Records in the batch; None in v0 and v1, whose header does not say."""

    @property
    def producer_id(self) -> int:
        """The producer, -1 if unknown."""

    @property
    def producer_epoch(self) -> int:
        """Its epoch, -1 if unknown."""

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
        """Whether it belongs to a transaction."""

    @property
    def is_control(self) -> bool:
        """Whether it holds control records."""

    @property
    def delete_horizon_ms(self) -> int | None:
        """When its tombstones may go, milliseconds; None if compaction has not set it (3.1.0 and later)."""

    @property
    def is_valid(self) -> bool:
        """Whether size and checksum are right."""

    def ensure_valid(self) -> None:
        """Check size and checksum.

        Raises:
            CorruptRecordError: one of them is wrong.
        """

    def to_bytes(self) -> bytes:
        """The batch as it is stored."""

    def __iter__(self) -> Iterator[Record]:
        """The records."""

    def streaming_iterator(self, max_record_body_size: int = MAX_RECORD_BODY_SIZE) -> Iterator[Record]:
        """The records, decompressed only as far as they are taken."""

    def stamps(self, max_record_body_size: int = MAX_RECORD_BODY_SIZE, *, streaming: bool = False) -> Iterator[Stamp]:
        """Offset and timestamp of each record; of large ones keys and values are passed over and not held.

        Args:
            max_record_body_size: as of :meth:`streaming_iterator`; counts only if ``streaming``.
            streaming: refuses what :meth:`streaming_iterator` refuses, and when it does; else as iteration.
        """


class Storage(NamedTuple):
    """What batches lie in.

    Attributes:
        buffer: the bytes.
        in_file: whether they are a file: there Kafka reads 61 bytes of header even of a batch that is shorter, and in
            memory never beyond the batch.
        source: what to call the buffer in errors.
        decompressor: the codec libraries that read the records; those of kidx by default.
    """

    buffer: Buffer
    in_file: bool
    source: str
    decompressor: Decompressor | None = None


class StoredBatch(ABC):
    """A batch whose prefix is read already.

    Args:
        storage: what it lies in.
        position: its first byte there.
        size: all its bytes.
        magic: from the prefix.
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
        """What errors call the buffer."""
        return self._storage.source

    @property
    @abstractmethod
    def last_offset(self) -> int:
        """Offset of the last record."""

    @property
    @abstractmethod
    def codec(self) -> Codec:
        """How the records are compressed."""

    @property
    def next_offset(self) -> int:
        """The offset after the last."""
        return to_long(self.last_offset + 1)

    @property
    def is_compressed(self) -> bool:
        """Whether the records are compressed."""
        return self.codec is not Codec.NONE

    def _bytes(self, start: int) -> bytes:
        """The batch's bytes from ``start``, counted from its first, to its end."""
        data = self._buffer[self.position + start : self.position + self.size_in_bytes]
        if len(data) < self.size_in_bytes - start:
            raise RecordStreamError(f"Failed to load record batch at position {self.position} from {self.source}")
        return data if isinstance(data, bytes) else bytes(data)

    def _pieces(self, start: int) -> Iterator[bytes]:
        """The same, a few at a time if the batch is large."""
        if self.size_in_bytes <= _LARGE:
            yield self._bytes(start)
            return
        end = self.position + self.size_in_bytes
        for at in range(self.position + start, end, _LARGE):
            piece = self._buffer[at : min(at + _LARGE, end)]
            if len(piece) < min(_LARGE, end - at):
                raise RecordStreamError(f"Failed to load record batch at position {self.position} from {self.source}")
            yield piece if isinstance(piece, bytes) else bytes(piece)

    def to_bytes(self) -> bytes:
        """The batch as it is stored."""
        return self._bytes(0)

    def __repr__(self) -> str:
        return f"{type(self).__name__}(position={self.position}, size_in_bytes={self.size_in_bytes})"
