"""Compressed records read without keys and values (``PartialDefaultRecord``), as a leader reads them from 2.6 on.

Up to 3.5 the bytes of a record, as many as its size states, are read ahead in pieces of 2 KiB. From 3.6 on the fields
are read from the stream one after the other, and nothing compares their sum with the size (LG-54).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from kidx.java_values import to_long
from kidx.records import InvalidRecordError, StreamUnderflowError
from kidx.records.errors import InvalidArgumentError
from kidx.records.varint import read_varint, read_varlong

if TYPE_CHECKING:
    from collections.abc import Callable

    from kidx.records.codecs import ChunkReader
    from kidx.records.record import BatchContext

_AHEAD: Final = 2048  # bytes that are read ahead, up to 3.5
_VARINT: Final = 5  # maximum number of bytes of a varint of 32 bits
_VARLONG: Final = 10  # of 64 bits
_STRUCTURE: Final = "Found invalid record structure"
_TRUNCATED: Final = "Incorrect declared batch size, premature EOF reached"


class PartialRecord(NamedTuple):
    """Fields of a record whose key and value were skipped."""

    offset: int  # absolute: base offset of the batch plus the delta in the record
    timestamp: int  # milliseconds
    has_key: bool


def read_before_3_6(source: ChunkReader, context: BatchContext) -> PartialRecord:
    """Return the next record as releases up to 3.5 read it.

    Raises:
        InvalidArgumentError: the varint of the record's size does not end.
        InvalidRecordError: the structure of the record is wrong.
        RecordStreamError: the compressed bytes are corrupt.
    """
    try:
        size = source.read_varint()
    except EOFError:
        raise InvalidRecordError(_TRUNCATED) from None
    window = _Window(source, size)
    record = _fields(window, context)
    if window.has_remaining:
        raise InvalidRecordError(f"Invalid record size: {size}, but there are still bytes remaining")
    return record


def read_since_3_6(source: ChunkReader, context: BatchContext, largest: int | None = None) -> PartialRecord:
    """Return the next record as 3.6 and later read it.

    Args:
        source: reader of the decompressed bytes.
        largest: maximum size in bytes that the record may state; None to ignore the size, as up to 4.3.

    Raises:
        InvalidRecordError: the structure of the record is wrong.
        RecordStreamError: the compressed bytes are corrupt.
    """
    fields = _Stream(source)
    size = fields.varint()
    if largest is not None and not 0 <= size <= largest:
        raise InvalidRecordError(f"Invalid record size: {size}")
    return _fields(fields, context)


def _fields(fields: _Window | _Stream, context: BatchContext) -> PartialRecord:
    try:
        return _read(fields, context)
    except StreamUnderflowError as error:  # as in the record's own buffer (LG-75)
        raise InvalidRecordError(_STRUCTURE) from error


def _read(fields: _Window | _Stream, context: BatchContext) -> PartialRecord:
    fields.byte()  # attributes
    timestamp = to_long(context.base_timestamp + fields.varlong())
    offset = to_long(context.base_offset + fields.varint())
    key_size = fields.skip_sized()
    fields.skip_sized()
    count = fields.varint()
    if count < 0:
        raise InvalidRecordError(f"Found invalid number of record headers {count}")
    for _ in range(count):
        if fields.skip_sized() < 0:
            raise InvalidRecordError("Invalid negative header key size")
        fields.skip_sized()
    append_time = context.log_append_time
    return PartialRecord(offset, timestamp if append_time is None else append_time, key_size >= 0)


class _Window:
    """Bytes of one record, read in pieces."""

    def __init__(self, source: ChunkReader, size: int) -> None:
        self._source = source
        self._remaining = size
        self._data = b""
        self._at = 0

    @property
    def has_remaining(self) -> bool:
        return self._remaining > 0 or self._at < len(self._data)

    def _more(self) -> None:
        if self._remaining <= 0:
            raise InvalidRecordError("Invalid record size: expected to read more bytes in record payload")
        rest = self._data[self._at :]
        size = min(self._remaining, _AHEAD - len(rest))
        piece = self._source.read(size)
        if len(piece) < size:
            raise InvalidRecordError(_TRUNCATED)
        self._data, self._at, self._remaining = rest + piece, 0, self._remaining - size

    def _number(self, read: Callable[[bytes, int], tuple[int, int]], longest: int) -> int:
        while len(self._data) - self._at < longest and self._remaining > 0:
            self._more()
        try:
            number, self._at = read(self._data, self._at)
        except (IndexError, InvalidArgumentError) as error:
            raise InvalidRecordError(_STRUCTURE) from error
        return number

    def byte(self) -> None:
        """Skip a byte."""
        self._number(lambda data, at: (data[at], at + 1), 1)

    def varint(self) -> int:
        return self._number(read_varint, _VARINT)

    def varlong(self) -> int:
        return self._number(read_varlong, _VARLONG)

    def skip_sized(self) -> int:
        """Skip a field and return its size, which precedes it."""
        size = remaining = self.varint()
        while remaining > len(self._data) - self._at:
            remaining -= len(self._data) - self._at
            self._at = len(self._data)
            self._more()
        self._at += max(remaining, 0)
        return size


class _Stream:
    """Fields of a record read from the stream, whatever its size. A missing byte of a number reads as -1 (LG-76)."""

    def __init__(self, source: ChunkReader) -> None:
        self._source = source

    def byte(self) -> None:
        """Skip a byte, or an end."""
        self._source.read(1)

    def varint(self) -> int:
        try:
            return self._source.read_varint()
        except (EOFError, InvalidArgumentError) as error:
            raise InvalidRecordError(_STRUCTURE) from error

    def varlong(self) -> int:
        try:
            return read_varlong(self._source.head(_VARLONG), 0)[0]
        except InvalidArgumentError as error:
            raise InvalidRecordError(_STRUCTURE) from error

    def skip_sized(self) -> int:
        """Skip a field and return its size, which precedes it."""
        size = remaining = self.varint()
        while remaining > 0:
            skipped = self._source.skip(remaining) or len(self._source.read(1))
            if not skipped:
                raise InvalidRecordError("Reached end of input stream before skipping all bytes")
            remaining -= skipped
        return size
