"""``readStream``: the records of a log directory that a broker is writing to, in order of offset, each record once."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from pyspark.sql.datasource import DataSourceReader, InputPartition

from kidx.errors import KidxError, ToolError
from kidx.spark.limits import LimitedStreamReader, Range, Waiting, default_limit, reject_limits, shared_out, takes_all
from kidx.tables.choosing import chosen_partitions
from kidx.tables.following import list_partitions, query_partition
from kidx.tables.identity import difference, newest
from kidx.tables.indexes import Counter
from kidx.tables.offsets import range_of
from kidx.tables.options import LATEST, UNUSED, Bound
from kidx.tables.predicates import Predicates
from kidx.tables.splits import plan_range, share_out

if TYPE_CHECKING:
    import pyarrow as pa

    from kidx.tables.following import PartitionState
    from kidx.tables.identity import Identity
    from kidx.tables.isolation import TransactionPosition
    from kidx.tables.options import ReadOptions
    from kidx.tables.splits import Split

Offsets = dict[str, int]
"""The next offset of each partition, by ``topic-partition``."""
Position = dict[str, Any]
"""The position in the query's checkpoint: :data:`Offsets`, and under :data:`IDENTITIES` which topics they belong to.

Earlier versions of kidx kept offsets alone.
"""
IDENTITIES: Final = "identities"
"""Key of the identities (:mod:`kidx.tables.identity`), by ``topic-partition``; no partition has this name."""

BEHIND: Final = "behind"
"""Key of the lag, in what ``lastProgress`` calls ``latestOffset``, by ``topic-partition``; only of those that lag."""

_SHORTER: Final = "it was truncated, or deleted and created again"
_logger: Final = logging.getLogger("kidx.spark")


def _parsed(position: Mapping[str, Any]) -> tuple[Offsets, dict[str, Identity]]:
    """Return the offsets of a position, and the identities."""
    offsets = {name: offset for name, offset in position.items() if name != IDENTITIES}
    return offsets, dict(position.get(IDENTITIES, {}))


def _position(
    offsets: Offsets, found: Mapping[str, PartitionState], before: Mapping[str, Identity] | None = None
) -> Position:
    """Return a position with the identities of the partitions that were found, or of those before."""
    before = before or {}
    now = {name: newest(before.get(name), found[name].identity if name in found else None) for name in offsets}
    known = {name: identity for name, identity in now.items() if identity is not None}
    return offsets | ({IDENTITIES: known} if known else {})


class StreamReader(LimitedStreamReader):
    """Reader of micro-batches of ``content=records``, from ``startingOffsets`` to the readable end of each log.

    The readable end is the smallest of three: the end of the last whole batch; the high watermark, if the broker has
    written it; and for ``read_committed`` the last stable offset. A partition that appears later is read from its
    start. As in Spark's Kafka source, records that were deleted before they are read are data loss.

    Args:
        reader: reader of the same columns and options, which does the reading.

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
        self._latest: Position = {}
        self._partitions: dict[str, PartitionState] = {}
        self._target: dict[str, PartitionState] | None = None
        # Ends of micro-batches that an earlier version of kidx has read beyond their planned end.
        self._already_read: Offsets = {}
        self._told: set[tuple[str, str]] = set()
        self._waiting = Waiting()
        self._transaction_positions: dict[str, TransactionPosition] = {}

    def initialOffset(self) -> Position:  # noqa: N802 -- Spark's name
        """Return the start of a query without a checkpoint."""
        logs = chosen_partitions(self._options, Predicates())
        found = list_partitions(self._options, [str(log.key) for log in logs])
        self._latest = _position({name: self._first(known) for name, known in found.items()}, found)
        return self._latest

    def _first(self, known: PartitionState) -> int:
        start, key = self._options.start, known.log.key
        if not start.by_time and start.of(key) == LATEST:
            return known.readable
        return query_partition(known.log, lambda now: range_of(key, now, self._options, Counter())[0], known.start)

    def latestOffset(self, start: Any = None, limit: Any = None) -> Position:  # noqa: N802 -- Spark's name
        """Return the end of the next micro-batch; Spark gives both arguments from 4.2 on.

        Raises:
            ToolError: data that was read no longer exists, and ``failOnDataLoss`` is true.
        """
        before, identities = _parsed(self._latest if start is None else start)
        self._partitions = found = (
            list_partitions(self._options, before, self._transaction_positions)
            if self._target is None
            else self._target
        )
        for name, known in found.items():
            if name in before and self._is_another_topic(name, identities.get(name), before[name], known):
                del before[name]
                identities.pop(name, None)
        ends = {name: self._end(name, known, before.get(name)) for name, known in found.items()}
        for name in before.keys() - ends.keys():
            if self._target is None or name not in list_partitions(self._options, [name]):
                self._report_data_loss(f"{name} no longer exists")
            else:
                ends[name] = before[name]
        limited = ends if takes_all(limit) else self._limited(before, ends, found)
        if limited is not None:
            self._latest = _position(limited, found, identities)
        elif start is not None:
            self._latest = start
        return self._latest

    def getDefaultReadLimit(self) -> Any:  # noqa: N802 -- Spark's name
        """Return the limits in the options, as far as Spark must know them."""
        return default_limit(self._options.limits)

    def reportLatestOffset(self) -> Position | None:  # noqa: N802 -- Spark's name
        """Return the current end of all readable data, and what the micro-batch leaves, for the query's progress."""
        ends, _ = _parsed(self._latest)
        behind = {}
        for name, known in self._partitions.items():
            if (left := known.readable - ends.get(name, known.readable)) > 0:
                behind[name] = {"offsets": left}
                with suppress(KidxError, OSError):  # no query fails for its progress
                    behind[name]["bytes"] = Range(known.log, ends[name], known.readable).bytes()
        offsets = {name: known.readable for name, known in self._partitions.items()}
        return offsets | ({BEHIND: behind} if behind else {}) or None

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802 -- Spark's name
        """Record the current end of the data as the end of the query."""
        self._target = list_partitions(self._options)

    def partitions(self, start: Position, end: Position) -> Sequence[InputPartition]:
        """Return the tasks of a micro-batch.

        Raises:
            ToolError: records between the two offsets no longer exist, and ``failOnDataLoss`` is true.
        """
        (firsts, old), (lasts, identities) = _parsed(start), _parsed(end)
        replaced = {name for name in firsts.keys() & old.keys() if old[name] != identities.get(name, old[name])}
        wanted = {name: last for name, last in lasts.items() if firsts.get(name) != last or name in replaced}
        for name in firsts.keys() - lasts.keys():
            self._report_data_loss(f"{name} no longer exists")
        # latestOffset has applied the isolation level to the end already.
        options = replace(self._options, isolation="read_uncommitted")
        found = list_partitions(options, wanted) if wanted else {}
        counter = Counter()
        splits: list[Split] = []
        for name, end_offset in wanted.items():
            known = found.get(name)
            if known is not None and self._is_another_topic(name, identities.get(name), firsts.get(name, 0), known):
                continue  # the next micro-batch begins in the new topic
            planned: list[Split] | None = None
            if known is not None:
                first = firsts.get(name)
                if first is not None and self._is_another_topic(name, old.get(name), first, known):
                    first = known.start
                first, last = self._bounds(name, known, first, end_offset)
                planned = plan_range(known.log, first, last, self._options, Predicates(), counter)
            if planned is None:
                self._report_data_loss(f"{name} no longer exists")
            splits += planned or []
        return [InputPartition(task) for task in share_out(splits, self._options, counter)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Yield the rows of a task as Arrow batches."""
        return self._reader.read(partition)

    def _end(self, name: str, known: PartitionState, before: int | None) -> int:
        """Return the end of the readable data of a partition; never less than before, unless it was truncated."""
        if before is None:
            return known.readable
        if known.end < before:
            self._report_data_loss(f"{name} was read up to offset {before}, and ends at {known.end}: {_SHORTER}")
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
                self._report_data_loss(f"the offset of {name} was changed from {first} to {last}: {_SHORTER}")
            else:
                self._already_read[name] = first
            return last, last
        first = max(first, self._already_read.get(name, first))
        if known.start > first:
            self._report_data_loss(f"{name} begins at offset {known.start}; offset {first} was deleted")
        if known.end < last:
            self._report_data_loss(f"{name} ends at offset {known.end}, before the requested offset {last}")
        return max(first, known.start), min(last, known.end)

    def _is_another_topic(self, name: str, identity: Identity, offset: int, known: PartitionState) -> bool:
        """Return True if a partition is not of the topic that was read up to an offset; this is data loss.

        Raises:
            ToolError: so it is, and ``failOnDataLoss`` is true.
        """
        other = query_partition(known.log, lambda now: difference(identity, known.identity, now), "")
        if other and (name, other) not in self._told:
            self._told.add((name, other))  # the end of the micro-batch that found it says more than was read
            self._report_data_loss(
                f"{name} was read up to offset {offset}, and is another topic now, with the offsets {known.start} to "
                f"{known.end}: {other}"
            )
        return bool(other)

    def _report_data_loss(self, what: str) -> None:
        if self._options.fail_on_data_loss:
            raise ToolError(f"{what}: some data may have been missed (failOnDataLoss=false continues)")
        _logger.warning("data loss: %s", what)

    def _limited(self, before: Offsets, ends: Offsets, found: Mapping[str, PartitionState]) -> Offsets | None:
        """Return the ends of a micro-batch within the limits; None if it waits for more data."""
        limits = self._options.limits
        firsts = {name: known.start for name, known in found.items()} | before
        sizes = {name: end - firsts[name] for name, end in ends.items() if end > firsts[name]}
        if self._target is None and not self._waiting.is_over(limits, sum(sizes.values())):
            return None
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
