"""The records of v2 batches as columns: where key, value and headers lie, without an object for each record.

Serves reading records by the million. :class:`kidx.records.DefaultRecordBatch` is the readable equivalent. It reads
every batch that is not well-formed, so that damage has Kafka's own errors.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice, repeat
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias

import numpy as np

from kidx.errors import KidxError
from kidx.java_text import java_text
from kidx.records import (
    Codec,
    DefaultRecordBatch,
    Header,
    InvalidRecordError,
    LargeBatchError,
    RecordBatch,
    iter_memory_batches,
)
from kidx.records.codecs import Source, decompress
from kidx.records.layout import ATTRIBUTE_LOG_APPEND_TIME, RECORD_BATCH_OVERHEAD
from kidx.scan.rows import BATCH, FULL, ODD
from kidx.scan.walk import walk

if TYPE_CHECKING:
    import pyarrow as pa

Array = np.ndarray[Any, Any]

# fmt: off
RECORD: Final = np.dtype([
    ("offset",           "i8"),
    ("timestamp",        "i8"),  # milliseconds
    ("key_position",     "i8"),  # in the decompressed bytes
    ("value_position",   "i8"),
    ("headers_position", "i8"),  # of the first header
    ("key_size",         "i4"),  # negative: null
    ("value_size",       "i4"),  # negative: null
    ("headers",          "i4"),  # how many
], align=True)
# fmt: on

RecordTuple: TypeAlias = tuple[int, int, bytes | None, bytes | None, tuple[Header, ...]]
"""Offset, timestamp, key, value and headers of a record."""

_ROWS: Final = 4096
"""Records at a time: few enough to stay in the processor's cache."""

_BYTES: Final = 1 << 20
"""Bytes of batches at a time, about."""

_BATCHES: Final = 4096

_SMALLEST: Final = 7
"""Bytes of a record at least."""

_CHUNK: Final = 1 << 20

_LARGEST: Final = 256 << 20
"""Bytes of decompressed records that columns of one batch may hold."""


class RecordColumns(NamedTuple):
    """The records of one batch, or of several that follow each other.

    Attributes:
        data: the bytes that the positions count in.
        rows: of :data:`RECORD`.
    """

    data: bytes
    rows: Array

    def column(self, name: str) -> pa.BinaryViewArray:
        """The bytes of ``key`` or ``value`` of each record as an Arrow array, which copies none of them.

        Where another kind of array is wanted, ``cast(pyarrow.binary())`` makes one.
        """
        import pyarrow as pa  # noqa: PLC0415 -- only this method needs it

        from kidx.scan import record_kernels  # noqa: PLC0415 -- loaded already

        positions, sizes = self.rows[f"{name}_position"], self.rows[f"{name}_size"]
        first = int(positions[0]) if len(positions) else 0
        views = record_kernels.views(np.frombuffer(self.data, np.uint8), first, positions, sizes)
        nulls = int(np.count_nonzero(sizes < 0))
        there = pa.py_buffer(np.packbits(sizes >= 0, bitorder="little")) if nulls else None
        buffers = [there, pa.py_buffer(views), pa.py_buffer(self.data).slice(first)]
        return pa.Array.from_buffers(pa.binary_view(), len(sizes), buffers, nulls)

    def gathered(self, name: str) -> pa.BinaryArray:
        """As :meth:`column`, with the bytes side by side: what most programs outside Arrow ask for."""
        import pyarrow as pa  # noqa: PLC0415 -- only this method needs it

        from kidx.scan import record_kernels  # noqa: PLC0415 -- loaded already

        positions, sizes = self.rows[f"{name}_position"], self.rows[f"{name}_size"]
        # Arrow keeps memory that is given back; numpy's would be new pages for each array.
        pieces = pa.allocate_buffer(int(np.maximum(sizes, 0).sum(dtype=np.int64)))
        data = np.frombuffer(self.data, np.uint8)
        starts = record_kernels.gather(data, positions, sizes, np.frombuffer(pieces, np.uint8))
        nulls = int(np.count_nonzero(sizes < 0))
        there = pa.py_buffer(np.packbits(sizes >= 0, bitorder="little")) if nulls else None
        return pa.Array.from_buffers(
            pa.binary(), len(sizes), [there, pa.py_buffer(starts), pa.py_buffer(pieces)], nulls
        )

    def tuples(self) -> Iterator[RecordTuple]:
        """The records as Python objects."""
        rows = self.rows
        keys, values = self._bytes("key"), self._bytes("value")
        headers = self._headers() if rows["headers"].any() else repeat((), len(rows))
        return zip(rows["offset"].tolist(), rows["timestamp"].tolist(), keys, values, headers, strict=True)

    def _bytes(self, name: str) -> list[bytes | None]:
        try:
            found: list[bytes | None] = self.column(name).to_numpy(zero_copy_only=False).tolist()
        except ImportError:  # without pyarrow
            starts = self.rows[f"{name}_position"]
            return self._pieces(starts, starts + self.rows[f"{name}_size"])
        return found

    def _pieces(self, starts: Array, ends: Array) -> list[bytes | None]:
        data = self.data
        pairs = zip(starts.tolist(), ends.tolist(), strict=True)
        return [data[start:end] if end >= start else None for start, end in pairs]

    def _headers(self) -> Iterator[tuple[Header, ...]]:
        from kidx.scan import record_kernels  # noqa: PLC0415 -- loaded already

        places = record_kernels.find_headers(np.frombuffer(self.data, np.uint8), self.rows)
        keys = (java_text(key or b"") for key in self._pieces(places[:, 0], places[:, 2]))
        headers = zip(keys, self._pieces(places[:, 1], places[:, 3]), strict=True)
        return (tuple(islice(headers, count)) for count in self.rows["headers"].tolist())


