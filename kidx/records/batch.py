"""Batches of magic 2, the format since Kafka 0.11 (``DefaultRecordBatch.java``)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple, cast

import google_crc32c

from kidx.java_values import to_long
from kidx.layout import (
    ATTRIBUTE_CODEC,
    ATTRIBUTE_CONTROL,
    ATTRIBUTE_DELETE_HORIZON,
    ATTRIBUTE_LOG_APPEND_TIME,
    ATTRIBUTE_TRANSACTIONAL,
    CHECKSUMMED_FROM,
    RECORD_BATCH,
    RECORD_BATCH_OVERHEAD,
)
from kidx.records.base import StoredBatch
from kidx.records.codecs import ChunkReader, Codec, ReadMode, decompress
from kidx.records.errors import (
    CorruptRecordError,
    InvalidArgumentError,
    InvalidRecordError,
    OutOfBoundsError,
    RecordSizeError,
    RecordStreamError,
    TruncatedRecordError,
    TruncatedStreamError,
)
from kidx.records.file_bytes import Buffer, unpack
from kidx.records.offset_timestamps import Item, OffsetTimestamp, all_before_first, offset_timestamp_of
from kidx.records.record import (
    MAX_RECORD_BODY_SIZE,
    NO_SEQUENCE,
    BatchContext,
    Record,
    TimestampType,
    increment_sequence,
    read_record,
)
from kidx.records.varint import read_varint

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from kidx.records.base import Storage


class RecordBatchHeader(NamedTuple):
    """Fields of the header, in the order of :data:`kidx.layout.RECORD_BATCH`, which explains them."""

    base_offset: int
    length: int
    partition_leader_epoch: int
    magic: int
    crc: int
    attributes: int
    last_offset_delta: int
    base_timestamp: int
    max_timestamp: int
    producer_id: int
    producer_epoch: int
    base_sequence: int
    record_count: int


assert RecordBatchHeader._fields == tuple(field.name for field in RECORD_BATCH.fields), "must follow the layout table"

_HEADER: Final = RECORD_BATCH.struct


class _ShortHeader:
    """Header of a batch shorter than 61 bytes: each field is read separately and raises if it is missing."""

    def __init__(self, buffer: Buffer, position: int, end: int) -> None:
        self._buffer, self._position, self._end = buffer, position, end

    def __getattr__(self, name: str) -> Any:
        field = RECORD_BATCH.field(name)
        start = self._position + field.offset
        if start + field.size > self._end:
            raise OutOfBoundsError(f"the batch at position {self._position} ends before its field {name}", None)
        return unpack(RECORD_BATCH.codec(name), self._buffer, start)[0]


class DefaultRecordBatch(StoredBatch):
    """Batch of magic 2; see :class:`kidx.records.base.RecordBatch`.

    Kafka's file reader accepts any magic from 2 to 127 as this format, and batches too short to have a header. Such a
    batch fails only when the missing part is read.
    """

    __slots__ = ("_header", "base_offset")

    def __init__(self, storage: Storage, position: int, size: int, magic: int, offset: int) -> None:
        super().__init__(storage, position, size, magic)
        self.base_offset = offset
        self._header: RecordBatchHeader | None = None

    def _load(self) -> RecordBatchHeader:
        header = self._header
        if header is None:
            if self._storage.in_file and self.position + RECORD_BATCH_OVERHEAD > len(self._buffer):
                raise RecordStreamError(f"Failed to load record batch at position {self.position} from {self.source}")
            if not self._storage.in_file and self.size_in_bytes < RECORD_BATCH_OVERHEAD:
                end = self.position + self.size_in_bytes
                header = cast("RecordBatchHeader", _ShortHeader(self._buffer, self.position, end))
            else:
                header = RecordBatchHeader._make(unpack(_HEADER, self._buffer, self.position))
            self._header = header
        return header

    @property
    def crc(self) -> int:
        """Stored CRC-32C, unsigned."""
        return self._load().crc & 0xFFFF_FFFF

    @property
    def attributes(self) -> int:
        """Low byte of the attributes, the only one that Kafka reads."""
        return self._load().attributes & 0xFF

    @property
    def last_offset(self) -> int:
        """Offset of the last record that the batch held before any compaction (RB-2)."""
        return to_long(self.base_offset + self._load().last_offset_delta)

    @property
    def base_timestamp(self) -> int:
        """Base of the timestamp deltas; with a delete horizon, that horizon (RB-1)."""
        return self._load().base_timestamp

    @property
    def max_timestamp(self) -> int:
        """Largest timestamp, as stored in the header (RB-3)."""
        return self._load().max_timestamp

    @property
    def timestamp_type(self) -> TimestampType:
        """Origin of the timestamps: the producer or the broker."""
        if self.attributes & ATTRIBUTE_LOG_APPEND_TIME:
            return TimestampType.LOG_APPEND_TIME
        return TimestampType.CREATE_TIME

    @property
    def codec(self) -> Codec:
        """Compression codec of the records.

        Raises:
            UnsupportedCodecError: Kafka has no codec with the id in the attributes.
        """
        return Codec.for_id(self.attributes & ATTRIBUTE_CODEC)

    @property
    def count(self) -> int:
        """Number of records, as stored in the header."""
        return self._load().record_count

    @property
    def producer_id(self) -> int:
        """Producer id, -1 if unknown."""
        return self._load().producer_id

    @property
    def producer_epoch(self) -> int:
        """Producer epoch, -1 if unknown."""
        return self._load().producer_epoch

    @property
    def base_sequence(self) -> int:
        """Sequence number of the first record, -1 if unknown."""
        return self._load().base_sequence

    @property
    def last_sequence(self) -> int:
        """Sequence number of the last record, -1 if unknown."""
        header = self._load()
        if header.base_sequence == NO_SEQUENCE:
            return NO_SEQUENCE
        return increment_sequence(header.base_sequence, header.last_offset_delta)

    @property
    def partition_leader_epoch(self) -> int:
        """Epoch of the leader that appended the batch, -1 if unknown."""
        return self._load().partition_leader_epoch

    @property
    def is_transactional(self) -> bool:
        """True if the batch belongs to a transaction."""
        return bool(self.attributes & ATTRIBUTE_TRANSACTIONAL)

    @property
    def is_control(self) -> bool:
        """True if the batch holds control records."""
        return bool(self.attributes & ATTRIBUTE_CONTROL)

    @property
    def delete_horizon_ms(self) -> int | None:
        """Time in milliseconds from which its tombstones may be deleted, or None without the flag (3.1.0 and later)."""
        return self.base_timestamp if self.attributes & ATTRIBUTE_DELETE_HORIZON else None

    @property
    def computed_crc(self) -> int:
        """CRC-32C computed over the bytes of the batch, unsigned."""
        crc = 0
        for chunk in self._chunks(CHECKSUMMED_FROM):
            crc = google_crc32c.extend(crc, chunk)
        return int(crc)

    @property
    def is_valid(self) -> bool:
        """True if the batch is at least as long as its header and its checksum is right."""
        return self.size_in_bytes >= RECORD_BATCH_OVERHEAD and self.crc == self.computed_crc

    def ensure_valid(self) -> None:
        """Check size and checksum (``DefaultRecordBatch.ensureValid``).

        Raises:
            CorruptRecordError: the size is below 61, or the checksum is wrong.
        """
        if self.size_in_bytes < RECORD_BATCH_OVERHEAD:
            raise CorruptRecordError(
                f"Record batch is corrupt (the size {self.size_in_bytes} is smaller than the minimum allowed "
                f"overhead {RECORD_BATCH_OVERHEAD})"
            )
        computed = self.computed_crc
        if computed != self.crc:
            raise CorruptRecordError(f"Record is corrupt (stored crc = {self.crc}, computed crc = {computed})")

    def __iter__(self) -> Iterator[Record]:
        """Iterate over the records (``DefaultRecordBatch.iterator``).

        Raises:
            InvalidRecordError: the number of records, or a record, is wrong.
            RecordStreamError: the compressed bytes are corrupt.
            InvalidArgumentError: the codec is unknown, or the varint of a record's size does not end.
        """
        if self.size_in_bytes < RECORD_BATCH_OVERHEAD:  # Kafka loads the whole batch and then fails on the count
            raise OutOfBoundsError(f"the batch at position {self.position} ends before its record count", None)
        if self.count == 0:
            return iter(())
        if self.is_compressed:
            return all_before_first(
                lambda: self._compressed(MAX_RECORD_BODY_SIZE, _record_of), lambda record: record.size_in_bytes
            )
        return self._uncompressed()

    def streaming_iterator(self, max_record_body_size: int = MAX_RECORD_BODY_SIZE) -> Iterator[Record]:
        """Iterate over the records; decompress no more than the caller consumes (``streamingIterator``; FR-1 in 4.4).

        Args:
            max_record_body_size: maximum size in bytes of a decompressed record (4.4).

        Raises:
            InvalidRecordError: the number of records is wrong, or a record is, or exceeds the maximum size.
            RecordStreamError: the compressed bytes are corrupt.
            InvalidArgumentError: the codec is unknown, or the varint of a record's size does not end.
        """
        if self.size_in_bytes < RECORD_BATCH_OVERHEAD:
            end = self.position + self.size_in_bytes
            Codec.for_id(_ShortHeader(self._buffer, self.position, end).attributes & ATTRIBUTE_CODEC)
            raise InvalidArgumentError(f"newPosition > limit: ({RECORD_BATCH_OVERHEAD} > {self.size_in_bytes})")
        return self._compressed(max_record_body_size, _record_of) if self.is_compressed else self._uncompressed()

    def offset_timestamps(
        self, max_record_body_size: int = MAX_RECORD_BODY_SIZE, *, streaming: bool = False
    ) -> Iterator[OffsetTimestamp]:
        """See :meth:`kidx.records.base.RecordBatch.offset_timestamps`."""
        whole = self.size_in_bytes >= RECORD_BATCH_OVERHEAD
        if not whole or (not streaming and self.count == 0) or not self.is_compressed:
            records = self.streaming_iterator(max_record_body_size) if streaming else iter(self)
            yield from (OffsetTimestamp(record.offset, record.timestamp) for record in records)
        elif streaming:
            yield from self._compressed(max_record_body_size, offset_timestamp_of)
        else:
            yield from all_before_first(
                lambda: self._compressed(MAX_RECORD_BODY_SIZE, offset_timestamp_of), lambda _: 0
            )

    def _start_reading(self) -> tuple[int, BatchContext]:
        header = self._load()
        count = header.record_count
        if count < 0:
            raise InvalidRecordError(f"Found invalid record count {count} in magic v{self.magic} batch")
        by_broker = self.timestamp_type is TimestampType.LOG_APPEND_TIME
        return count, BatchContext(
            self.base_offset, header.base_timestamp, header.base_sequence, header.max_timestamp if by_broker else None
        )

    def _uncompressed(self) -> Iterator[Record]:
        count, context = self._start_reading()
        data = self._bytes(RECORD_BATCH_OVERHEAD)
        position = 0
        for number in range(1, count + 1):
            try:
                size, position = read_varint(data, position)
            except IndexError:
                raise InvalidRecordError("Incorrect declared batch size, premature EOF reached") from None
            try:
                record, position = read_record(data, position, size, context)
            except TruncatedRecordError as error:
                error.was_null = number < count or position == len(data)
                raise
            if number == count and position != len(data):
                raise InvalidRecordError("Incorrect declared batch size, records still remaining in file")
            yield record

    def _compressed(self, largest: int, read: Callable[[ChunkReader, int, BatchContext], Item]) -> Iterator[Item]:
        return self.read_decompressed(
            lambda source, context: read(source, _size_of_next(source, largest), context), ReadMode.RECORDS
        )

    def read_decompressed(self, read: Callable[[ChunkReader, BatchContext], Item], mode: ReadMode) -> Iterator[Item]:
        """Yield the results of ``read`` for the records of a compressed batch of at least 61 bytes.

        Args:
            read: function that takes the bytes of one record, its size first, from the source.
            mode: the way in which ``read`` takes the bytes.

        Raises:
            InvalidRecordError: the number of records is negative, or bytes remain after the last.
            RecordStreamError: the compressed bytes are corrupt.
        """
        # Kafka opens the stream before it checks the count.
        data, library = self._bytes(RECORD_BATCH_OVERHEAD), self._storage.decompressor
        source = decompress(self.codec, data, self.magic, library, mode=mode)
        count, context = self._start_reading()
        for number in range(1, count + 1):
            try:
                record = read(source, context)
            except RecordStreamError as error:
                kafka_error = _as_kafka_raises(error, "Failed to decompress record stream")
                if isinstance(kafka_error, TruncatedStreamError):
                    kafka_error.in_record = True
                raise kafka_error from error
            if number == count:
                _check_end(source)
            yield record


def _check_end(source: ChunkReader) -> None:
    try:
        at_end = source.at_end()
    except RecordStreamError as error:
        raise _as_kafka_raises(error, "Error checking for remaining bytes after reading batch") from error
    if not at_end:
        raise InvalidRecordError("Incorrect declared batch size, records still remaining in file")


def _as_kafka_raises(error: RecordStreamError, kafka_message: str) -> RecordStreamError:
    """Return Kafka's exception for an error in a compressed stream; an error with Kafka's message is unchanged."""
    if error.kafka_message is not None:
        return error
    return type(error)(f"{kafka_message}: {error}", kafka_message)


def _size_of_next(source: ChunkReader, max_record_body_size: int) -> int:
    """Return the size that precedes a record (``DefaultRecord.readFrom(InputStream, …)``)."""
    premature = "Incorrect declared batch size, premature EOF reached"
    try:
        size = source.read_varint()
    except InvalidArgumentError as error:
        raise RecordSizeError(premature, str(error)) from error
    except EOFError as error:
        raise InvalidRecordError(premature) from error
    if size < 0:  # the message of 4.4 is about a negative size
        raise RecordSizeError(premature, f"capacity < 0: ({size} < 0)")
    if size > max_record_body_size:
        raise InvalidRecordError(
            f"Invalid record size: {size} exceeds the configured maximum record size of {max_record_body_size}."
        )
    return size


def _record_of(source: ChunkReader, size: int, context: BatchContext) -> Record:
    """Return the record of ``size`` bytes that follows its size."""
    body = source.read(size)
    if len(body) < size:
        raise InvalidRecordError(
            f"Invalid record size: expected {size} bytes in record payload, but the record payload reached EOF."
        )
    return read_record(body, 0, size, context)[0]
