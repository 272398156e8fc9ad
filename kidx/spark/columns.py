"""Rows to Arrow batches of exactly the columns that Spark expects."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import repeat
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from kidx.errors import ToolError

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

ROWS: Final = 8192
"""Rows of an Arrow batch at most."""
BYTES: Final = 8 << 20
"""Bytes of keys and values in an Arrow batch, about."""
_LARGEST_MILLISECONDS: Final = (1 << 63) // 1000 - 1

_TIMESTAMP: Final = pa.timestamp("us", "UTC")
_TYPES: Final[dict[str, pa.DataType]] = {
    "binary": pa.binary(),
    "string": pa.string(),
    "int": pa.int32(),
    "bigint": pa.int64(),
    "boolean": pa.bool_(),
    "timestamp": _TIMESTAMP,
    "array<struct<key:string,value:binary>>": pa.list_(
        pa.field("element", pa.struct([pa.field("key", pa.string()), pa.field("value", pa.binary())]))
    ),
}


def arrow_schema(schema: StructType) -> pa.Schema:
    """The Arrow schema of a Spark schema that :mod:`kidx.spark.contents` has the columns of."""
    return pa.schema(
        [pa.field(field.name, _TYPES[field.dataType.simpleString()], field.nullable) for field in schema.fields]
    )


def check_columns(wanted: StructType, there: str, content: str) -> None:
    """A schema given by hand has columns of the content, with their types: fewer of them, in any order.

    Args:
        wanted: the schema.
        there: the columns of the content, as DDL.
        content: its name.

    Raises:
        ToolError: it has others.
    """
    types = dict(column.split(" ", 1) for column in there.split(", "))
    for field in wanted.fields:
        kind = field.dataType.simpleString()
        if types.get(field.name) != kind:
            columns = ", ".join(f"{name} {kind}" for name, kind in types.items())
            raise ToolError(f"content={content} has no column {field.name} {kind}; it has {columns}")


def to_microseconds(milliseconds: int) -> int | None:
    """A stored time as Spark has it; None if it is out of Spark's range."""
    return milliseconds * 1000 if -_LARGEST_MILLISECONDS <= milliseconds <= _LARGEST_MILLISECONDS else None


class RowBuffer:
    """Collects rows, column by column, until they are worth an Arrow batch.

    Args:
        schema: the wanted columns.
    """

    def __init__(self, schema: pa.Schema) -> None:
        self.schema = schema
        self._rows = 0
        self._bytes = 0
        self._columns: dict[str, list[Any]] = {name: [] for name in schema.names}

    def __contains__(self, column: str) -> bool:
        return column in self._columns

    def add(self, row: dict[str, Any], size: int = 0) -> None:
        """Adds a row; columns that it does not have are null, and those nobody wants are left out."""
        for name, values in self._columns.items():
            values.append(row.get(name))
        self._rows += 1
        self._bytes += size

    def extend(self, columns: Mapping[str, Iterable[Any]], rows: int, size: int) -> None:
        """Adds so many rows at once, as :meth:`add` does one; ``size`` bytes of keys and values."""
        for name, values in self._columns.items():
            values.extend(columns.get(name) or repeat(None, rows))
        self._rows += rows
        self._bytes += size

    @property
    def is_full(self) -> bool:
        """Whether it is time to :meth:`flush`."""
        return self._rows >= ROWS or self._bytes >= BYTES

    def flush(self) -> Iterator[pa.RecordBatch]:
        """The rows as one Arrow batch, if there are any; empties the buffer."""
        if not self._rows:
            return
        arrays = [
            pa.array(values, pa.int64()).cast(_TIMESTAMP)
            if self.schema.field(name).type == _TIMESTAMP
            else pa.array(values, self.schema.field(name).type)
            for name, values in self._columns.items()
        ]
        yield pa.RecordBatch.from_arrays(arrays, schema=self.schema)
        self._rows = self._bytes = 0
        for values in self._columns.values():
            values.clear()
