"""Offsets and timestamps of compressed records; keys and values are skipped without being loaded.

A few megabytes can decompress to gigabytes. A search by timestamp needs only two numbers of each record.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Final, Generic, NamedTuple, TypeVar

from kidx.errors import InvalidArgumentError
from kidx.java_values import to_long
from kidx.records.errors import InvalidRecordError, TruncatedHeaderError
from kidx.records.record import BatchContext, is_header_cut, read_record
from kidx.records.varint import read_varint, read_varlong

if TYPE_CHECKING:
    from kidx.records.codecs import ChunkReader

LARGE_RECORD: Final = 1 << 20
"""Size in bytes above which the content of a record is skipped."""

_HEADERS_READ: Final = 1 << 20
"""Maximum number of remaining bytes that are read as headers, only to find out which error a release raises."""

MAX_HELD: Final = 64 << 20
"""Approximate limit in bytes of the records in memory while all records are read before the first is yielded."""

OBJECT_OVERHEAD: Final = 256
"""Approximate overhead in bytes of an object."""

Item = TypeVar("Item")


class OffsetTimestamp(NamedTuple):
    """Offset and timestamp of a record; the timestamp in milliseconds, -1 for none."""

    offset: int
    timestamp: int


def all_before_first(make: Callable[[], Iterator[Item]], size: Callable[[Item], int]) -> Iterator[Item]:
    """Make all items, then return an iterator over them, so that an error in any item is raised immediately.

    Args:
        make: function that makes all items; called a second time if they do not fit in memory.
        size: function that returns the size of an item in bytes.

    Raises:
        Exception: any error that ``make`` raises.
    """
    held: list[Item] = []
    free = MAX_HELD
    items = make()
    for item in items:
        held.append(item)
        free -= size(item) + OBJECT_OVERHEAD
        if free < 0:
            held.clear()
            for _ in items:
                pass
            return make()
    return iter(held)


class CachedIterable(Generic[Item]):
    """Iterable over items that are made once, on demand, even if the iterable is iterated several times.

    Attributes:
        failed: True if making an item has raised an error. The object must not be used again then.
    """

    def __init__(self, items: Iterator[Item]) -> None:
        self._items = items
        self._taken: list[Item] = []
        self._all = False
        self.failed = False

    def __iter__(self) -> Iterator[Item]:
        return iter(self._taken) if self._all else self._one_by_one()

    def _one_by_one(self) -> Iterator[Item]:
        position = 0
        while True:
            if position == len(self._taken):
                try:
                    self._taken.append(next(self._items))
                except StopIteration:
                    self._all = True
                    return
                except BaseException:
                    self.failed = True
                    raise
            yield self._taken[position]
            position += 1


class _StructureError(Exception):
    """Field that does not fit in the record."""


def offset_timestamp_of(source: ChunkReader, size: int, context: BatchContext) -> OffsetTimestamp:
    """Return offset and timestamp of the next record; raise the errors that reading it would raise.

    Args:
        source: reader at the record's attributes; afterwards it is past the record.
        size: size of the record in bytes.

    Raises:
        InvalidRecordError: the size or structure of the record is wrong.
        RecordStreamError: the compressed bytes are corrupt.
    """
    if size <= LARGE_RECORD or source.is_chunked:
        body = source.read(size)
        if len(body) < size:
            raise _premature(size)
        record, _ = read_record(body, 0, size, context)
        return OffsetTimestamp(record.offset, record.timestamp)
    fields = _Fields(source, size)
    try:
        parsed = _parse(fields, context)
    except EOFError:
        raise _premature(size) from None
    except (_StructureError, InvalidRecordError) as error:
        # Kafka reads the whole record before it parses it.
        if source.skip(fields.remaining) < fields.remaining:
            raise _premature(size) from None
        if isinstance(error, _StructureError):
            raise InvalidRecordError("Found invalid record structure") from None
        raise
    if fields.remaining:
        read = size - fields.remaining
        if source.skip(fields.remaining) < fields.remaining:
            raise _premature(size)
        raise InvalidRecordError(
            f"Invalid record size: expected to read {size} bytes in record payload, but instead read {read}"
        )
    return parsed


def _premature(size: int) -> InvalidRecordError:
    return InvalidRecordError(
        f"Invalid record size: expected {size} bytes in record payload, but the record payload reached EOF."
    )


def _parse(fields: _Fields, context: BatchContext) -> OffsetTimestamp:
    fields.skip(1)  # attributes
    timestamp = to_long(context.base_timestamp + fields.number(10, read_varlong))
    offset = to_long(context.base_offset + fields.number(5, read_varint))
    for _ in ("key", "value"):
        fields.skip(fields.number(5, read_varint))
    count = fields.number(5, read_varint)
    if count < 0:
        raise InvalidRecordError(f"Found invalid number of record headers {count}")
    if count > fields.remaining:
        cut = fields.remaining <= _HEADERS_READ and is_header_cut(fields.take(fields.remaining), 0, count)
        raise (TruncatedHeaderError if cut else InvalidRecordError)(
            f"Found invalid number of record headers. {count} is larger than the remaining size of the buffer"
        )
    for _ in range(count):
        size = fields.number(5, read_varint)
        if size < 0:
            raise InvalidRecordError(f"Invalid negative header key size {size}")
        if size > fields.remaining:
            raise TruncatedHeaderError("Found invalid record structure")
        fields.skip(size)
        fields.skip(fields.number(5, read_varint))
    return OffsetTimestamp(offset, timestamp if context.log_append_time is None else context.log_append_time)


class _Fields:
    """Remaining bytes of a record, read field by field.

    Raises:
        EOFError: the stream ends within the record.
        _StructureError: a field exceeds the record, or a number does not end.
    """

    def __init__(self, source: ChunkReader, size: int) -> None:
        self._source = source
        self.remaining = size

    def take(self, size: int) -> bytes:
        if size > self.remaining:
            raise _StructureError
        data = self._source.read(size)
        if len(data) < size:
            raise EOFError
        self.remaining -= size
        return data

    def skip(self, size: int) -> None:
        """Skip ``size`` bytes; none if the number is negative, which represents null."""
        if size > self.remaining:
            raise _StructureError
        if size > 0:
            if self._source.skip(size) < size:
                raise EOFError
            self.remaining -= size

    def number(self, longest: int, read: Callable[[bytes, int], tuple[int, int]]) -> int:
        head = b""
        while len(head) < longest:
            head += self.take(1)
            if head[-1] < 0x80:
                break
        try:
            return read(head, 0)[0]
        except InvalidArgumentError:
            raise _StructureError from None
