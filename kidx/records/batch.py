"""Batches of magic 2, the format since Kafka 0.11 (``DefaultRecordBatch.java``)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple, cast

import google_crc32c

from kidx.java_numbers import to_long
from kidx.records.base import StoredBatch
from kidx.records.codecs import Codec, Reading, Source, decompress
from kidx.records.errors import (
    CorruptRecordError,
    InvalidArgumentError,
    InvalidRecordError,
    OutOfBoundsError,
    RecordCutError,
    RecordSizeError,
    RecordStreamError,
    StreamCutError,
)
from kidx.records.file_bytes import Buffer, unpack
from kidx.records.layout import (
    ATTRIBUTE_CODEC,
    ATTRIBUTE_CONTROL,
    ATTRIBUTE_DELETE_HORIZON,
    ATTRIBUTE_LOG_APPEND_TIME,
    ATTRIBUTE_TRANSACTIONAL,
    CHECKSUMMED_FROM,
    RECORD_BATCH,
    RECORD_BATCH_OVERHEAD,
)
from kidx.records.record import (
    MAX_RECORD_BODY_SIZE,
    NO_SEQUENCE,
    BatchContext,
    Record,
    TimestampType,
    increment_sequence,
    read_record,
)
from kidx.records.stamps import Item, Stamp, all_before_first, stamp_of
from kidx.records.varint import read_varint

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from kidx.records.base import Storage


class RecordBatchHeader(NamedTuple):
    """The fields of :data:`kidx.records.layout.RECORD_BATCH`, in its order."""

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


assert RecordBatchHeader._fields == tuple(field.name for field in RECORD_BATCH.fields), "the layout table leads"

_HEADER: Final = RECORD_BATCH.struct


class _ShortHeader:
    """The header of a batch shorter than one: a field is there, or reading it fails, each for itself."""

    def __init__(self, buffer: Buffer, position: int, end: int) -> None:
        self._buffer, self._position, self._end = buffer, position, end

    def __getattr__(self, name: str) -> Any:
        field = RECORD_BATCH.field(name)
        start = self._position + field.offset
        if start + field.size > self._end:
            raise OutOfBoundsError(f"the batch at position {self._position} ends before its field {name}", None)
        return unpack(RECORD_BATCH.codec(name), self._buffer, start)[0]


class DefaultRecordBatch(StoredBatch):
    """A v2 batch; see :class:`kidx.records.base.RecordBatch`.

    Kafka's file reader accepts any magic from 2 to 127 as this format, and batches too short to have a header; what
    then fails, fails when it is read.
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
        """The stored CRC-32C, unsigned."""
        return self._load().crc & 0xFFFF_FFFF

    @property
    def attributes(self) -> int:
        """The low byte of the attributes, the only one that Kafka looks at."""
        return self._load().attributes & 0xFF

    @property
    def last_offset(self) -> int:
        """Offset of the last record that ever was in the batch (RB-2)."""
        return to_long(self.base_offset + self._load().last_offset_delta)

    @property
    def base_timestamp(self) -> int:
        """What the timestamp deltas refer to; with a delete horizon, that horizon (RB-1)."""
        return self._load().base_timestamp

    @property
    def max_timestamp(self) -> int:
        """The largest timestamp, as the header has it (RB-3)."""
        return self._load().max_timestamp

    @property
    def timestamp_type(self) -> TimestampType:
        """What set the timestamps: the producer or the broker."""
        if self.attributes & ATTRIBUTE_LOG_APPEND_TIME:
            return TimestampType.LOG_APPEND_TIME
        return TimestampType.CREATE_TIME

    @property
    def codec(self) -> Codec:
        """How the records are compressed.

        Raises:
            UnsupportedCodecError: with a codec that Kafka does not have.
        """
        return Codec.for_id(self.attributes & ATTRIBUTE_CODEC)

    @property
    def count(self) -> int:
        """Records in the batch, as the header has it."""
        return self._load().record_count

    @property
    def producer_id(self) -> int:
        """The producer, -1 if unknown."""
        return self._load().producer_id

    @property
    def producer_epoch(self) -> int:
        """Its epoch, -1 if unknown."""
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
        """Whether it belongs to a transaction."""
        return bool(self.attributes & ATTRIBUTE_TRANSACTIONAL)

    @property
    def is_control(self) -> bool:
        """Whether it holds control records."""
        return bool(self.attributes & ATTRIBUTE_CONTROL)

    @property
    def delete_horizon_ms(self) -> int | None:
        """When its tombstones may go; None without the flag. Kafka before 3.1.0 does not know the flag."""
        return self.base_timestamp if self.attributes & ATTRIBUTE_DELETE_HORIZON else None

    @property
    def computed_crc(self) -> int:
        """The CRC-32C that the batch should have, unsigned."""
        crc = 0
        for piece in self._pieces(CHECKSUMMED_FROM):
            crc = google_crc32c.extend(crc, piece)
        return int(crc)

    @property
    def is_valid(self) -> bool:
        """Whether the batch has room for its header and its checksum is right."""
        return self.size_in_bytes >= RECORD_BATCH_OVERHEAD and self.crc == self.computed_crc

    def ensure_valid(self) -> None:
        """Check size and checksum (``DefaultRecordBatch.ensureValid``).

        Raises:
            CorruptRecordError: the size is below 61, or the checksum wrong.
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
        """The records (``DefaultRecordBatch.iterator``).

        Raises:
            InvalidRecordError: the number of records, or a record, is wrong.
            RecordStreamError: the compressed bytes are damaged.
            InvalidArgumentError: the codec is unknown, or a record's size is a varint without an end.
        """
        if self.size_in_bytes < RECORD_BATCH_OVERHEAD:  # Kafka loads the batch as a whole and misses the count
            raise OutOfBoundsError(f"the batch at position {self.position} ends before its record count", None)
        if self.count == 0:
            return iter(())
        if self.is_compressed:
            return all_before_first(
                lambda: self._compressed(MAX_RECORD_BODY_SIZE, _record_of), lambda record: record.size_in_bytes
            )
        return self._uncompressed()

    def streaming_iterator(self, max_record_body_size: int = MAX_RECORD_BODY_SIZE) -> Iterator[Record]:
        """The records, decompressed only as far as they are taken (``streamingIterator``; FR-1 in 4.4).

        Args:
            max_record_body_size: bytes that a decompressed record may have (4.4).

        Raises:
            InvalidRecordError: as in iteration, or a record is larger than that.
            RecordStreamError: the compressed bytes are damaged.
            InvalidArgumentError: the codec is unknown, or a record's size is a varint without an end.
        """
        if self.size_in_bytes < RECORD_BATCH_OVERHEAD:
            end = self.position + self.size_in_bytes
            Codec.for_id(_ShortHeader(self._buffer, self.position, end).attributes & ATTRIBUTE_CODEC)
            raise InvalidArgumentError(f"newPosition > limit: ({RECORD_BATCH_OVERHEAD} > {self.size_in_bytes})")
        return self._compressed(max_record_body_size, _record_of) if self.is_compressed else self._uncompressed()

    def stamps(self, max_record_body_size: int = MAX_RECORD_BODY_SIZE, *, streaming: bool = False) -> Iterator[Stamp]:
        """See :meth:`kidx.records.base.RecordBatch.stamps`."""
        whole = self.size_in_bytes >= RECORD_BATCH_OVERHEAD
        if not whole or (not streaming and self.count == 0) or not self.is_compressed:
            records = self.streaming_iterator(max_record_body_size) if streaming else iter(self)
            yield from (Stamp(record.offset, record.timestamp) for record in records)
        elif streaming:
            yield from self._compressed(max_record_body_size, stamp_of)
        else:
            yield from all_before_first(lambda: self._compressed(MAX_RECORD_BODY_SIZE, stamp_of), lambda _: 0)

    def _start_reading(self) -> tuple[int, BatchContext]:
        header = self._load()
        count = header.record_count
        if count < 0:
            raise InvalidRecordError(f"Found invalid record count {count} in magic v{self.magic} batch")
        stamped = self.timestamp_type is TimestampType.LOG_APPEND_TIME
        return count, BatchContext(
            self.base_offset, header.base_timestamp, header.base_sequence, header.max_timestamp if stamped else None
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
            except RecordCutError as error:
                error.was_null = number < count or position == len(data)
                raise
            if number == count and position != len(data):
                raise InvalidRecordError("Incorrect declared batch size, records still remaining in file")
            yield record

    def _compressed(self, largest: int, read: Callable[[Source, int, BatchContext], Item]) -> Iterator[Item]:
        return self.decompressed(
            lambda source, context: read(source, _size_of_next(source, largest), context), Reading.RECORDS
        )

    def decompressed(self, read: Callable[[Source, BatchContext], Item], reading: Reading) -> Iterator[Item]:
        """What ``read`` makes of the bytes of each record, size first, of a compressed batch of at least 61 bytes.

        Args:
            read: takes the bytes of a record.
            reading: how it takes them.

        Raises:
            InvalidRecordError: the number of records is negative, or bytes are left behind them.
            RecordStreamError: the compressed bytes are damaged.
        """
        # Kafka opens the stream before it looks at the count.
        data, library = self._bytes(RECORD_BATCH_OVERHEAD), self._storage.decompressor
        source = decompress(self.codec, data, self.magic, library, reading=reading)
        count, context = self._start_reading()
        for number in range(1, count + 1):
            try:
                record = read(source, context)
            except RecordStreamError as error:
                said = _in_words(error, "Failed to decompress record stream")
                if isinstance(said, StreamCutError):
                    said.in_record = True
                raise said from error
            if number == count:
                _check_end(source)
            yield record


def _check_end(source: Source) -> None:
    try:
        at_end = source.at_end()
    except RecordStreamError as error:
        raise _in_words(error, "Error checking for remaining bytes after reading batch") from error
    if not at_end:
        raise InvalidRecordError("Incorrect declared batch size, records still remaining in file")


def _in_words(error: RecordStreamError, kafka_message: str) -> RecordStreamError:
    """What Kafka makes of an error in a compressed stream; one with words of its own is not an IOException there."""
    if error.kafka_message is not None:
        return error
    return type(error)(f"{kafka_message}: {error}", kafka_message)


def _size_of_next(source: Source, max_record_body_size: int) -> int:
    """The size that stands before a record, of a ``DefaultRecord.readFrom(InputStream, …)``."""
    premature = "Incorrect declared batch size, premature EOF reached"
    try:
        size = source.read_varint()
    except InvalidArgumentError as error:
        raise RecordSizeError(premature, str(error)) from error
    except EOFError as error:
        raise InvalidRecordError(premature) from error
    if size < 0:  # the text of 4.4 speaks of a negative size
        raise RecordSizeError(premature, f"capacity < 0: ({size} < 0)")
    if size > max_record_body_size:
        raise InvalidRecordError(
            f"Invalid record size: {size} exceeds the configured maximum record size of {max_record_body_size}."
        )
    return size


def _record_of(source: Source, size: int, context: BatchContext) -> Record:
    """The rest of it."""
    body = source.read(size)
    if len(body) < size:
        raise InvalidRecordError(
            f"Invalid record size: expected {size} bytes in record payload, but the record payload reached EOF."
        )
    return read_record(body, 0, size, context)[0]
