"""Timestamps that are looked up in each log at the end of the recording of a golden corpus."""

from __future__ import annotations

from itertools import pairwise
from typing import Final

from conformance.kafka.client import LARGEST_TARGET, SPECIAL_TARGETS

_DAY_MS: Final = 86_400_000
_SAMPLED_EVERY: Final = 4


def targets(timestamps: list[int]) -> list[int]:
    """Return the targets to look up in a log with these timestamps, which are in log order.

    The right result changes at each record whose timestamp exceeds all earlier ones, so these timestamps and both
    neighbours are targets. Further targets are some other timestamps, values far outside, and the special targets.
    """
    highs = {0}.union(after for before, after in pairwise(_running_maximum(timestamps)) if after > before)
    around = {timestamp + step for timestamp in highs for step in (-1, 0, 1)}
    others = set(sorted(set(timestamps))[::_SAMPLED_EVERY])
    outside = {1, max(timestamps, default=0) + _DAY_MS, LARGEST_TARGET}
    return [*SPECIAL_TARGETS, *sorted(target for target in around | others | outside if target >= 0)]


def _running_maximum(timestamps: list[int]) -> list[int]:
    largest, seen = -1, [-1]
    for timestamp in timestamps:
        largest = max(largest, timestamp)
        seen.append(largest)
    return seen
