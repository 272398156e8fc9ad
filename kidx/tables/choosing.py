"""Choice of the partitions that a query reads, and of one replica of each."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from kidx.errors import KidxError, ToolError
from kidx.tables.indexes import Counter
from kidx.tables.offsets import LogOffsets, check_tables
from kidx.tables.segments import TopicPartition, find_partitions

if TYPE_CHECKING:
    from kidx.tables.options import ReadOptions
    from kidx.tables.predicates import Predicates
    from kidx.tables.segments import PartitionLog


def chosen_partitions(options: ReadOptions, predicates: Predicates) -> list[PartitionLog]:
    """Return the replicas that a query reads: the longest replica of each partition, or all with ``replicas=all``.

    Raises:
        ToolError: a root holds no segments; or a partition or topic that was named does not exist; or partitions of the
            same name belong to several clusters.
        OSError: a directory cannot be read.
    """
    logs = find_partitions(options.stores, options.wants, options.remote)
    keys = {log.key for log in logs}
    missing = sorted((options.topics or frozenset()) - {key.topic for key in keys})
    missing += sorted(map(str, (options.assigned or frozenset()) - keys))
    if missing or not logs:
        topics = {log.key.topic for log in find_partitions(options.stores)}
        if missing:
            raise ToolError(f"unknown topic or partition {', '.join(missing)}; choose from {', '.join(sorted(topics))}")
    if options.content in ("records", "batches"):
        check_tables(keys, options)
    if not options.all_replicas:
        logs = longest(logs, use_indexes=options.use_indexes)
    return [log for log in logs if predicates.admits(log.key)]


def longest(logs: Iterable[PartitionLog], *, use_indexes: bool = True) -> list[PartitionLog]:
    """Return the replica with the largest end offset of each partition.

    Raises:
        ToolError: two replicas of a partition belong to different clusters.
    """
    replicas: dict[TopicPartition, list[PartitionLog]] = {}
    for log in logs:
        replicas.setdefault(log.key, []).append(log)
    return [_longest(key, each, use_indexes) if len(each) > 1 else each[0] for key, each in replicas.items()]


def _longest(key: TopicPartition, logs: list[PartitionLog], use_indexes: bool) -> PartitionLog:
    clusters = sorted({log.cluster for log in logs if log.cluster})
    if len(clusters) > 1:
        raise ToolError(
            f"{key} has replicas of the clusters {' and '.join(clusters)};"
            " read each cluster separately, or use replicas=all"
        )

    def end(log: PartitionLog) -> tuple[int, int, int]:
        last = log.segments[-1]
        try:
            return LogOffsets(log, Counter(), use_indexes=use_indexes).end(), last.base_offset, last.size
        except (KidxError, OSError):
            return last.base_offset, last.base_offset, last.size

    return max(logs, key=end)
