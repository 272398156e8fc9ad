"""Records of v2 batches as columns: the positions of key, value and headers, without an object for each record.

The module is made for millions of records. :class:`kidx.records.DefaultRecordBatch` is the readable equivalent. It
reads every batch that is not well-formed, so that corruption raises Kafka's own errors.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice, repeat
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias

import numpy as np

from kidx.errors import KidxError
from kidx.java_values import java_text
from kidx.layout import ATTRIBUTE_LOG_APPEND_TIME, RECORD_BATCH_OVERHEAD
from kidx.records import (
    Codec,
    DefaultRecordBatch,
    Header,
    InvalidRecordError,
    LargeBatchError,
    RecordBatch,
    iter_memory_batches,
)
from kidx.records.codecs import ChunkReader, decompress
from kidx.scan.batch_headers import walk
from kidx.scan.rows import BATCH, FULL, ODD

if TYPE_CHECKING:
    import pyarrow as pa

Array = np.ndarray[Any, Any]

# fmt: off
RECORD: Final = np.dtype([
    ("offset",           "i8"),
    ("timestamp",        "i8"),  # milliseconds
    ("key_position",     "i8"),  # in the decompressed bytes
    ("value_position",   "i8"),
    ("headers_position", "i8"),  # position of the first header
    ("key_size",         "i4"),  # negative: null
    ("value_size",       "i4"),  # negative: null
    ("headers",          "i4"),  # number of headers
], align=True)
# fmt: on

RecordTuple: TypeAlias = tuple[int, int, bytes | None, bytes | None, tuple[Header, ...]]
"""Offset, timestamp, key, value and headers of a record."""

_ROWS: Final = 4096
"""Number of records at a time: few enough to remain in the processor's cache."""

_BYTES: Final = 1 << 20
"""Approximate number of bytes of batches at a time."""

_BATCHES: Final = 4096

_SMALLEST: Final = 7
"""Minimum size of a record in bytes."""

_CHUNK: Final = 1 << 20

_LARGEST: Final = 256 << 20
"""Maximum number of bytes of decompressed records in the columns of one batch."""


class RecordColumns(NamedTuple):
    """Records of one batch, or of several consecutive ones.

    Attributes:
        data: bytes that the positions refer to.
        rows: array of :data:`RECORD`.
    """

    data: bytes
    rows: Array

    def column(self, name: str) -> pa.BinaryViewArray:
        """Return the bytes of ``key`` or ``value`` of each record as an Arrow array, without copying them.

        ``cast(pyarrow.binary())`` converts it to another kind of array.
        """
        import pyarrow as pa  # noqa: PLC0415 -- only this method needs it

        from kidx.scan import record_kernels  # noqa: PLC0415 -- loaded already

        positions, sizes = self.rows[f"{name}_position"], self.rows[f"{name}_size"]
        first = int(positions[0]) if len(positions) else 0
        views = record_kernels.views(np.frombuffer(self.data, np.uint8), first, positions, sizes)
        nulls = int(np.count_nonzero(sizes < 0))
        validity = pa.py_buffer(np.packbits(sizes >= 0, bitorder="little")) if nulls else None
        buffers = [validity, pa.py_buffer(views), pa.py_buffer(self.data).slice(first)]
        return pa.Array.from_buffers(pa.binary_view(), len(sizes), buffers, nulls)

    def contiguous_column(self, name: str) -> pa.BinaryArray:
        """Return the array of :meth:`column` with contiguous bytes, which most programs other than Arrow need."""
        import pyarrow as pa  # noqa: PLC0415 -- only this method needs it

        from kidx.scan import record_kernels  # noqa: PLC0415 -- loaded already

        positions, sizes = self.rows[f"{name}_position"], self.rows[f"{name}_size"]
        # Arrow reuses freed memory; numpy would use new pages for each array.
        pieces = pa.allocate_buffer(int(np.maximum(sizes, 0).sum(dtype=np.int64)))
        data = np.frombuffer(self.data, np.uint8)
        starts = record_kernels.gather(data, positions, sizes, np.frombuffer(pieces, np.uint8))
        nulls = int(np.count_nonzero(sizes < 0))
        validity = pa.py_buffer(np.packbits(sizes >= 0, bitorder="little")) if nulls else None
        return pa.Array.from_buffers(
            pa.binary(), len(sizes), [validity, pa.py_buffer(starts), pa.py_buffer(pieces)], nulls
        )

    def tuples(self) -> Iterator[RecordTuple]:
        """Return the records as Python objects."""
        rows = self.rows
        keys, values = self._bytes("key"), self._bytes("value")
        headers = self._headers() if rows["headers"].any() else repeat((), len(rows))
        return zip(rows["offset"].tolist(), rows["timestamp"].tolist(), keys, values, headers, strict=True)

    def _bytes(self, name: str) -> list[bytes | None]:
        try:
            found: list[bytes | None] = self.column(name).to_numpy(zero_copy_only=False).tolist()
        except ImportError:  # without pyarrow
            starts = self.rows[f"{name}_position"]
            return self._slices(starts, starts + self.rows[f"{name}_size"])
        return found

    def _slices(self, starts: Array, ends: Array) -> list[bytes | None]:
        data = self.data
        pairs = zip(starts.tolist(), ends.tolist(), strict=True)
        return [data[start:end] if end >= start else None for start, end in pairs]

    def _headers(self) -> Iterator[tuple[Header, ...]]:
        from kidx.scan import record_kernels  # noqa: PLC0415 -- loaded already

        positions = record_kernels.find_headers(np.frombuffer(self.data, np.uint8), self.rows)
        keys = (java_text(key or b"") for key in self._slices(positions[:, 0], positions[:, 2]))
        headers = zip(keys, self._slices(positions[:, 1], positions[:, 3]), strict=True)
        return (tuple(islice(headers, count)) for count in self.rows["headers"].tolist())


