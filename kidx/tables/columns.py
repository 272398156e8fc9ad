"""Conversion of rows to Arrow batches with exactly the requested columns."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np
import pyarrow as pa

from kidx.errors import ToolError

if TYPE_CHECKING:
    from numpy.typing import NDArray

ROWS: Final = 1 << 14
"""Maximum number of rows of an Arrow batch."""
BYTES: Final = 1 << 19
"""Approximate maximum number of bytes of keys and values in an Arrow batch."""
LARGEST_MILLISECONDS: Final = (1 << 63) // 1000 - 1
"""The latest time that a column can have; the earliest is its negative. A record with another time has null."""

_TIMESTAMP: Final = pa.timestamp("us", "UTC")
HEADERS_TYPE: Final = pa.list_(
    pa.field("element", pa.struct([pa.field("key", pa.string()), pa.field("value", pa.binary())]))
)
_TYPES: Final[dict[str, pa.DataType]] = {
    "binary": pa.binary(),
    "string": pa.string(),
    "int": pa.int32(),
    "bigint": pa.int64(),
    "boolean": pa.bool_(),
    "timestamp": _TIMESTAMP,
    "array<struct<key:string,value:binary>>": HEADERS_TYPE,
}


class Column(NamedTuple):
    """A column: its name, and its type in Spark's DDL."""

    name: str
    kind: str
    nullable: bool = True


def columns_in(ddl: str) -> list[Column]:
    """Parse the DDL of a content into columns: see :mod:`kidx.tables.contents`."""
    return [Column(name, kind) for name, kind in (column.split(" ", 1) for column in ddl.split(", "))]


def arrow_schema(columns: Iterable[Column]) -> pa.Schema:
    """Return the Arrow schema of columns of a content."""
    return pa.schema([pa.field(column.name, _TYPES[column.kind], column.nullable) for column in columns])


def check_columns(wanted: Iterable[Column], ddl: str, content: str) -> None:
    """Check that a schema given by hand is a subset of a content's columns, with their types, in any order.

    Args:
        ddl: the columns of the content, as DDL.
        content: the name of the content, for the message.

    Raises:
        ToolError: the schema has a column that the content does not have, or one of another type.
    """
    types = {column.name: column.kind for column in columns_in(ddl)}
    for column in wanted:
        if types.get(column.name) != column.kind:
            columns = ", ".join(f"{name} {kind}" for name, kind in types.items())
            raise ToolError(f"content={content} has no column {column.name} {column.kind}; choose from {columns}")


def to_microseconds(milliseconds: int) -> int | None:
    """Convert a stored time in milliseconds to Spark's microseconds; None if it is outside Spark's range."""
    return milliseconds * 1000 if -LARGEST_MILLISECONDS <= milliseconds <= LARGEST_MILLISECONDS else None


def timestamps(milliseconds: NDArray[np.int64]) -> pa.Array:
    """Convert stored times in milliseconds to an Arrow array, each as :func:`to_microseconds` does."""
    beyond = (milliseconds > LARGEST_MILLISECONDS) | (milliseconds < -LARGEST_MILLISECONDS)
    if beyond.any():
        return pa.array(np.where(beyond, 0, milliseconds) * 1000, pa.int64(), mask=beyond).cast(_TIMESTAMP)
    return pa.array(milliseconds * 1000, pa.int64()).view(_TIMESTAMP)


class RowBuffer:
    """A column-wise buffer of rows, flushed as Arrow batches.

    Args:
        schema: the columns that the query reads.
    """

    def __init__(self, schema: pa.Schema) -> None:
        self.schema = schema
        self._rows = 0
        self._bytes = 0
        self._columns: dict[str, list[Any]] = {name: [] for name in schema.names}
        self._arrays: dict[str, list[pa.Array]] = {name: [] for name in schema.names}

    def __contains__(self, column: str) -> bool:
        return column in self._columns

    def add(self, row: dict[str, Any], size: int = 0) -> None:
        """Add a row; a column missing in it becomes null, and a column that the query does not read is ignored."""
        for name, values in self._columns.items():
            values.append(row.get(name))
        self._rows += 1
        self._bytes += size

    def extend(self, columns: Mapping[str, Callable[[], pa.Array]], rows: int, size: int) -> None:
        """Add ``rows`` rows of ``size`` bytes, as arrays; an array is built only if the query reads its column."""
        self._settle()
        for name, arrays in self._arrays.items():
            arrays.append(columns[name]())
        self._rows += rows
        self._bytes += size

    @property
    def is_full(self) -> bool:
        """True if the buffer has reached the size of an Arrow batch, so that :meth:`flush` is due."""
        return self._rows >= ROWS or self._bytes >= BYTES

    def flush(self) -> Iterator[pa.RecordBatch]:
        """Yield the rows as one Arrow batch, if there are any, and empty the buffer."""
        if not self._rows:
            return
        self._settle()
        columns = [self._joined(name, arrays) for name, arrays in self._arrays.items()]
        rows, self._rows, self._bytes = self._rows, 0, 0
        for arrays in self._arrays.values():
            arrays.clear()
        if columns:
            yield pa.RecordBatch.from_arrays(columns, schema=self.schema)
        else:
            yield pa.RecordBatch.from_struct_array(pa.array([{}] * rows, pa.struct([])))

    def _settle(self) -> None:
        """Convert the rows that were added one by one to arrays."""
        for name, values in self._columns.items():
            if not values:
                continue
            wanted = self.schema.field(name).type
            array = pa.array(values, pa.int64()).cast(wanted) if wanted == _TIMESTAMP else pa.array(values, wanted)
            self._arrays[name].append(array)
            values.clear()

    def _joined(self, name: str, arrays: list[pa.Array]) -> pa.Array:
        wanted = self.schema.field(name).type
        if len({array.type for array in arrays}) > 1:
            arrays = [array.cast(wanted) for array in arrays]
        whole = arrays[0] if len(arrays) == 1 else pa.concat_arrays(arrays)
        return whole if whole.type == wanted else whole.cast(wanted)
