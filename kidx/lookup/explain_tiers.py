"""Path of a lookup by time across tiers: the segments of each tier that are considered, up to the record."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kidx.lookup.explain import Explanation, SegmentVisit, count, search_by_time

if TYPE_CHECKING:
    from kidx.lookup.tiered_log import TieredLog


def explain_across_tiers(log: TieredLog, timestamp: int) -> Explanation:
    """Explain how the first record with a timestamp ≥ ``timestamp`` is found (LO-19).

    Raises:
        KidxError, OSError: an index or a log cannot be read.
    """
    explanation = Explanation("timestamp", timestamp)
    for visit in log.path_to(timestamp):
        segment = visit.segment
        explanation.segments.append(
            SegmentVisit(
                segment.base_offset, segment.largest_timestamp, visit.start is not None, visit.why, segment.tier
            )
        )
        if visit.start is not None:
            search_by_time(explanation, segment, visit.start)
        if explanation.answer is not None:
            break
    count(explanation, log)
    return explanation
