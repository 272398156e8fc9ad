"""Compressed records read without their keys and values (``PartialDefaultRecord``), as a leader reads them from 2.6 on.

Up to 3.5 the bytes of a record, as many as its size says, are read ahead in pieces of 2 KiB. From 3.6 on the fields are
read from the stream one after another, and nothing compares their sum with the size (LG-54).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final, NamedTuple

from kidx.java_numbers import to_long
from kidx.records import InvalidRecordError, StreamUnderflowError
from kidx.records.errors import InvalidArgumentError
from kidx.records.varint import read_varint, read_varlong

if TYPE_CHECKING:
    from kidx.records.codecs import Source
    from kidx.records.record import BatchContext

_AHEAD: Final = 2048
_VARINT: Final = 5
_VARLONG: Final = 10
_STRUCTURE: Final = "Found invalid record structure"
_CUT: Final = "Incorrect declared batch size, premature EOF reached"


class PartialRecord(NamedTuple):
    """What is known of a record whose key and value were passed over; the timestamp in milliseconds."""

    offset: int
    timestamp: int
    has_key: bool


def read_ahead(source: Source, context: BatchContext) -> PartialRecord:
    """The next record, up to 3.5.

    Raises:
        InvalidArgumentError: its size has no end.
        InvalidRecordError: its structure is wrong.
        RecordStreamError: the compressed bytes are damaged.
    """
    try:
        size = source.read_varint()
    except EOFError:
        raise InvalidRecordError(_CUT) from None
    window = _Window(source, size)
    record = _fields(window, context)
    if window.is_left:
        raise InvalidRecordError(f"Invalid record size: {size}, but there are still bytes remaining")
    return record


def read_on(source: Source, context: BatchContext, largest: int | None = None) -> PartialRecord:
    """The next record, from 3.6 on.

    Args:
        source: of the bytes.
        context: of the batch.
        largest: bytes that it may claim to have; None if its size is not looked at, as up to 4.3.

    Raises:
        InvalidRecordError: its structure is wrong.
        RecordStreamError: the compressed bytes are damaged.
    """
    fields = _Stream(source)
    size = fields.varint()
    if largest is not None and not 0 <= size <= largest:
        raise InvalidRecordError(f"Invalid record size: {size}")
    return _fields(fields, context)


def _fields(fields: _Window | _Stream, context: BatchContext) -> PartialRecord:
    try:
        return _read(fields, context)
    except StreamUnderflowError as error:  # as of the record's own buffer (LG-75)
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
    stamped = context.log_append_time
    return PartialRecord(offset, timestamp if stamped is None else stamped, key_size >= 0)


class _Window:
    """The bytes of one record, a piece at a time."""

    def __init__(self, source: Source, size: int) -> None:
        self._source = source
        self._left = size
        self._data = b""
        self._at = 0

    @property
    def is_left(self) -> bool:
        return self._left > 0 or self._at < len(self._data)

    def _more(self) -> None:
        if self._left <= 0:
            raise InvalidRecordError("Invalid record size: expected to read more bytes in record payload")
        rest = self._data[self._at :]
        size = min(self._left, _AHEAD - len(rest))
        piece = self._source.read(size)
        if len(piece) < size:
            raise InvalidRecordError(_CUT)
        self._data, self._at, self._left = rest + piece, 0, self._left - size

    def _number(self, read: Callable[[bytes, int], tuple[int, int]], longest: int) -> int:
        while len(self._data) - self._at < longest and self._left > 0:
            self._more()
        try:
            number, self._at = read(self._data, self._at)
        except (IndexError, InvalidArgumentError) as error:
            raise InvalidRecordError(_STRUCTURE) from error
        return number

    def byte(self) -> None:
        """Passes over a byte."""
        self._number(lambda data, at: (data[at], at + 1), 1)

    def varint(self) -> int:
        return self._number(read_varint, _VARINT)

    def varlong(self) -> int:
        return self._number(read_varlong, _VARLONG)

    def skip_sized(self) -> int:
        """Passes over a field behind its size, which is returned."""
        size = left = self.varint()
        while left > len(self._data) - self._at:
            left -= len(self._data) - self._at
            self._at = len(self._data)
            self._more()
        self._at += max(left, 0)
        return size


class _Stream:
    """The fields of a record as they come, however many bytes they have. In a number an end is a byte of -1 (LG-76)."""

    def __init__(self, source: Source) -> None:
        self._source = source

    def byte(self) -> None:
        """Passes over a byte, or an end."""
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
        """Passes over a field behind its size, which is returned."""
        size = left = self.varint()
        while left > 0:
            passed = self._source.skip(left) or len(self._source.read(1))
            if not passed:
                raise InvalidRecordError("Reached end of input stream before skipping all bytes")
            left -= passed
        return size
