"""Iteration over the batches in a buffer or a file, with Kafka's rules for the end of the sequence."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from kidx.java_values import INT_MAX, to_int
from kidx.layout import LOG_OVERHEAD, MESSAGE_OVERHEAD_V0, PREFIX, RECORD_BATCH_OVERHEAD
from kidx.records.base import Storage
from kidx.records.batch import DefaultRecordBatch
from kidx.records.errors import CorruptRecordError, InvalidArgumentError
from kidx.records.file_bytes import FileBytes, unpack
from kidx.records.legacy import LegacyRecordBatch

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from kidx.dialect import Decompressor
    from kidx.records.base import RecordBatch
    from kidx.records.file_bytes import Buffer

_PREFIX: Final = PREFIX.struct
_NEWEST_MAGIC: Final = 2


def _batch(storage: Storage, position: int, size: int, magic: int, offset: int) -> RecordBatch:
    kind = LegacyRecordBatch if magic < _NEWEST_MAGIC else DefaultRecordBatch
    return kind(storage, position, size, magic, offset)


def iter_batches(
    buffer: Buffer,
    start: int = 0,
    end: int | None = None,
    *,
    source: str = "<buffer>",
    known: dict[int, RecordBatch] | None = None,
    decompressor: Decompressor | None = None,
) -> Iterator[RecordBatch]:
    """Yield the batches of a segment file, as ``FileLogInputStream`` does (RB-4).

    Only the first 17 bytes of each are read. The sequence ends if fewer than 18 bytes remain before ``end``, or if
    a batch would exceed ``end``, both without an error. The magic is not checked: from 2 on it is read as v2, and
    negative values as v0 or v1.

    Args:
        buffer: the whole file; it must outlive the batches.
        start: byte position of the first batch.
        end: byte position not to read past; the end of the buffer by default.
        source: name of the buffer in errors, normally the path.
        known: parsed batches by position, which are not parsed again; the batches of this call are added. The bytes of
            a known batch must not change. None to parse all batches.
        decompressor: codec libraries that read the records; kidx's libraries by default.

    Raises:
        CorruptRecordError: a length is below 14, or ``end`` lies beyond the buffer.
        InvalidArgumentError: ``start`` is negative.
    """
    storage = Storage(buffer, in_file=True, source=source, decompressor=decompressor)
    size_of_buffer = len(buffer)
    end = size_of_buffer if end is None else end
    position = start
    while position < end - PREFIX.size:
        if position < 0:
            raise InvalidArgumentError(f"The file channel position cannot be negative, but it is {position}")
        batch = None if known is None else known.get(position)
        if batch is not None:
            if position > end - batch.size_in_bytes:
                return
            yield batch
            position += batch.size_in_bytes
            continue
        if position + PREFIX.size > size_of_buffer:
            raise CorruptRecordError("Unexpected EOF while attempting to read the next batch")
        offset, length, _, magic = unpack(_PREFIX, buffer, position)
        if length < MESSAGE_OVERHEAD_V0:
            raise CorruptRecordError(
                f"Found record size {length} smaller than minimum record overhead ({MESSAGE_OVERHEAD_V0}) "
                f"in file {source}."
            )
        size = LOG_OVERHEAD + length
        if position > end - size:
            return
        batch = _batch(storage, position, size, magic, offset)
        # The header of a shorter batch extends past its end; a batch of a negative magic behaves differently once read.
        if known is not None and size >= RECORD_BATCH_OVERHEAD and magic >= 0:
            known[position] = batch
        yield batch
        position += size


def iter_memory_batches(
    buffer: Buffer,
    start: int = 0,
    end: int | None = None,
    *,
    max_message_size: int = INT_MAX,
    source: str = "<buffer>",
    decompressor: Decompressor | None = None,
) -> Iterator[RecordBatch]:
    """Yield the batches of a fetch or produce payload, as ``ByteBufferLogInputStream`` (``MemoryRecords``) does.

    Unlike :func:`iter_batches` this checks the magic, accepts a last batch of any size, and reads nothing beyond a
    batch.

    Args:
        buffer: the bytes; they must outlive the batches.
        start: byte position of the first batch.
        end: byte position not to read past; the end of the buffer by default.
        max_message_size: the largest length that a batch may have.
        source: name of the buffer in errors.
        decompressor: codec libraries that read the records; kidx's libraries by default.

    Raises:
        CorruptRecordError: a length is below 14 or above the maximum, or a magic is not 0, 1 or 2.
        InvalidArgumentError: ``start`` and ``end`` are not inside the buffer; or a length is within 12 of 2**31, which
            overflows in Kafka.
    """
    end = len(buffer) if end is None else end
    if not 0 <= start <= end <= len(buffer):
        raise InvalidArgumentError(f"bytes {start} to {end} are not in a buffer of {len(buffer)} bytes")
    storage = Storage(buffer, in_file=False, source=source, decompressor=decompressor)
    position = start
    head_size = LOG_OVERHEAD
    while end - position >= head_size:
        if end - position >= PREFIX.size:
            offset, length, _, magic = unpack(_PREFIX, buffer, position)
        else:  # the magic cannot be read, but the length is checked nevertheless
            offset, length, _, magic = _PREFIX.unpack(bytes(buffer[position:end]).ljust(PREFIX.size, b"\x00"))
        if length < MESSAGE_OVERHEAD_V0:
            raise CorruptRecordError(
                f"Record size {length} is less than the minimum record overhead ({MESSAGE_OVERHEAD_V0})"
            )
        if length > max_message_size:
            raise CorruptRecordError(
                f"Record size {length} exceeds the largest allowable message size ({max_message_size})."
            )
        if end - position < PREFIX.size:
            return
        if not 0 <= magic <= _NEWEST_MAGIC:
            raise CorruptRecordError(f"Invalid magic found in record: {magic}")
        size = LOG_OVERHEAD + length
        if size > INT_MAX:
            raise InvalidArgumentError(f"newLimit < 0: ({to_int(size)} < 0)")
        if end - position < size:
            return
        yield _batch(storage, position, size, magic, offset)
        position += size


def file_batches(path: str | Path, start: int = 0, end: int | None = None) -> Iterator[RecordBatch]:
    """Yield the batches of the segment file at ``path``, which is read on demand.

    Args:
        path: a ``.log`` file.
        start: byte position of the first batch.
        end: byte position not to read past; the end of the file by default.

    Raises:
        OSError: the file cannot be read, or is not a regular file.
        TruncatedFileError: the file became shorter while it was read.
        CorruptRecordError, InvalidArgumentError: as :func:`iter_batches`.
    """
    yield from iter_batches(FileBytes(path, str(path)), start, end, source=str(path))
