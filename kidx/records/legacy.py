"""Messages of magic 0 and 1, the formats before Kafka 0.11 (``AbstractLegacyRecordBatch.java``, ``LegacyRecord.java``).

A message is a batch of one record. A message with a codec is only a *wrapper*: its value is a compressed set of inner
messages. The inner offsets are absolute in v0. In v1 they are relative to the first inner message, and the wrapper has
the offset of the last. If the broker set the wrapper's timestamp, this timestamp replaces the inner timestamps.
"""

from __future__ import annotations

import struct
import zlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal

from kidx.java_values import INT_MAX, to_int, to_long
from kidx.layout import (
    ATTRIBUTE_CODEC,
    ATTRIBUTE_LOG_APPEND_TIME,
    LOG_OVERHEAD,
    MESSAGE_OVERHEAD_V0,
    MESSAGE_V0,
    MESSAGE_V1,
    PREFIX,
    SIZE_FIELD,
)
from kidx.records.base import StoredBatch
from kidx.records.codecs import Codec, decompress
from kidx.records.errors import CorruptRecordError, InvalidArgumentError, InvalidRecordError, OutOfBoundsError
from kidx.records.offset_timestamps import OffsetTimestamp, all_before_first
from kidx.records.record import MAX_RECORD_BODY_SIZE, NO_SEQUENCE, NO_TIMESTAMP, Record, TimestampType

if TYPE_CHECKING:
    from collections.abc import Iterator

    from kidx.records.base import Storage

_MESSAGE_HEADER: Final = MESSAGE_V1.size - LOG_OVERHEAD
_OFFSET_AND_SIZE: Final = struct.Struct(">qi")
_SIZE: Final = struct.Struct(">i")
_CRC: Final = struct.Struct(">I")
_TIMESTAMP: Final = MESSAGE_V1.codec("timestamp")

# Positions within a message, that is, after the 12 bytes of offset and length.
_CRC_AT: Final = MESSAGE_V1.field("crc").offset - LOG_OVERHEAD
_MAGIC_AT: Final = PREFIX.field("magic").offset - LOG_OVERHEAD
_ATTRIBUTES_AT: Final = MESSAGE_V1.field("attributes").offset - LOG_OVERHEAD
_TIMESTAMP_AT: Final = MESSAGE_V1.field("timestamp").offset - LOG_OVERHEAD


@dataclass(frozen=True, slots=True)
class Message:
    """Bytes of one message from its checksum on, at least 14 (``LegacyRecord``).

    Attributes:
        wrapper_timestamp, wrapper_type: timestamp and timestamp type of the wrapper of a v1 message.
    """

    data: bytes
    wrapper_timestamp: int | None = None
    wrapper_type: TimestampType | None = None

    @property
    def magic(self) -> int:
        """Format of the message; signed, because files can hold anything."""
        magic = self.data[_MAGIC_AT]
        return magic - 256 if magic > 127 else magic

    @property
    def attributes(self) -> int:
        """Codec and timestamp type."""
        return self.data[_ATTRIBUTES_AT]

    @property
    def codec(self) -> Codec:
        """Compression codec of the value, if the message is a wrapper."""
        return Codec.for_id(self.attributes & ATTRIBUTE_CODEC)

    @property
    def timestamp_type(self) -> TimestampType:
        """Origin of the timestamp; a v1 message inside a wrapper has the wrapper's type."""
        if self.magic == 0:
            return TimestampType.NO_TIMESTAMP_TYPE
        if self.wrapper_type is not None:
            return self.wrapper_type
        if self.attributes & ATTRIBUTE_LOG_APPEND_TIME:
            return TimestampType.LOG_APPEND_TIME
        return TimestampType.CREATE_TIME

    @property
    def timestamp(self) -> int:
        """Timestamp in milliseconds, -1 in v0."""
        if self.magic == 0:
            return NO_TIMESTAMP
        if self.wrapper_timestamp is not None and self.wrapper_type is TimestampType.LOG_APPEND_TIME:
            return self.wrapper_timestamp
        return int(_TIMESTAMP.unpack_from(self.data, _TIMESTAMP_AT)[0])

    @property
    def crc(self) -> int:
        """Stored checksum, unsigned."""
        return int(_CRC.unpack_from(self.data, _CRC_AT)[0])

    @property
    def computed_crc(self) -> int:
        """CRC-32 computed over the bytes of the message."""
        return zlib.crc32(self.data[_MAGIC_AT:])

    @property
    def is_valid(self) -> bool:
        """True if the message has the minimum size and the right checksum."""
        return len(self.data) >= MESSAGE_OVERHEAD_V0 and self.crc == self.computed_crc

    @property
    def _key_size_at(self) -> int:
        return (MESSAGE_V0.size if self.magic == 0 else MESSAGE_V1.size) - LOG_OVERHEAD

    def _int_at(self, position: int) -> int:
        if not 0 <= position <= len(self.data) - SIZE_FIELD:
            raise OutOfBoundsError(f"a size at byte {position} of a message of {len(self.data)} bytes", None)
        return int(_SIZE.unpack_from(self.data, position)[0])

    def _sized_at(self, position: int) -> bytes | None:
        size = self._int_at(position)
        if size < 0:
            return None
        start = position + SIZE_FIELD
        if start + size > len(self.data):
            raise InvalidArgumentError(f"newLimit > capacity: ({size} > {len(self.data) - start})")
        return self.data[start : start + size]

    @property
    def key(self) -> bytes | None:
        """Key of the record.

        Raises:
            OutOfBoundsError, InvalidArgumentError: the size of the key is corrupt.
        """
        return self._sized_at(self._key_size_at)

    @property
    def has_key(self) -> bool:
        """True if the message has a key, of any length.

        Raises:
            OutOfBoundsError: the message ends before the size of the key.
        """
        return self._int_at(self._key_size_at) >= 0

    @property
    def value(self) -> bytes | None:
        """Value of the record.

        Raises:
            OutOfBoundsError, InvalidArgumentError: the size of the value, or of the key before it, is corrupt.
        """
        key_size = max(0, self._int_at(self._key_size_at))
        return self._sized_at(to_int(self._key_size_at + SIZE_FIELD + key_size))


