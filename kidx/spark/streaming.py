"""``readStream``: the records of a log directory that a broker is writing to, in order of offset, each record once."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from pyspark.sql.datasource import DataSourceReader, InputPartition

from kidx.errors import KidxError, ToolError
from kidx.spark.limits import LimitedStreamReader, Range, Waiting, default_limit, reject_limits, shared_out, takes_all
from kidx.tables.choosing import chosen_partitions
from kidx.tables.following import list_partitions, query_partition
from kidx.tables.indexes import Counter
from kidx.tables.offsets import range_of
from kidx.tables.options import LATEST, UNUSED, Bound
from kidx.tables.predicates import Predicates
from kidx.tables.splits import plan_range, share_out

if TYPE_CHECKING:
    import pyarrow as pa

    from kidx.tables.following import PartitionState
    from kidx.tables.isolation import TransactionPosition
    from kidx.tables.options import ReadOptions
    from kidx.tables.splits import Split

Offsets = dict[str, int]
"""The next offset of each partition, by ``topic-partition``; Spark keeps them in the query's checkpoint."""

_logger: Final = logging.getLogger("kidx.spark")


class StreamReader(LimitedStreamReader):
    """Reader of micro-batches of ``content=records``, from ``startingOffsets`` to the readable end of each log.

    The readable end is the smallest of three: the end of the last whole batch; the high watermark, if the broker has
    written it; and for ``read_committed`` the last stable offset. A partition that appears later is read from its
    start. As in Spark's Kafka source, records that were deleted before they are read are data loss.

    Args:
        reader: reader of the same columns and options, which does the reading.
        options: options of the query.

    Raises:
        ToolError: the content is not ``records``, an end is given, or this Spark does not support the limits.
    """

    def __init__(self, reader: DataSourceReader, options: ReadOptions) -> None:
        if options.content != "records":
            raise ToolError(f"readStream supports only content=records; read content={options.content} with spark.read")
        if options.end != Bound(by_time=False, value=-1):
            raise ToolError("readStream does not support endingOffsets and endingTimestamp; use spark.read")
        if options.all_replicas:
            raise ToolError(
                "readStream does not support replicas=all, because it reads one replica of each partition; "
                "use spark.read"
            )
        reject_limits(options.limits)
        if UNUSED in options.limits.given:
            _logger.warning("%s is not used: tasks are cut at maxPartitionBytes", UNUSED)
        self._reader = reader
        self._options = options
        self._latest: Offsets = {}
        self._partitions: dict[str, PartitionState] = {}
        self._target: dict[str, PartitionState] | None = None
        # Ends of micro-batches that an earlier version of kidx has read beyond their planned end.
        self._already_read: Offsets = {}
        self._waiting = Waiting()
        self._transaction_positions: dict[str, TransactionPosition] = {}

    def initialOffset(self) -> Offsets:  # noqa: N802 -- Spark's name
        """Return the start of a query without a checkpoint."""
        logs = chosen_partitions(self._options, Predicates())
        found = list_partitions(self._options, [str(log.key) for log in logs])
        self._latest = {name: self._first(known) for name, known in found.items()}
        return self._latest

    def _first(self, known: PartitionState) -> int:
        start, key = self._options.start, known.log.key
        if not start.by_time and start.of(key) == LATEST:
            return known.readable
        return query_partition(known.log, lambda now: range_of(key, now, self._options, Counter())[0], known.start)

    def latestOffset(self, start: Any = None, limit: Any = None) -> Offsets:  # noqa: N802 -- Spark's name
        """Return the end of the next micro-batch; Spark gives both arguments from 4.2 on.

        Raises:
            ToolError: data that was read no longer exists, and ``failOnDataLoss`` is true.
        """
        before: Offsets = dict(self._latest if start is None else start)
        self._partitions = found = (
            list_partitions(self._options, before, self._transaction_positions)
            if self._target is None
            else self._target
        )
        ends = {name: self._end(name, known, before.get(name)) for name, known in found.items()}
        for name in before.keys() - ends.keys():
            if self._target is None or name not in list_partitions(self._options, [name]):
                self._report_data_loss(f"{name} no longer exists")
            else:
                ends[name] = before[name]
        self._latest = ends if takes_all(limit) else self._limited(before, ends, found)
        return self._latest

    def getDefaultReadLimit(self) -> Any:  # noqa: N802 -- Spark's name
        """Return the limits in the options, as far as Spark must know them."""
        return default_limit(self._options.limits)

    def reportLatestOffset(self) -> Offsets | None:  # noqa: N802 -- Spark's name
        """Return the current end of all readable data, for the query's progress."""
        return {name: known.readable for name, known in self._partitions.items()} or None

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802 -- Spark's name
        """Record the current end of the data as the end of the query."""
        self._target = list_partitions(self._options)

    def partitions(self, start: Offsets, end: Offsets) -> Sequence[InputPartition]:
        """Return the tasks of a micro-batch.

        Raises:
            ToolError: records between the two offsets no longer exist, and ``failOnDataLoss`` is true.
        """
        wanted = {name: last for name, last in end.items() if start.get(name) != last}
        for name in start.keys() - end.keys():
            self._report_data_loss(f"{name} no longer exists")
        # latestOffset has applied the isolation level to the end already.
        found = list_partitions(replace(self._options, isolation="read_uncommitted"), wanted) if wanted else {}
        counter = Counter()
        splits: list[Split] = []
        for name in wanted:
            if name in found:
                first, last = self._bounds(name, found[name], start.get(name), end[name])
                if first < last:
                    splits += plan_range(found[name].log, first, last, self._options, Predicates(), counter)
            else:
                self._report_data_loss(f"{name} no longer exists")
        return [InputPartition(task) for task in share_out(splits, self._options, counter)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Yield the rows of a task as Arrow batches."""
        return self._reader.read(partition)

    def _end(self, name: str, known: PartitionState, before: int | None) -> int:
        """Return the end of the readable data of a partition; never less than before, unless it was re-created."""
        if before is None:
            return known.readable
        if known.end < before:
            self._report_data_loss(
                f"{name} was read up to offset {before}, and ends at {known.end}: it was deleted and re-created"
            )
            return known.readable
        return max(before, known.readable)

    def _bounds(self, name: str, known: PartitionState, first: int | None, last: int) -> tuple[int, int]:
        """Return the planned offsets that can be read."""
        if first is None:
            if known.start > 0:
                self._report_data_loss(f"{name} is new and begins at offset {known.start} instead of 0")
            return known.start, last
        if first > last:
            # Earlier versions of kidx planned such micro-batches while a broker was writing, and read up to ``first``.
            if known.end < first:
                self._report_data_loss(
                    f"the offset of {name} was changed from {first} to {last}: it was deleted and re-created"
                )
            else:
                self._already_read[name] = first
            return last, last
        first = max(first, self._already_read.get(name, first))
        if known.start > first:
            self._report_data_loss(f"{name} begins at offset {known.start}; offset {first} was deleted")
        if known.end < last:
            self._report_data_loss(f"{name} ends at offset {known.end}, before the requested offset {last}")
        return max(first, known.start), min(last, known.end)

    def _report_data_loss(self, what: str) -> None:
        if self._options.fail_on_data_loss:
            raise ToolError(f"{what}: some data may have been missed (failOnDataLoss=false continues)")
        _logger.warning("data loss: %s", what)

    def _limited(self, before: Offsets, ends: Offsets, found: Mapping[str, PartitionState]) -> Offsets:
        """Return the ends of a micro-batch within the limits."""
        limits = self._options.limits
        firsts = {name: known.start for name, known in found.items()} | before
        sizes = {name: end - firsts[name] for name, end in ends.items() if end > firsts[name]}
        if self._target is None and not self._waiting.is_over(limits, sum(sizes.values())):
            return before
        result = dict(ends)
        if limits.most_offsets is not None:
            for name, size in shared_out(limits.most_offsets, sizes).items():
                result[name] = firsts[name] + size
        if limits.most_bytes is not None:
            try:
                ranges = {name: Range(found[name].log, firsts[name], ends[name]) for name in sizes}
                for name, size in shared_out(
                    limits.most_bytes, {n: each.bytes() for n, each in ranges.items()}
                ).items():
                    result[name] = min(result[name], ranges[name].offset_after(size))
            except FileNotFoundError:
                pass  # a segment was removed in the meantime: this micro-batch is not limited by bytes
            except (KidxError, OSError) as error:
                raise ToolError(f"maxBytesPerTrigger cannot be applied: {error}") from error
        return result
