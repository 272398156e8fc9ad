"""Appending of records to a row buffer as columns: from decoded records, or from batch headers alone."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from kidx.tables.columns import HEADERS_TYPE, timestamps

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from kidx.records import Header
    from kidx.scan import RecordColumns
    from kidx.tables.columns import RowBuffer
    from kidx.tables.segments import Segment


def extend(segment: Segment, kind: int, columns: RecordColumns, buffer: RowBuffer) -> None:
    """Append records to a buffer; columns that the query does not read are not built.

    Args:
        segment: the segment of the records.
        kind: the timestamp type of the records, as Kafka numbers it.
        buffer: the buffer to fill.
    """
    rows = columns.rows
    number = len(rows)
    if not number:
        return
    arrays = _of_all(segment, kind, number) | {
        "key": lambda: columns.contiguous_column("key"),
        "value": lambda: columns.contiguous_column("value"),
        "offset": lambda: pa.array(rows["offset"].copy()),
        "timestamp": lambda: timestamps(rows["timestamp"]),
        "headers": lambda: pa.array([headers_of(each[4]) for each in columns.tuples()], HEADERS_TYPE),
    }
    wanted = [name for name in ("key", "value") if name in buffer]
    size = sum(int(np.maximum(rows[f"{name}_size"], 0).sum(dtype=np.int64)) for name in wanted)
    buffer.extend(arrays, number, size)


def extend_by_header(
    segment: Segment,
    kind: int,
    firsts: NDArray[np.int64],
    counts: NDArray[np.int64],
    stamps: NDArray[np.int64],
    buffer: RowBuffer,
) -> None:
    """Append the records of batches that have one record for each of their offsets.

    Args:
        kind: the timestamp type of the records, as Kafka numbers it.
        firsts: the first offset to append, per batch.
        counts: the number of records to append, per batch.
        stamps: the timestamp of every record, per batch, in milliseconds; used only if the query reads timestamps.
        buffer: the buffer to fill.
    """
    number = int(counts.sum())
    if number:
        begins = np.cumsum(counts) - counts
        arrays = _of_all(segment, kind, number) | {
            "offset": lambda: pa.array(np.repeat(firsts - begins, counts) + np.arange(number)),
            "timestamp": lambda: timestamps(np.repeat(stamps, counts)),
        }
        buffer.extend(arrays, number, 0)


def _of_all(segment: Segment, kind: int, number: int) -> dict[str, Callable[[], pa.Array]]:
    """Return the columns with one value for all records of a batch."""
    return {
        "topic": lambda: _repeated(segment.topic, pa.string(), number),
        "partition": lambda: _repeated(segment.partition, pa.int32(), number),
        "timestampType": lambda: _repeated(kind, pa.int32(), number),
    }


@lru_cache(maxsize=16)
def _repeated(value: Any, kind: pa.DataType, number: int) -> pa.Array:
    return pa.repeat(pa.scalar(value, kind), number)


def headers_of(headers: tuple[Header, ...]) -> list[dict[str, Any]] | None:
    """Convert headers to the form of Spark's Kafka source: null without headers."""
    return [{"key": key, "value": value} for key, value in headers] if headers else None
