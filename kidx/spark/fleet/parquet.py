"""Data source for Parquet tables at URLs that fsspec opens and Hadoop does not."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from pyspark.sql.datasource import (
    DataSource,
    DataSourceArrowWriter,
    DataSourceReader,
    InputPartition,
    WriterCommitMessage,
)

from kidx.errors import ToolError
from kidx.storage import Store

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.types import StructType

NAME: Final = "kidx_parquet"


@dataclass(frozen=True)
class _Table:
    """Directory of Parquet files; the files are in directories ``COLUMN=…`` if ``by`` names a column."""

    store: Store
    by: str

    def files(self) -> list[str]:
        """Return the paths of the files within the store."""
        self.store.refresh()
        return sorted(path for path in self.store.filesystem.find(self.store.root) if path.endswith(".parquet"))

    def dataset_options(self) -> dict[str, Any]:
        """Return the options of a dataset in pyarrow."""
        import pyarrow as pa  # noqa: PLC0415 -- only where a task needs it
        from pyarrow import dataset  # noqa: PLC0415

        hive = dataset.partitioning(pa.schema([(self.by, pa.string())]), flavor="hive") if self.by else None
        return {"filesystem": self.store.filesystem, "format": "parquet", "partitioning": hive}


class ParquetOverFsspec(DataSource):
    """``format("kidx_parquet")``, with three options.

    ``path`` is the URL, ``by`` the column that names directories, ``storage`` the options of fsspec in JSON.
    """

    @classmethod
    def name(cls) -> str:
        """Return the name of the format."""
        return NAME

    def schema(self) -> StructType:
        """Reject a table without a given schema.

        Raises:
            ToolError: always.
        """
        raise ToolError(f"{NAME} requires a schema; call .schema(...) before .load(...)")

    def _table(self) -> _Table:
        store = Store(self.options["path"], json.loads(self.options.get("storage", "{}")))
        return _Table(store, self.options.get("by", ""))

    def reader(self, schema: StructType) -> DataSourceReader:
        """Return a reader of all files that exist."""
        return _Reader(self._table(), schema)

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceArrowWriter:  # noqa: ARG002
        """Return a writer of at least one file per task; overwritten files are deleted after all tasks have ended."""
        return _Writer(self._table(), overwrite=overwrite)


class _Reader(DataSourceReader):
    """Reader of a table, with one task per file."""

    def __init__(self, table: _Table, schema: StructType) -> None:
        self._table, self._schema = table, schema

    def partitions(self) -> Sequence[InputPartition]:
        return [InputPartition(path) for path in self._table.files()]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        import pyarrow as pa  # noqa: PLC0415 -- as above
        from pyarrow import dataset  # noqa: PLC0415
        from pyspark.sql.pandas.types import to_arrow_type  # noqa: PLC0415

        if partition is None or partition.value is None:
            return
        root = self._table.store.root
        found = dataset.dataset([partition.value], partition_base_dir=root, **self._table.dataset_options())
        utc = pa.timestamp("us", "UTC")  # Spark's type; a file may have the time zone of the session that wrote it
        # A file of an earlier version of kidx lacks later columns.
        columns = [
            dataset.field(each.name)
            if each.name in found.schema.names
            else dataset.scalar(pa.scalar(None, to_arrow_type(each.dataType)))
            for each in self._schema
        ]
        for batch in found.to_batches(columns=dict(zip(self._schema.names, columns, strict=True))):
            fields = [each.with_type(utc) if pa.types.is_timestamp(each.type) else each for each in batch.schema]
            yield batch.cast(pa.schema(fields))


@dataclass
class _Written(WriterCommitMessage):
    """Beginning of the names of the files that a task has written."""

    name: str


class _Writer(DataSourceArrowWriter):
    """Writer of a table."""

    def __init__(self, table: _Table, *, overwrite: bool) -> None:
        self._table, self._overwrite = table, overwrite

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        from pyarrow import dataset  # noqa: PLC0415 -- as above

        name = f"part-{uuid.uuid4().hex}"
        first = next(iterator, None)
        if first is not None:
            batches = (batch for some in ([first], iterator) for batch in some)
            dataset.write_dataset(
                batches,
                self._table.store.root,
                schema=first.schema,
                basename_template=f"{name}-{{i}}.parquet",
                existing_data_behavior="overwrite_or_ignore",
                **self._table.dataset_options(),
            )
        return _Written(name)

    def commit(self, messages: list[WriterCommitMessage | None]) -> None:
        if self._overwrite:
            names = tuple(message.name for message in messages if isinstance(message, _Written))
            for path in self._table.files():
                if not path.rpartition("/")[2].startswith(names):
                    self._table.store.filesystem.rm_file(path)

    def abort(self, messages: list[WriterCommitMessage | None]) -> None:
        """Keep the files of completed tasks: a later attempt continues with them."""
