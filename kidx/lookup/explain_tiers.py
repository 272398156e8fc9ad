"""Path of a lookup by time across tiers: which segments of which tier are considered, and which one has the record."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kidx.lookup.explain import Explanation, SegmentVisit, count, scan, search

if TYPE_CHECKING:
    from kidx.lookup.tiered_log import TieredLog, Visit


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
            _search(explanation, visit, visit.start)
        if explanation.answer is not None:
            break
    count(explanation, log)
    return explanation


def _search(explanation: Explanation, visit: Visit, start: int) -> None:
    timestamp, segment = explanation.target, visit.segment
    entry, explanation.time_index = search(segment.reader.time_index, timestamp)
    found, explanation.offset_index = search(segment.offset_index, max(entry.offset, start))
    scan(
        explanation,
        segment,
        found.position,
        lambda batch: batch.max_timestamp >= timestamp,
        lambda record: record.timestamp >= timestamp and record.offset >= start,
    )
