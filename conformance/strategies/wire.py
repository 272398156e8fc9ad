"""Strategies for topics on a broker of which only the protocol is known; examples shrink to the first value of each."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from conformance.strategies.broker import HOUR_MS, INDEX_SETTINGS, ROLLS_BY_SIZE
from kidx.dialect import dialect_of


def settings(release: str) -> st.SearchStrategy[dict[str, Any]]:
    """Return topic settings under which Kafka makes several segments of a few records.

    Nothing expires and nothing is compacted, because the moment of neither is visible from outside.
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
