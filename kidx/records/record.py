"""Record of a v2 batch, also a control record: its fields, and how it is read and written."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from enum import IntEnum
from typing import TYPE_CHECKING, Final, NamedTuple

from kidx.java_values import INT_MAX, java_text, to_int, to_long
from kidx.records.errors import InvalidArgumentError, InvalidRecordError, TruncatedHeaderError, TruncatedRecordError
from kidx.records.varint import read_varint, read_varlong, size_of_varint, write_varint, write_varlong

if TYPE_CHECKING:
    from collections.abc import Sequence

    from kidx.dialect import Dialect

NO_TIMESTAMP: Final = -1
NO_PRODUCER_ID: Final = -1
NO_PRODUCER_EPOCH: Final = -1
NO_SEQUENCE: Final = -1
NO_PARTITION_LEADER_EPOCH: Final = -1

MAX_RECORD_BODY_SIZE: Final = (1 << 31) - 9
"""Maximum size in bytes of one decompressed record, Kafka 4.4's ``max.decompressed.message.bytes`` (FR-1)."""

Header = tuple[str, bytes | None]
_KEY: Final = struct.Struct(">hh")  # version, type
_MARKER: Final = struct.Struct(">hi")  # version, coordinator epoch


class TimestampType(IntEnum):
    """Origin of the timestamps of a batch (``TimestampType.java``)."""

    NO_TIMESTAMP_TYPE = -1
    """No timestamps (v0)."""
    CREATE_TIME = 0
    """Set by the producer, or by the application that uses it."""
    LOG_APPEND_TIME = 1
    """Set by the broker when it appended the batch."""

    @property
    def label(self) -> str:
        """Kafka's name of the type, as in ``message.timestamp.type`` and in dumps: ``CreateTime`` and so on."""
        return ("NoTimestampType", "CreateTime", "LogAppendTime")[self + 1]


class SimpleRecord(NamedTuple):
    """Record without an offset (``SimpleRecord.java``): builders take these, or plain tuples of this form."""

    timestamp: int
    """Milliseconds since the epoch, or -1."""
    key: bytes | None = None
    value: bytes | None = None
    headers: Sequence[Header] = ()


class Record:
    """Record read from a batch.

    Attributes:
        offset: absolute offset.
        timestamp: milliseconds since the epoch, or -1. With LogAppendTime it is the timestamp of the batch (RB-3).
        key, value: the bytes, or None.
        headers: the headers in file order; keys may repeat. Malformed UTF-8 in a key reads as U+FFFD, as in Java.
        sequence: the producer's sequence number, or -1.
        size_in_bytes: size on disk; in a compressed batch, size before compression.
        attributes: attributes of the record itself, unused so far.
    """

    __slots__ = ("_key", "_value", "attributes", "headers", "offset", "sequence", "size_in_bytes", "timestamp")

    def __init__(
        self,
        offset: int,
        timestamp: int,
        key: bytes | None = None,
        value: bytes | None = None,
        *,
        headers: tuple[Header, ...] = (),
        sequence: int = NO_SEQUENCE,
        size_in_bytes: int = 0,
        attributes: int = 0,
    ) -> None:
        self.offset = offset
        self.timestamp = timestamp
        self._key = key
        self._value = value
        self.headers = headers
        self.sequence = sequence
        self.size_in_bytes = size_in_bytes
        self.attributes = attributes

    @property
    def key(self) -> bytes | None:
        """Key, or None if the record has no key."""
        return self._key

    @property
    def value(self) -> bytes | None:
        """Value, or None in a tombstone."""
        return self._value

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Record):
            return NotImplemented
        return (
            self.offset == other.offset
            and self.timestamp == other.timestamp
            and self.key == other.key
            and self.value == other.value
            and self.headers == other.headers
            and self.sequence == other.sequence
        )

    def __hash__(self) -> int:
        return hash((self.offset, self.timestamp, self.sequence))

    def __repr__(self) -> str:
        return (
            f"{type(self).__name__}(offset={self.offset}, timestamp={self.timestamp}, key={self.key!r}, "
            f"value={self.value!r}, headers={self.headers!r}, sequence={self.sequence})"
        )


