"""What topics and batches are interesting on a broker, and why; examples shrink to what stands first."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from hypothesis import strategies as st

from conformance.kafka.releases import version_key
from conformance.operations.broker import CODECS

HOUR_MS: Final = 3_600_000
ROLLS_BY_SIZE: Final = 1 << 20
"""What Kafka 4 takes for ``segment.bytes`` at least; two large values reach it."""
LARGE: Final = 600_000
INDEX_SETTINGS: Final[dict[str, st.SearchStrategy[Any]]] = {
    "segment.index.bytes": st.sampled_from((100, 100, 48, 2000)),
    "index.interval.bytes": st.sampled_from((100, 0, 300, 4096)),
    "message.timestamp.type": st.sampled_from(("CreateTime", "CreateTime", "LogAppendTime")),
    "compression.type": st.sampled_from(("producer", "producer", "uncompressed", "gzip", "lz4", "snappy", "zstd")),
}
"""What a topic's indexes depend on, besides the size of its segments."""


class Shape(NamedTuple):
    """Records to be: for each the distance of its timestamp from the newest one (None: no timestamp), and its value."""

    records: tuple[tuple[int | None, int | None], ...]
    codec: str = "none"


def settings(release: str) -> st.SearchStrategy[dict[str, Any]]:
    """Topic settings under which a few kilobytes make several segments with a few entries each.

    An interval of 0 indexes every batch but the first; 100 bytes of index hold 12 offset and 8 time entries, of which
    one is kept free. The cleaner would compact when it likes, so it may not within the life of a broker; retention by
    age would delete everything, because the records are of 2023. One hour of ``segment.ms`` lets a timestamp roll.
    """
    small = (1500, 4000, 1500, ROLLS_BY_SIZE) if version_key(release) < (4,) else (ROLLS_BY_SIZE,)
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
    """Batches of a few records, their timestamps growing, equal, going back or missing.

    The largest timestamp in the middle is what KAFKA-16310 is about. Compression decides which offset a leader notes,
    and whether it writes the batch anew.
    """
    gap = st.sampled_from((10, 10, 10, 0, -5, 1000, None, -2000, 1))
    value = st.sampled_from((20, 20, 0, 150, None))
    return st.builds(
        Shape,
        st.lists(st.tuples(gap, value), min_size=1, max_size=largest).map(tuple),
        st.sampled_from(("none", "none", *CODECS)),
    )


def anchors() -> st.SearchStrategy[tuple[str, int]]:
    """Where records are deleted up to: an offset that means something, or one beside it."""
    place = st.sampled_from(("half", "active", "second", "end", "start", "high_watermark"))
    return st.tuples(place, st.sampled_from((0, 1, -1, 0)))
