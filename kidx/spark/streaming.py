"""``readStream``: the records of a directory that a broker is writing to, by offset and each of them once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSourceReader, DataSourceStreamReader, InputPartition

from kidx.errors import ToolError
from kidx.tables.conditions import Conditions
from kidx.tables.indexes import Counter
from kidx.tables.offsets import LogOffsets, range_of
from kidx.tables.options import Bound
from kidx.tables.segments import TopicPartition
from kidx.tables.splits import chosen_partitions, plan_pieces

if TYPE_CHECKING:
    import pyarrow as pa

    from kidx.tables.options import ReadOptions

Offsets = dict[str, int]
"""The next offset of each partition, by ``topic-partition``; Spark keeps them in the query's checkpoint."""


class StreamReader(DataSourceStreamReader):
    """Micro-batches of ``content=records``: from ``startingOffsets`` on, up to the last whole batch of each log.

    A partition that appears later is read from its start. What retention takes before it is read is data loss.

    Args:
        reader: of the same columns and options, which does the reading.
        options: of the query.

    Raises:
        ToolError: another content, ends that are given, or transactions to be hidden.
    """

    def __init__(self, reader: DataSourceReader, options: ReadOptions) -> None:
        if options.content != "records":
            raise ToolError(f"readStream follows content=records, not {options.content}: use spark.read")
        if options.end != Bound(by_time=False, value=-1):
            raise ToolError("readStream has no end: endingOffsets and endingTimestamp go with spark.read")
        if options.isolation != "read_uncommitted":
            raise ToolError("readStream hides no transactions: isolationLevel=read_committed goes with spark.read")
        self._reader = reader
        self._options = options

    def initialOffset(self) -> Offsets:  # noqa: N802 -- Spark's name
        """Where a query without a checkpoint begins."""
        counter = Counter()
        return {
            str(log.key): range_of(log.key, log, self._options, counter)[0]
            for log in chosen_partitions(self._options, Conditions())
        }

    def latestOffset(self, start: Any = None, limit: Any = None) -> Offsets:  # noqa: N802 -- Spark's name
        """The end of each log as it is now, whatever the limit; Spark gives both arguments from 4.2 on."""
        del start, limit
        options, counter = self._from(EVERYTHING), Counter()
        return {
            str(log.key): LogOffsets(log, counter, use_indexes=options.use_indexes).end()
            for log in chosen_partitions(options, Conditions())
        }

    def partitions(self, start: Offsets, end: Offsets) -> Sequence[InputPartition]:
        """The tasks of a micro-batch.

        Raises:
            ToolError: records between the two are not there any more, and that is to fail.
        """
        tasks = []
        for name, last in end.items():
            topic, _, number = name.rpartition("-")
            key, first = TopicPartition(topic, int(number)), start.get(name, EVERYTHING.value)
            assert isinstance(first, int)
            if first == last:
                continue
            one = replace(
                self._from(Bound(by_time=False, value=first)), topics=None, pattern=None, assigned=frozenset({key})
            )
            pieces = plan_pieces(replace(one, end=Bound(by_time=False, value=last)), Conditions(), Counter())
            tasks += [InputPartition(each) for each in pieces]
        return tasks

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The rows of a task as Arrow batches."""
        return self._reader.read(partition)

    def _from(self, start: Bound) -> ReadOptions:
        return replace(self._options, start=start)


EVERYTHING = Bound(by_time=False, value=-2)
"""From the start of each log."""