def increment_sequence(sequence: int, increment: int) -> int:
    """Return the sequence number ``increment`` records later; 2**31 - 1 is followed by 0 (``incrementSequence``)."""
    if sequence > to_int(INT_MAX - increment):
        return to_int(increment - (INT_MAX - sequence) - 1)
    return to_int(sequence + increment)


class BatchContext(NamedTuple):
    """Fields of a batch that reading its records needs."""

    base_offset: int
    base_timestamp: int  # milliseconds
    base_sequence: int  # sequence number of the first record, or -1
    log_append_time: int | None
    """Timestamp of every record if the broker set the batch's timestamps, otherwise None."""


def _read_bytes(data: bytes, position: int, size: int) -> tuple[bytes | None, int]:
    """Return the bytes as ``Utils.readBytes`` does: None for any negative size.

    Raises:
        IndexError: ``data`` ends first.
    """
    if size < 0:
        return None, position
    end = position + size
    if end > len(data):
        raise IndexError
    return data[position:end], end


def _read_headers(data: bytes, position: int, count: int) -> tuple[tuple[Header, ...], int]:
    headers: list[Header] = []
    for _ in range(count):
        size, position = read_varint(data, position)
        if size < 0:
            raise InvalidRecordError(f"Invalid negative header key size {size}")
        if size > len(data) - position:
            raise TruncatedHeaderError("Found invalid record structure")
        key, position = _read_bytes(data, position, size)
        size, position = read_varint(data, position)
        value, position = _read_bytes(data, position, size)
        headers.append((java_text(key or b""), value))
    return tuple(headers), position


def is_header_cut(data: bytes, position: int, count: int) -> bool:
    """Return True if reading more headers than fit, as Kafka before 2.8 does, ends in a truncated header."""
    try:
        _read_headers(data, position, count)
    except TruncatedHeaderError:
        return True
    except (IndexError, InvalidArgumentError, InvalidRecordError):
        pass
    return False


def read_record(data: bytes, start: int, size: int, context: BatchContext) -> tuple[Record, int]:
    """Return the record whose attributes are at ``start``, and the position after it (``DefaultRecord.readFrom``).

    Args:
        data: the records of an uncompressed batch, or the bytes of this one record.
        start: position after the record's size.
        size: number of bytes that the record claims to have. A field that exceeds it is an error only at the end.

    Raises:
        InvalidRecordError: the size or structure of the record is wrong.
    """
    if len(data) - start < size:
        raise TruncatedRecordError(
            f"Invalid record size: expected {size} bytes in record payload, but instead the buffer has only "
            f"{len(data) - start} remaining bytes."
        )
    try:
        attributes = data[start]
        timestamp_delta, position = read_varlong(data, start + 1)
        offset_delta, position = read_varint(data, position)
        key_size, position = read_varint(data, position)
        key, position = _read_bytes(data, position, key_size)
        value_size, position = read_varint(data, position)
        value, position = _read_bytes(data, position, value_size)
        count, position = read_varint(data, position)
        if count < 0:
            raise InvalidRecordError(f"Found invalid number of record headers {count}")
        if count > len(data) - position:
            kind = TruncatedHeaderError if is_header_cut(data, position, count) else InvalidRecordError
            raise kind(
                f"Found invalid number of record headers. {count} is larger than the remaining size of the buffer"
            )
        headers: tuple[Header, ...] = ()
        if count:
            headers, position = _read_headers(data, position, count)
    except (IndexError, InvalidArgumentError) as error:
        raise InvalidRecordError("Found invalid record structure") from error
    if position - start != size:
        raise InvalidRecordError(
            f"Invalid record size: expected to read {size} bytes in record payload, but instead read {position - start}"
        )
    base_offset, base_timestamp, base_sequence, log_append_time = context
    record = Record(
        to_long(base_offset + offset_delta),
        to_long(base_timestamp + timestamp_delta) if log_append_time is None else log_append_time,
        key,
        value,
        headers=headers,
        sequence=increment_sequence(base_sequence, offset_delta) if base_sequence >= 0 else NO_SEQUENCE,
        size_in_bytes=size_of_varint(size) + size,
        attributes=attributes - 256 if attributes > 127 else attributes,
    )
    return record, position


def _sized(data: bytes | None) -> bytes:
    return b"\x01" if data is None else write_varint(len(data)) + data


