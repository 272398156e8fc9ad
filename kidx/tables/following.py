"""State of the partitions of a live directory, polled by a stream: how far each can be read."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from kidx.errors import KidxError, ToolError
from kidx.tables.choosing import longest
from kidx.tables.identity import identity_of
from kidx.tables.indexes import Counter
from kidx.tables.isolation import last_stable_offset
from kidx.tables.offsets import LogOffsets
from kidx.tables.segments import Answer, find_partitions, retry_while_changing

if TYPE_CHECKING:
    from kidx.tables.identity import Identity
    from kidx.tables.isolation import TransactionPosition
    from kidx.tables.options import ReadOptions
    from kidx.tables.segments import PartitionLog

LISTINGS_FOR_MISSING: Final = 4
"""Number of listings before a partition counts as removed: while it moves between disks, no directory contains it."""
PAUSE: Final = 0.25
"""Seconds between two of these listings."""


@dataclass(frozen=True)
class PartitionState:
    """The state of a partition at one listing.

    Attributes:
        log: the replica with the largest end offset.
        start: the log start offset.
        end: the log end offset, after the last complete batch.
        readable: the end of the readable records. They are replicated, by the broker's checkpoint, and for
            ``read_committed`` below the first open transaction.
        identity: the identity of the topic (:mod:`kidx.tables.identity`); None if unknown.
    """

    log: PartitionLog
    start: int
    end: int
    readable: int
    identity: Identity = None


def list_partitions(
    options: ReadOptions, expected: Collection[str] = (), seen: dict[str, TransactionPosition] | None = None
) -> dict[str, PartitionState]:
    """List the partitions that a query reads, by ``TOPIC-PARTITION``.

    Args:
        expected: the partitions for which the listing is repeated if they are missing.
        seen: the transaction state, as in :func:`~kidx.tables.isolation.last_stable_offset`.

    Raises:
        ToolError: a log cannot be read, or replicas belong to different clusters.
        OSError: a directory cannot be read.
    """
    found = _list_once(options, seen)
    for _ in range(LISTINGS_FOR_MISSING - 1):
        if found.keys() >= set(expected):
            break
        time.sleep(PAUSE)
        found = _list_once(options, seen)
    return found


def _list_once(options: ReadOptions, seen: dict[str, TransactionPosition] | None) -> dict[str, PartitionState]:
    for store in options.stores:
        store.refresh()
    replicas = find_partitions(options.stores, options.wants, options.remote)
    marks: dict[str, int] = {}
    for log in replicas:
        if log.high_watermark is not None:
            marks[str(log.key)] = max(log.high_watermark, marks.get(str(log.key), 0))
    found: dict[str, PartitionState] = {}
    for log in longest(replicas, use_indexes=options.use_indexes):
        known = query_partition(log, lambda now: _state_of(now, marks.get(str(now.key)), options, seen), None)
        if known is not None:
            found[str(log.key)] = known
    return found


def _state_of(
    log: PartitionLog, high_watermark: int | None, options: ReadOptions, seen: dict[str, TransactionPosition] | None
) -> PartitionState | None:
    """Return the state of a partition; ``high_watermark`` is the largest of its replicas', or None if unknown."""
    offsets = LogOffsets(log, Counter(), use_indexes=options.use_indexes)
    end = offsets.end()
    bounds = [end] if high_watermark is None else [end, high_watermark]
    if options.isolation == "read_committed":
        settled = high_watermark or 0
        stable = last_stable_offset(log, Counter(), seen, settled, use_indexes=options.use_indexes)
        bounds += [] if stable is None else [stable]
    return PartitionState(log, offsets.start, end, max(offsets.start, min(bounds)), identity_of(log))


def query_partition(log: PartitionLog, query: Callable[[PartitionLog], Answer], if_removed: Answer) -> Answer:
    """Call :func:`kidx.tables.segments.retry_while_changing` and name the partition in errors.

    Raises:
        ToolError: the partition cannot be read.
    """
    try:
        return retry_while_changing(log, query, if_removed)
    except (KidxError, OSError) as error:
        raise ToolError(f"cannot read {log.key} in {log.store.name_of(log.directory)}: {error}") from error
