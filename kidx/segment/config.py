"""What a segment is configured with, and what decides whether it is rolled (``LogConfig``, ``RollParams``)."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

from kidx.java_numbers import INT_MAX, INT_MIN

Clock = Callable[[], int]
"""The wall clock: milliseconds since the epoch."""


def system_clock() -> int:
    """The machine's own clock, in milliseconds."""
    return time.time_ns() // 1_000_000


@dataclass(frozen=True, slots=True)
class SegmentConfig:
    """The topic settings that segments read; defaults are Kafka's (SEG-25).

    Attributes:
        segment_bytes: ``segment.bytes``, the size at which a segment is rolled.
        segment_ms: ``segment.ms``, the age at which it is rolled.
        segment_jitter_ms: ``segment.jitter.ms``, how much earlier at most.
        segment_index_bytes: ``segment.index.bytes``, what a new index file is preallocated to.
        index_interval_bytes: ``index.interval.bytes``, bytes of log between two index entries.
        max_record_body_size: ``max.decompressed.message.bytes`` of 4.4, bytes of one record in a timestamp search.
    """

    segment_bytes: int = 1 << 30
    segment_ms: int = 7 * 24 * 3_600_000
    segment_jitter_ms: int = 0
    segment_index_bytes: int = 10 << 20
    index_interval_bytes: int = 4096
    max_record_body_size: int = INT_MAX - 8

    def random_segment_jitter(self, choose: Callable[[], int] | None = None) -> int:
        """Milliseconds that one segment is rolled early, drawn when it is opened (SEG-21).

        Args:
            choose: gives a Java ``int``; random by default.
        """
        if self.segment_jitter_ms == 0:
            return 0
        number = random.randint(INT_MIN, INT_MAX) if choose is None else choose()  # noqa: S311 -- spreads load
        # Utils.abs: the one int without an opposite counts as 0.
        return (0 if number == INT_MIN else abs(number)) % min(self.segment_jitter_ms, self.segment_ms)


class RollParams(NamedTuple):
    """What ``should_roll`` looks at (``RollParams``).

    ``max_timestamp_in_messages`` and ``max_offset_in_messages`` are those of the call about to be appended,
    ``messages_size`` its bytes, ``now`` the wall clock in milliseconds.
    """

    max_segment_ms: int
    max_segment_bytes: int
    max_timestamp_in_messages: int
    max_offset_in_messages: int
    messages_size: int
    now: int
