"""Identity of a topic: offsets of a deleted topic mean nothing in the topic that was created under its name.

Brokers write the topic id to ``partition.metadata`` from 2.8 on. Without it, the first batch tells topics apart, unless
retention has deleted it or a cleaner may have rewritten it.
"""

from __future__ import annotations

from contextlib import suppress
from itertools import islice
from typing import TYPE_CHECKING

from kidx.discovery import PARTITION_METADATA
from kidx.errors import KidxError
from kidx.tables.batch_walk import BatchWalk
from kidx.tables.log_directory import topic_id_in

if TYPE_CHECKING:
    from kidx.tables.segments import PartitionLog, Segment

Identity = str | list[int] | None
"""Identity of a topic in a checkpoint: its id; or base offset, largest time and producer id of the first batch."""


def current_topic_id(segment: Segment) -> str:
    """Return the id of the topic that the directory of a segment belongs to now; empty if unknown.

    Raises:
        OSError: the id cannot be read.
    """
    return topic_id_in(segment.home_store, segment.home_store.entry(f"{segment.home}/{PARTITION_METADATA}"))


def identity_of(log: PartitionLog) -> Identity:
    """Return the identity of the topic of a log.

    Raises:
        OSError: the log cannot be read.
    """
    return log.topic_id or _first_batch(log)


def difference(before: Identity, now: Identity, log: PartitionLog) -> str:
    """Return how a topic differs from the topic that was read before; empty if no difference shows.

    Args:
        before: the identity of the topic that was read before.
        now: the identity of the topic of the log.

    Raises:
        OSError: the log cannot be read.
    """
    if isinstance(before, str) and isinstance(now, str):
        return "" if before == now else f"topic id {now} instead of {before}"
    if not isinstance(before, list) or log.is_cleaned:
        return ""
    first = now if isinstance(now, list) else _first_batch(log)
    if first is None or len(before) != len(first) or first[0] > before[0] or first == before:
        return ""
    said = "offset {}, time {} and producer {}"
    return f"its first batch has {said.format(*first)} instead of {said.format(*before)}"


def newest(before: Identity, now: Identity) -> Identity:
    """Return the identity to keep of a topic that is still the same: its id, or else the oldest batch that was seen."""
    return now if isinstance(now, str) or before is None else before


def _first_batch(log: PartitionLog) -> list[int] | None:
    """Return base offset, largest stated time and producer id of the first batch; None without a readable one."""
    segment = log.segments[0]
    with segment.store.open(segment.file("log")) as reader, suppress(KidxError):
        walk = BatchWalk(
            reader, 0, 0, reader.size, source=segment.name, wanted=lambda _: False, may_grow=segment.is_last
        )
        for _, batch, _ in islice(walk, 1):
            return [batch.base_offset, batch.max_timestamp, batch.producer_id]
    return None