class LegacyRecord(Record):
    """Record of v0 or v1, stored in a ``message``.

    Key and value are read on access, and errors in them are raised only then, as in Kafka.
    """

    __slots__ = ("message",)

    def __init__(self, offset: int, message: Message) -> None:
        super().__init__(
            offset,
            message.timestamp,
            size_in_bytes=LOG_OVERHEAD + len(message.data),
            attributes=message.attributes - 256 if message.attributes > 127 else message.attributes,
        )
        self.message = message

    @property
    def key(self) -> bytes | None:
        """Key, or None if the record has no key."""
        return self.message.key

    @property
    def value(self) -> bytes | None:
        """Value, or None in a tombstone."""
        return self.message.value


class LegacyRecordBatch(StoredBatch):
    """Batch of magic 0 or 1; see :class:`kidx.records.base.RecordBatch`.

    Kafka's file reader accepts any negative magic as this format; then everything except offsets and sizes fails.
    """

    __slots__ = ("_message", "last_offset")

    # Fields that these formats do not have.
    count: Final = None
    producer_id: Final = -1
    producer_epoch: Final = -1
    base_sequence: Final = NO_SEQUENCE
    last_sequence: Final = NO_SEQUENCE
    partition_leader_epoch: Final = -1
    is_transactional: Final = False
    is_control: Final = False
    delete_horizon_ms: Final = None

    last_offset: int
    """Offset of the message itself, which in a wrapper is the offset of the last inner message."""

    def __init__(self, storage: Storage, position: int, size: int, magic: int, offset: int) -> None:
        super().__init__(storage, position, size, magic)
        self.last_offset = offset
        self._message: Message | None = None

    @property
    def message(self) -> Message:
        """The message itself."""
        message = self._message
        if message is None:
            message = self._message = Message(self._bytes(LOG_OVERHEAD))
        return message

    def _header(self) -> Message:
        # To read only the header, Kafka must know its size. After Kafka has read the whole batch, it uses the batch.
        if self._message is None and self.magic not in (0, 1):
            raise InvalidArgumentError(f"Invalid magic used in LegacyRecord: {self.magic}")
        return self.message

    @property
    def base_offset(self) -> int:
        """Offset of the first record, for which a compressed batch must be read."""
        return next(self.offset_timestamps()).offset

    @property
    def crc(self) -> int:
        """Stored CRC-32, unsigned."""
        return self._header().crc

    @property
    def computed_crc(self) -> int:
        """CRC-32 computed over the bytes of the batch, unsigned."""
        return self.message.computed_crc

    @property
    def attributes(self) -> int:
        """Codec and timestamp type."""
        return self._header().attributes

    @property
    def base_timestamp(self) -> int:
        """Equal to ``max_timestamp``, because there are no deltas."""
        return self._header().timestamp

    @property
    def max_timestamp(self) -> int:
        """Timestamp of the message, which in a wrapper is the largest inside; -1 in v0 (RB-3)."""
        return self._header().timestamp

    @property
    def timestamp_type(self) -> TimestampType:
        """Origin of the timestamps: the producer or the broker."""
        return self._header().timestamp_type

    @property
    def codec(self) -> Codec:
        """Compression codec of the inner messages; NONE without inner messages.

        Raises:
            UnsupportedCodecError: Kafka has no codec with the id in the attributes.
        """
        return self._header().codec

    @property
    def is_valid(self) -> bool:
        """True if the checksum is right."""
        return self.message.is_valid

    def ensure_valid(self) -> None:
        """Check the checksum (``LegacyRecord.ensureValid``); the size was checked when the batch was found.

        Raises:
            CorruptRecordError: the checksum is wrong.
        """
        message = self.message
        if not message.is_valid:
            raise CorruptRecordError(
                f"Record is corrupt (stored crc = {message.crc}, computed crc = {message.computed_crc})"
            )

    def __iter__(self) -> Iterator[Record]:
        """Iterate over the records: the message itself, or the messages that it wraps.

        Raises:
            InvalidRecordError, CorruptRecordError: the inner messages are wrong.
            RecordStreamError: the compressed bytes are corrupt.
            InvalidArgumentError, OutOfBoundsError: codec or sizes are corrupt.
        """
        return self.streaming_iterator(INT_MAX)

    def streaming_iterator(self, max_record_body_size: int = MAX_RECORD_BODY_SIZE) -> Iterator[Record]:
        """Iterate over the records, as ``__iter__``: these formats must be decompressed entirely to know the offsets.

        Args:
            max_record_body_size: maximum size in bytes of an inner message (4.4).
        """
        if self.message.codec is Codec.NONE:
            return iter((LegacyRecord(self.last_offset, self.message),))
        return self._deep(max_record_body_size)

    def offset_timestamps(
        self, max_record_body_size: int = MAX_RECORD_BODY_SIZE, *, streaming: bool = False
    ) -> Iterator[OffsetTimestamp]:
        """See :meth:`kidx.records.base.RecordBatch.offset_timestamps`."""
        limit = max_record_body_size if streaming else INT_MAX
        records = iter(self) if self.message.codec is Codec.NONE else self._deep(limit, only_headers=True)
        yield from (OffsetTimestamp(record.offset, record.timestamp) for record in records)

    def _deep(self, max_record_body_size: int, *, only_headers: bool = False) -> Iterator[Record]:
        """Yield the inner records (``DeepRecordsIterator``), without key and value if ``only_headers`` is True."""
        magic = self._wrapper_magic()
        latest: list[int] = []

        def read() -> Iterator[tuple[int, Message]]:
            for offset, message in self._inner(max_record_body_size, only_headers=only_headers):
                latest[:] = [offset]
                yield offset, message

        inner = all_before_first(read, lambda item: len(item[1].data))
        if not latest:
            raise InvalidRecordError("Found invalid compressed record set with no inner records")
        base, last = 0, latest[0]
        if magic == 1 and self.last_offset != 0:  # some releases of librdkafka produced wrappers with offset 0
            if self.last_offset < last:
                raise InvalidRecordError(
                    f"Found invalid wrapper offset in compressed v1 message set, wrapper offset '{self.last_offset}' "
                    f"is less than the last inner message offset '{last}' and it is not zero."
                )
            base = self.last_offset - last
        for offset, message in inner:
            if message.codec is not Codec.NONE:
                raise InvalidRecordError("Inner messages must not be compressed")
            yield LegacyRecord(to_long(base + offset), message)

    def _wrapper_magic(self) -> Literal[0, 1]:
        if self.magic not in (0, 1):
            raise InvalidRecordError(f"Invalid wrapper magic found in legacy deep record iterator {self.magic}")
        if self.message.codec is Codec.ZSTD:
            raise InvalidRecordError(
                f"Invalid wrapper compressionType found in legacy deep record iterator {self.magic}"
            )
        return 1 if self.magic else 0

    def _inner(self, max_record_body_size: int, *, only_headers: bool) -> Iterator[tuple[int, Message]]:
        """Yield the inner messages, or only their first bytes, with their stored offsets."""
        wrapper = self.message
        value = wrapper.value
        if value is None:
            raise InvalidRecordError(f"Found invalid compressed record set with null value (magic = {self.magic})")
        source = decompress(wrapper.codec, value, self.magic, self._storage.decompressor)
        while True:
            head = source.read(_OFFSET_AND_SIZE.size)
            if len(head) < _OFFSET_AND_SIZE.size:
                return
            offset, size = _OFFSET_AND_SIZE.unpack(head)
            if size < MESSAGE_OVERHEAD_V0:
                raise CorruptRecordError(
                    f"Record size is less than the minimum record overhead ({MESSAGE_OVERHEAD_V0})"
                )
            if size > max_record_body_size:
                raise InvalidRecordError(
                    f"Invalid record size: {size} exceeds the configured maximum record size of {max_record_body_size}."
                )
            held = min(size, _MESSAGE_HEADER) if only_headers else size
            data = source.read(held)
            if len(data) < held or source.skip(size - held) < size - held:
                return  # a partial message at the end is ignored
            message = Message(data)
            if message.magic == 1:
                message = Message(data, wrapper.timestamp, wrapper.timestamp_type)
            yield offset, message