def write_record(offset_delta: int, timestamp_delta: int, record: SimpleRecord) -> bytes:
    """Return the bytes of a v2 record, its size first (``DefaultRecord.writeTo``).

    Args:
        offset_delta: difference from the batch's base offset; truncated to 32 bits.
        timestamp_delta: difference from the batch's base timestamp; truncated to 64 bits.
        record: key, value and headers; its timestamp is ignored.
    """
    parts = [
        b"\x00",
        write_varlong(to_long(timestamp_delta)),
        write_varint(offset_delta),
        _sized(record.key),
        _sized(record.value),
        write_varint(len(record.headers)),
    ]
    for key, value in record.headers:
        parts += (_sized(key.encode()), _sized(value))
    body = b"".join(parts)
    return write_varint(len(body)) + body


class ControlRecordType(IntEnum):
    """Type of a control record (``ControlRecordType.java``). Releases before KRaft know the first two."""

    UNKNOWN = -1
    ABORT = 0
    COMMIT = 1
    LEADER_CHANGE = 2
    SNAPSHOT_HEADER = 3
    SNAPSHOT_FOOTER = 4
    KRAFT_VERSION = 5
    KRAFT_VOTERS = 6

    def name_in(self, dialect: Dialect) -> str:
        """Return the name of this type in a release, or ``UNKNOWN`` if the release has no type with this number."""
        if self <= ControlRecordType.COMMIT:
            return self.name
        names, index = dialect.other_control_types, self - ControlRecordType.LEADER_CHANGE
        return names[index] if index < len(names) else ControlRecordType.UNKNOWN.name

    @classmethod
    def parse(cls, key: bytes | None) -> ControlRecordType:
        """Return the type that a control record's key states; UNKNOWN for a number that Kafka does not have.

        A version above 0 is read as version 0, as Kafka does.

        Raises:
            InvalidRecordError: the key is null, shorter than 4 bytes, or has a negative version.
        """
        if key is None or len(key) < _KEY.size:
            raise InvalidRecordError(
                "Invalid value size found for control record key. Must have at least "
                f"{_KEY.size} bytes, but found only {len(key or b'')}"
            )
        version, number = _KEY.unpack_from(key)
        if version < 0:
            raise InvalidRecordError(
                f"Invalid version found for control record: {version}. May indicate data corruption"
            )
        return cls(number) if number in cls._value2member_map_ else cls.UNKNOWN

    @property
    def record_key(self) -> bytes:
        """Key of a control record of this type, version 0.

        Raises:
            InvalidArgumentError: the type is UNKNOWN, which has no key.
        """
        if self is ControlRecordType.UNKNOWN:
            raise InvalidArgumentError("Cannot serialize UNKNOWN control record type")
        return _KEY.pack(0, self)


@dataclass(frozen=True, slots=True)
class EndTransactionMarker:
    """End of a transaction: commit or abort (``EndTransactionMarker.java``).

    Attributes:
        control_type: COMMIT or ABORT.
        coordinator_epoch: epoch of the transaction coordinator that wrote the marker.

    Raises:
        InvalidArgumentError: ``control_type`` is neither COMMIT nor ABORT.
    """

    control_type: ControlRecordType
    coordinator_epoch: int = 0

    def __post_init__(self) -> None:
        if self.control_type not in (ControlRecordType.ABORT, ControlRecordType.COMMIT):
            raise InvalidArgumentError(
                f"Invalid control record type for end transaction marker {self.control_type.name}"
            )

    @property
    def value(self) -> bytes:
        """Value of the control record."""
        return _MARKER.pack(0, self.coordinator_epoch)

    @classmethod
    def parse(cls, record: Record) -> EndTransactionMarker:
        """Return the marker that a control record holds.

        Raises:
            InvalidRecordError: key or value is too short or has a negative version.
            InvalidArgumentError: the control record has another type.
        """
        control_type = ControlRecordType.parse(record.key)
        marker = cls(control_type)
        value = record.value
        if value is None or len(value) < _MARKER.size:
            raise InvalidRecordError(
                "Invalid value size found for end transaction marker. Must have at least "
                f"{_MARKER.size} bytes, but found only {len(value or b'')}"
            )
        version, epoch = _MARKER.unpack_from(value)
        if version < 0:
            raise InvalidRecordError(
                f"Invalid version found for end transaction marker: {version}. May indicate data corruption"
            )
        return cls(marker.control_type, epoch)
