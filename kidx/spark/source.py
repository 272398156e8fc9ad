"""Data source ``kafka_segments`` for Spark's Python Data Source API."""

from __future__ import annotations

import logging
import sys
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, Final

from pyspark.sql.datasource import DataSource, DataSourceReader, DataSourceStreamReader, InputPartition

from kidx.spark.catalog import kept_options, table_options, with_options
from kidx.tables.contents import columns_of
from kidx.tables.options import ReadOptions, read_options

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.types import StructType

    from kidx.tables.columns import Column

_logger: Final = logging.getLogger("kidx.spark")
_PUSHING_PLANNER: Final = "data_source_pushdown_filters.py"
"""Spark's module that calls :meth:`KafkaSegmentsSource.reader` if filter pushdown is on."""

# By content, the column for each condition that is used.
_CONDITION_COLUMNS: Final = {
    "records": {"topic": "topic", "partition": "partition", "offset": "offset", "timestamp": "timestamp"},
    # Other contents have few rows: only conditions that exclude whole files help.
    "batches": {"topic": "topic", "partition": "partition"},
}


class KafkaSegmentsSource(DataSource):
    """``kafka_segments``: see :mod:`kidx.spark` and :mod:`kidx.tables.options`."""

    @classmethod
    def name(cls) -> str:
        """Return the name of the format."""
        return "kafka_segments"

    def schema(self) -> str | StructType:
        """Return the requested columns.

        Raises:
            ToolError: an option is wrong.
        """
        of_table = table_options(self.options)
        options = read_options(dict(self.options) if of_table is None else of_table, may_stream=True)
        return options.columns if of_table is None else with_options(options.columns, of_table)

    def reader(self, schema: StructType) -> DataSourceReader:
        """Return a reader of the columns in ``schema``.

        Raises:
            ToolError: an option is wrong, or the content has no such columns.
        """
        options = self._read_options(schema)
        _check(schema, options)
        # If pushdown is off in the session, Spark rejects a reader that offers it. Only the calling module shows that.
        pushes = sys._getframe(1).f_code.co_filename.endswith(_PUSHING_PLANNER)  # noqa: SLF001
        return (PushingReader if pushes and options.push_down else SegmentsReader)(schema, options)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802 -- Spark's name
        """Return a reader of logs that a broker continues to write.

        Raises:
            ToolError: an option is wrong, the content has no such columns, or a stream cannot read it.
        """
        from kidx.spark.streaming import StreamReader  # noqa: PLC0415

        options = self._read_options(schema, may_stream=True)
        _check(schema, options)
        return StreamReader(SegmentsReader(schema, options), options)

    def _read_options(self, schema: StructType, *, may_stream: bool = False) -> ReadOptions:
        """Parse the options of a query, and of the table that it reads."""
        return read_options({**kept_options(schema), **dict(self.options)}, may_stream=may_stream)


def _check(schema: StructType, options: ReadOptions) -> None:
    from kidx.tables.columns import check_columns  # noqa: PLC0415 -- not to be imported when Spark looks for sources

    check_columns(_columns(schema), columns_of(options.content, headers=options.content == "records"), options.content)


def _columns(schema: StructType) -> list[Column]:
    from kidx.tables.columns import Column  # noqa: PLC0415

    return [Column(field.name, field.dataType.simpleString(), field.nullable) for field in schema.fields]


class SegmentsReader(DataSourceReader):
    """Reader of a batch query, which plans in the driver and reads in the tasks."""

    def __init__(self, schema: StructType, options: ReadOptions) -> None:
        from kidx.tables.predicates import Predicates  # noqa: PLC0415

        self.columns = schema
        self.options = options
        self.conditions = Predicates()
        self.pushed: list[str] = []

    def partitions(self) -> list[InputPartition]:
        """Return the work of each task.

        Raises:
            ToolError: the requested data does not exist, or cannot be read.
        """
        from kidx.spark.metrics import record_metrics  # noqa: PLC0415
        from kidx.tables.indexes import Counter  # noqa: PLC0415
        from kidx.tables.splits import plan_segments, plan_splits  # noqa: PLC0415

        if self.options.limits.given:
            names = ", ".join(self.options.limits.given)
            _logger.warning("%s: not used in a batch query", names)
        counter = Counter()
        if self.options.content in ("records", "batches"):
            tasks = plan_splits(self.options, self.conditions, counter)
        else:
            tasks = plan_segments(self.options, self.conditions)
        record_metrics(self.options.metrics, "plan", counter, self.pushed)
        return [InputPartition(splits) for splits in tasks or [[]]]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Yield the rows of a task as Arrow batches.

        Raises:
            ToolError: a segment is corrupt and ``failOnDataLoss`` is true.
        """
        from kidx.spark.metrics import record_metrics  # noqa: PLC0415
        from kidx.tables.columns import RowBuffer, arrow_schema  # noqa: PLC0415
        from kidx.tables.indexes import Counter  # noqa: PLC0415
        from kidx.tables.non_record_tables import rows  # noqa: PLC0415
        from kidx.tables.split_reader import reader_of  # noqa: PLC0415

        options, counter = self.options, Counter()
        buffer = RowBuffer(arrow_schema(_columns(self.columns)))
        reader = reader_of(options, self.conditions)

        def read() -> Iterator[pa.RecordBatch]:
            for split in partition.value:
                if options.content == "records":
                    yield from reader.records(split, buffer, counter)
                else:
                    yield from rows(options.content, split, buffer, counter)
            yield from buffer.flush()

        number = 0
        try:
            for batch in read():
                number += batch.num_rows
                yield batch
        finally:  # also if Spark needs no more rows
            segments = len({(split.segment.directory, split.segment.base_offset) for split in partition.value})
            record_metrics(options.metrics, "read", counter, rows=number, segments=segments)


class PushingReader(SegmentsReader):
    """A reader for sessions with ``spark.sql.python.filterPushdown.enabled``, and the option ``pushDown``.

    Spark 4.1 to 4.3 keep one plan for all scans of a DataFrame: the plan for the last conditions. Another
    query of the DataFrame, without conditions, or another part of the same query would only read what these select.
    """

    def pushFilters(self, filters: list[Any]) -> Iterable[Any]:  # noqa: N802 -- Spark's name
        """Use the conditions that reduce reading, and return all: Spark evaluates them again on the rows."""
        from kidx.tables.predicates import predicates_of, pushed  # noqa: PLC0415

        columns = _CONDITION_COLUMNS.get(self.options.content, _CONDITION_COLUMNS["batches"])
        self.conditions, self.pushed = predicates_of(filters, columns), pushed(filters, columns)
        return filters