def decode_records(data: bytes) -> Iterator[RecordColumns]:
    """Yield the records of consecutive v2 batches, as in a segment file or a fetch; checksums are not checked.

    Small batches come together, some thousand records at a time. An incomplete last batch is ignored.

    Raises:
        InvalidRecordError: a batch is not v2; the records before it come first.
        LargeBatchError: the records of one batch decompress to more than 256 MiB.
        KidxError: any error of reading the batch with :func:`kidx.records.iter_memory_batches`.
    """
    buffer = np.frombuffer(data, np.uint8)
    batches = np.empty(_BATCHES, BATCH)
    start, reason = 0, FULL
    while reason == FULL:
        found, start, reason = walk(buffer, len(buffer), batches, start=start, checked=False)
        yield from _decoded(data, buffer, batches[:found])
    for batch in iter_memory_batches(data, start):  # the batch at which the walk stopped
        yield decode_batch(batch)


def _decoded(data: bytes, buffer: Array, batches: Array) -> Iterator[RecordColumns]:
    """Yield the records of batches that were found in ``data``."""
    from kidx.scan import record_kernels  # noqa: PLC0415 -- numba takes a second to load

    number = 0
    while number < len(batches):
        rows = np.empty(_ROWS, RECORD)
        number, filled, reason = record_kernels.read_batches(buffer, batches, number, rows, _BYTES)
        if filled:
            yield RecordColumns(data, rows[:filled])
        if reason == ODD or (reason == FULL and not filled):
            batch = next(iter_memory_batches(data, int(batches["position"][number])))
            yield decode_batch(batch)
            number += 1


def decode_batch(batch: RecordBatch) -> RecordColumns:
    """Return the records of one v2 batch, compressed or not; its checksum is not checked.

    Raises:
        InvalidRecordError: the batch is not v2.
        LargeBatchError: the records of the batch decompress to more than 256 MiB; iteration yields them one at a time.
        KidxError: any error of iterating over the batch.
    """
    if not isinstance(batch, DefaultRecordBatch):
        raise InvalidRecordError(
            f"the batch at position {batch.position} has format v{batch.magic}; only v2 can be read as columns"
        )
    columns = _read(batch)
    if columns is None:
        for _ in batch:  # raises the specific error
            pass
        raise InvalidRecordError(f"the records of the batch at position {batch.position} cannot be read")
    return columns


def _read(batch: DefaultRecordBatch) -> RecordColumns | None:
    """Return the records, or None if they are malformed."""
    from kidx.scan import record_kernels  # noqa: PLC0415 -- numba takes a second to load

    if batch.size_in_bytes < RECORD_BATCH_OVERHEAD:
        return None
    count, data = batch.count, batch.to_bytes()[RECORD_BATCH_OVERHEAD:]
    if count == 0:  # bytes after the header are ignored
        return RecordColumns(b"", np.empty(0, RECORD))
    try:
        if batch.codec is not Codec.NONE:
            data = _read_all(decompress(batch.codec, data, batch.magic), batch)
    except LargeBatchError:
        raise
    except KidxError:
        return None
    if not 0 < count <= len(data) // _SMALLEST:
        return None
    rows = np.empty(count, RECORD)
    fixed = bool(batch.attributes & ATTRIBUTE_LOG_APPEND_TIME)
    whole = record_kernels.read_records(
        np.frombuffer(data, np.uint8),
        0,
        len(data),
        base_offset=batch.base_offset,
        base_timestamp=batch.max_timestamp if fixed else batch.base_timestamp,
        fixed=fixed,
        rows=rows,
    )
    return RecordColumns(data, rows) if whole else None


def _read_all(source: ChunkReader, batch: RecordBatch) -> bytes:
    pieces, size = [], 0
    while piece := source.read(_CHUNK):
        pieces.append(piece)
        size += len(piece)
        if size > _LARGEST:
            raise LargeBatchError(
                f"the batch at position {batch.position} has more than {_LARGEST} bytes of records, which is the limit"
            )
    return b"".join(pieces)
