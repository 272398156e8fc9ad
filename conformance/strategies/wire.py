"""Strategies for topics on a broker that is driven only by the protocol; each shrinks to its first value."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from conformance.strategies.broker import HOUR_MS, INDEX_SETTINGS, ROLLS_BY_SIZE
from kidx.dialect import dialect_of


def settings(release: str) -> st.SearchStrategy[dict[str, Any]]:
    """Return topic settings under which Kafka makes several segments of a few records.

    Records do not expire and topics are not compacted, because a client cannot see when this happens.
    """
    small = tuple(size for size in (1500, 4000, ROLLS_BY_SIZE) if size >= dialect_of(release).smallest_segment)
    return st.fixed_dictionaries(
        {
            "segment.bytes": st.sampled_from(small),
            **INDEX_SETTINGS,
            "cleanup.policy": st.just("delete"),
            "segment.ms": st.sampled_from((HOUR_MS, 1 << 40)),
            "retention.ms": st.just(-1),
        }
    )
