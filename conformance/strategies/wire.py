"""What topics are interesting on a broker that only its protocol is known of; examples shrink to what stands first."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from conformance.kafka.releases import version_key
from conformance.strategies.broker import HOUR_MS, INDEX_SETTINGS, ROLLS_BY_SIZE


def settings(release: str) -> st.SearchStrategy[dict[str, Any]]:
    """Topic settings under which Kafka makes several segments of a few records.

    Nothing expires and nothing is compacted: neither moment could be seen from outside.
    """
    small = (1500, 4000, ROLLS_BY_SIZE) if version_key(release) < (4,) else (ROLLS_BY_SIZE,)
    return st.fixed_dictionaries(
        {
            "segment.bytes": st.sampled_from(small),
            **INDEX_SETTINGS,
            "cleanup.policy": st.just("delete"),
            "segment.ms": st.sampled_from((HOUR_MS, 1 << 40)),
            "retention.ms": st.just(-1),
        }
    )
