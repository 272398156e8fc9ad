"""The records of v2 batches as columns: where key, value and headers lie, without an object for each record.

For whoever reads records by the million; :class:`kidx.records.DefaultRecordBatch` says the same readably, and reads
what is not here: damaged batches with Kafka's own errors, and those of v0 and v1.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final, NamedTuple

import numpy as np

from kidx.records import Codec, DefaultRecordBatch, InvalidRecordError, iter_memory_batches
from kidx.records.codecs import decompress
from kidx.records.layout import ATTRIBUTE_LOG_APPEND_TIME, RECORD_BATCH_OVERHEAD

Array = np.ndarray[Any, Any]

# fmt: off
RECORD: Final = np.dtype([
    ("offset",           "i8"),
    ("timestamp",        "i8"),  # milliseconds
    ("key_position",     "i8"),  # in the decompressed bytes
    ("value_position",   "i8"),
    ("headers_position", "i8"),  # of the first header
    ("key_size",         "i4"),  # -1: null
    ("value_size",       "i4"),  # -1: null
    ("headers",          "i4"),  # how many
], align=True)
# fmt: on


_CHUNK: Final = 1 << 20


class RecordColumns(NamedTuple):
    """The records of one batch.

    Attributes:
        data: the bytes that the positions count in.
        rows: of :data:`RECORD`.
    """

    data: bytes
    rows: Array

    def tuples(self) -> list[tuple[int, int, bytes | None, bytes | None]]:
        """Offset, timestamp, key and value of each record."""
        data, rows = self.data, self.rows
        keys, values = rows["key_position"], rows["value_position"]
        columns = (
            rows["offset"],
            rows["timestamp"],
            keys,
            keys + rows["key_size"],
            values,
            values + rows["value_size"],
        )
        # A null has the size -1, and so ends before it begins.
        return [
            (offset, stamp, data[key:key_end] if key_end >= key else None, data[at:end] if end >= at else None)
            for offset, stamp, key, key_end, at, end in zip(*(column.tolist() for column in columns), strict=True)
        ]


def decode_records(data: bytes) -> Iterator[RecordColumns]:
    """The records of v2 batches that lie one after another, as in a segment file or a fetch; checksums are not checked.

    Raises:
        InvalidRecordError: a batch is not v2, or its records cannot be read.
        KidxError: what decompressing raises, or a batch that does not fit.
    """
    for batch in iter_memory_batches(data):
        if not isinstance(batch, DefaultRecordBatch):
            raise InvalidRecordError(
                f"a batch of format v{batch.magic} at position {batch.position}: only v2 has columns"
            )
        yield _columns(batch, data)


def _columns(batch: DefaultRecordBatch, data: bytes) -> RecordColumns:
    start, end = batch.position + RECORD_BATCH_OVERHEAD, batch.position + batch.size_in_bytes
    if batch.codec is not Codec.NONE:
        source = decompress(batch.codec, data[start:end], batch.magic)
        data = b"".join(iter(lambda: source.read(_CHUNK), b""))
        start, end = 0, len(data)
    rows = np.empty(max(0, batch.count), RECORD)
    fixed = bool(batch.attributes & ATTRIBUTE_LOG_APPEND_TIME)
    base = batch.max_timestamp if fixed else batch.base_timestamp
    from kidx.scan import kernels  # noqa: PLC0415 -- numba takes a second to load

    buffer = np.frombuffer(data, np.uint8)
    read = kernels.decode(
        buffer, start, end, base_offset=batch.base_offset, base_timestamp=base, fixed=fixed, rows=rows
    )
    if read < len(rows):
        raise InvalidRecordError(f"record {read} of the batch at position {batch.position} cannot be read")
    return RecordColumns(data, rows)
