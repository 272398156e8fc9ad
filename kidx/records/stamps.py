"""Offsets and timestamps of compressed records; skips keys and values without holding them.

A few megabytes can decompress to gigabytes. What a search by timestamp wants of them is two numbers a record.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Final, Generic, NamedTuple, TypeVar

from kidx.errors import InvalidArgumentError
from kidx.java_numbers import to_long
from kidx.records.errors import HeaderCutError, InvalidRecordError
from kidx.records.record import BatchContext, is_header_cut, read_record
from kidx.records.varint import read_varint, read_varlong

if TYPE_CHECKING:
    from kidx.records.codecs import Source

LARGE_RECORD: Final = 1 << 20
"""Bytes from which on a record is passed over."""

_HEADERS_READ: Final = 1 << 20
"""Bytes of headers, more than there can be, that are read to tell how releases refuse them."""

HELD: Final = 64 << 20
"""Bytes of decompressed records held, about, so that an error in a later one is raised first."""

OBJECT: Final = 256
"""Bytes that an object takes besides, about."""

Item = TypeVar("Item")


class Stamp(NamedTuple):
    """Offset and timestamp of a record, the latter in milliseconds, -1 for none."""

    offset: int
    timestamp: int


def all_before_first(make: Callable[[], Iterator[Item]], size: Callable[[Item], int]) -> Iterator[Item]:
    """Items that are all made before the first is yielded: an error in a later one is raised at once.

    Args:
        make: makes all of them. Called a second time if they are too many to be held.
        size: bytes of one.

    Raises:
        Exception: whatever making them raises.
    """
    held: list[Item] = []
    room = HELD
    items = make()
    for item in items:
        held.append(item)
        room -= size(item) + OBJECT
        if room < 0:
            held.clear()
            for _ in items:
                pass
            return make()
    return iter(held)


class ReadOnce(Generic[Item]):
    """Items that are made once, and as far as they are taken, however often they are gone through.

    Attributes:
        failed: making the next one has raised; then they have to be made anew.
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
    """A field does not fit in the record."""


def stamp_of(source: Source, size: int, context: BatchContext) -> Stamp:
    """The stamp of the next record, whose attributes follow; refuses what reading it refuses.

    Args:
        source: stands behind the record's size afterwards.
        size: bytes of the record.
        context: of the batch.

    Raises:
        InvalidRecordError: its size or structure is wrong.
        RecordStreamError: the compressed bytes are damaged.
    """
    if size <= LARGE_RECORD or source.is_chunked:
        body = source.read(size)
        if len(body) < size:
            raise _premature(size)
        record, _ = read_record(body, 0, size, context)
        return Stamp(record.offset, record.timestamp)
    fields = _Fields(source, size)
    try:
        stamp = _passed(fields, context)
    except EOFError:
        raise _premature(size) from None
    except (_StructureError, InvalidRecordError) as error:
        # Kafka reads all of a record before it looks into it.
        if source.skip(fields.left) < fields.left:
            raise _premature(size) from None
        if isinstance(error, _StructureError):
            raise InvalidRecordError("Found invalid record structure") from None
        raise
    if fields.left:
        read = size - fields.left
        if source.skip(fields.left) < fields.left:
            raise _premature(size)
        raise InvalidRecordError(
            f"Invalid record size: expected to read {size} bytes in record payload, but instead read {read}"
        )
    return stamp


def _premature(size: int) -> InvalidRecordError:
    return InvalidRecordError(
        f"Invalid record size: expected {size} bytes in record payload, but the record payload reached EOF."
    )


def _passed(fields: _Fields, context: BatchContext) -> Stamp:
    fields.skip(1)  # attributes
    timestamp = to_long(context.base_timestamp + fields.number(10, read_varlong))
    offset = to_long(context.base_offset + fields.number(5, read_varint))
    for _ in ("key", "value"):
        fields.skip(fields.number(5, read_varint))
    count = fields.number(5, read_varint)
    if count < 0:
        raise InvalidRecordError(f"Found invalid number of record headers {count}")
    if count > fields.left:
        cut = fields.left <= _HEADERS_READ and is_header_cut(fields.take(fields.left), 0, count)
        raise (HeaderCutError if cut else InvalidRecordError)(
            f"Found invalid number of record headers. {count} is larger than the remaining size of the buffer"
        )
    for _ in range(count):
        size = fields.number(5, read_varint)
        if size < 0:
            raise InvalidRecordError(f"Invalid negative header key size {size}")
        if size > fields.left:
            raise HeaderCutError("Found invalid record structure")
        fields.skip(size)
        fields.skip(fields.number(5, read_varint))
    return Stamp(offset, timestamp if context.log_append_time is None else context.log_append_time)


class _Fields:
    """What is left of a record, field by field.

    Raises:
        EOFError: the stream ends within the record.
        _StructureError: a field goes beyond it, or a number has no end.
    """

    def __init__(self, source: Source, size: int) -> None:
        self._source = source
        self.left = size

    def take(self, size: int) -> bytes:
        if size > self.left:
            raise _StructureError
        data = self._source.read(size)
        if len(data) < size:
            raise EOFError
        self.left -= size
        return data

    def skip(self, size: int) -> None:
        """Passes so many bytes; none if the number is negative, which stands for null."""
        if size > self.left:
            raise _StructureError
        if size > 0:
            if self._source.skip(size) < size:
                raise EOFError
            self.left -= size

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
