"""Strategies for topics and batches on a broker; each shrinks to its first value."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from hypothesis import strategies as st

from conformance.operations.broker import CODECS
from kidx.dialect import dialect_of

HOUR_MS: Final = 3_600_000
ROLLS_BY_SIZE: Final = 1 << 20
"""Minimum of ``segment.bytes`` in Kafka 4."""
LARGE: Final = 600_000
"""Size of a value; two such values exceed the minimum of ``segment.bytes``."""
INDEX_SETTINGS: Final[dict[str, st.SearchStrategy[Any]]] = {
    "segment.index.bytes": st.sampled_from((100, 100, 48, 2000)),
    "index.interval.bytes": st.sampled_from((100, 0, 300, 4096)),
    "message.timestamp.type": st.sampled_from(("CreateTime", "CreateTime", "LogAppendTime")),
    "compression.type": st.sampled_from(("producer", "producer", "uncompressed", "gzip", "lz4", "snappy", "zstd")),
}
"""Settings that a topic's indexes depend on, in addition to the size of its segments."""


class Shape(NamedTuple):
    """Batch to produce.

    Attributes:
        records: distance of each record's timestamp from the newest one (None for no timestamp), and the size of its
            value (None for a tombstone).
        codec: compression codec.
    """

    records: tuple[tuple[int | None, int | None], ...]
    codec: str = "none"


def settings(release: str) -> st.SearchStrategy[dict[str, Any]]:
    """Return topic settings under which a few kilobytes make several segments with a few entries each.

    An interval of 0 indexes every batch except the first. 100 bytes of index hold 12 offset entries or 8 time entries.
    The compaction lag prevents compaction, whose moment is not predictable. Retention by age would delete everything,
    because the records are from 2023. With one hour of ``segment.ms``, a timestamp can cause a roll.
    """
    small = tuple(size for size in (1500, 4000, 1500, ROLLS_BY_SIZE) if size >= dialect_of(release).smallest_segment)
    return st.fixed_dictionaries(
        {
            "segment.bytes": st.sampled_from(small),
            **INDEX_SETTINGS,
            "cleanup.policy": st.sampled_from(("delete", "delete", "compact,delete", "compact")),
            "segment.ms": st.sampled_from((HOUR_MS, 1 << 40)),
            "retention.ms": st.just(-1),
            "min.compaction.lag.ms": st.just((1 << 63) - 1),
        }
    )


def shapes(largest: int = 5) -> st.SearchStrategy[Shape]:
    """Draw batches of a few records whose timestamps increase, are equal, decrease or are missing.

    If the largest timestamp is in the middle, KAFKA-16310 has an effect. Compression determines which offset a leader
    stores in the index, and whether it rewrites the batch.
    """
    gap = st.sampled_from((10, 10, 10, 0, -5, 1000, None, -2000, 1))
    value = st.sampled_from((20, 20, 0, 150, None))
    return st.builds(
        Shape,
        st.lists(st.tuples(gap, value), min_size=1, max_size=largest).map(tuple),
        st.sampled_from(("none", "none", *CODECS)),
    )


def anchors() -> st.SearchStrategy[tuple[str, int]]:
    """Draw the offset before which records are deleted: the name of an offset, and a distance from it.

    ``active`` and ``second`` are the base offsets of these segments, ``half`` is the middle of the log.
    """
    place = st.sampled_from(("half", "active", "second", "end", "start", "high_watermark"))
    return st.tuples(place, st.sampled_from((0, 1, -1, 0)))
