"""Records as columns into a buffer of rows: of many records at once, and of batches by their headers alone."""

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
    """Adds records; what the query does not read is not made.

    Args:
        segment: that they are of.
        kind: of their timestamps, as Kafka numbers it.
        columns: the records.
        buffer: to be filled.
    """
    rows = columns.rows
    number = len(rows)
    if not number:
        return
    arrays = _of_all(segment, kind, number) | {
        "key": lambda: columns.gathered("key"),
        "value": lambda: columns.gathered("value"),
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
    """Adds records of batches that have one for each of their offsets.

    Args:
        segment: that they are of.
        kind: of their timestamps, as Kafka numbers it.
        firsts: the first offset of each batch.
        counts: how many records of each are wanted.
        stamps: the timestamp of all records of each, milliseconds; looked at only if the query reads timestamps.
        buffer: to be filled.
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
    """The columns that all records of a batch have in common."""
    return {
        "topic": lambda: _repeated(segment.topic, pa.string(), number),
        "partition": lambda: _repeated(segment.partition, pa.int32(), number),
        "timestampType": lambda: _repeated(kind, pa.int32(), number),
    }


@lru_cache(maxsize=16)
def _repeated(value: Any, kind: pa.DataType, number: int) -> pa.Array:
    return pa.repeat(pa.scalar(value, kind), number)


def headers_of(headers: tuple[Header, ...]) -> list[dict[str, Any]] | None:
    """As Spark's Kafka source has them: null if there are none."""
    return [{"key": key, "value": value} for key, value in headers] if headers else None