def decode_records(data: bytes) -> Iterator[RecordColumns]:
    """The records of v2 batches that lie one after another, as in a segment file or a fetch; checksums are not checked.

    Small batches come together, some thousand records at a time. A last batch that is not whole is left out.

    Raises:
        InvalidRecordError: a batch is not v2; the records before it come first.
        LargeBatchError: the records of one batch decompress to more than 256 MiB.
        KidxError: what reading the batch with :func:`kidx.records.iter_memory_batches` raises.
    """
    buffer = np.frombuffer(data, np.uint8)
    batches = np.empty(_BATCHES, BATCH)
    start, reason = 0, FULL
    while reason == FULL:
        found, start, reason = walk(buffer, len(buffer), batches, start=start, checked=False)
        yield from _decoded(data, buffer, batches[:found])
    for batch in iter_memory_batches(data, start):  # whatever the walk stopped at
        yield decode_batch(batch)


def _decoded(data: bytes, buffer: Array, batches: Array) -> Iterator[RecordColumns]:
    """The records of batches that were found in ``data``."""
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
    """The records of one v2 batch, compressed or not; its checksum is not checked.

    Raises:
        InvalidRecordError: the batch is not v2.
        LargeBatchError: its records decompress to more than 256 MiB; iterating over it gives one after another.
        KidxError: what iterating over the batch raises.
    """
    if not isinstance(batch, DefaultRecordBatch):
        raise InvalidRecordError(f"a batch of format v{batch.magic} at position {batch.position}: only v2 has columns")
    columns = _read(batch)
    if columns is None:
        for _ in batch:  # it knows what is wrong
            pass
        raise InvalidRecordError(f"the records of the batch at position {batch.position} cannot be read")
    return columns


def _read(batch: DefaultRecordBatch) -> RecordColumns | None:
    """The records, or None if anything is wrong with them."""
    from kidx.scan import record_kernels  # noqa: PLC0415 -- numba takes a second to load

    if batch.size_in_bytes < RECORD_BATCH_OVERHEAD:
        return None
    count, data = batch.count, batch.to_bytes()[RECORD_BATCH_OVERHEAD:]
    if count == 0:  # what may lie behind is not looked at
        return RecordColumns(b"", np.empty(0, RECORD))
    try:
        if batch.codec is not Codec.NONE:
            data = _joined(decompress(batch.codec, data, batch.magic), batch)
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


def _joined(source: Source, batch: RecordBatch) -> bytes:
    pieces, size = [], 0
    while piece := source.read(_CHUNK):
        pieces.append(piece)
        size += len(piece)
        if size > _LARGEST:
            raise LargeBatchError(
                f"the records of the batch at position {batch.position} are more than {_LARGEST} bytes"
            )
    return b"".join(pieces)
