"""Configuration of a segment, and the values that decide if it is rolled (``LogConfig``, ``RollParams``)."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

from kidx.java_values import INT_MAX, INT_MIN

Clock = Callable[[], int]
"""Function that returns the wall clock in milliseconds since the epoch."""


def system_clock() -> int:
    """Return the clock of this machine in milliseconds."""
    return time.time_ns() // 1_000_000


@dataclass(frozen=True, slots=True)
class SegmentConfig:
    """Topic settings that segments use; defaults are Kafka's (SEG-25).

    Attributes:
        segment_bytes: ``segment.bytes``, the size at which a segment is rolled.
        segment_ms: ``segment.ms``, the age at which it is rolled.
        segment_jitter_ms: ``segment.jitter.ms``, the maximum time by which it is rolled earlier.
        segment_index_bytes: ``segment.index.bytes``, the preallocated size of a new index file.
        index_interval_bytes: ``index.interval.bytes``, bytes of log between two index entries.
        max_record_body_size: ``max.decompressed.message.bytes`` of 4.4, maximum size of a record in a timestamp search.
    """

    segment_bytes: int = 1 << 30
    segment_ms: int = 7 * 24 * 3_600_000
    segment_jitter_ms: int = 0
    segment_index_bytes: int = 10 << 20
    index_interval_bytes: int = 4096
    max_record_body_size: int = INT_MAX - 8

    def random_segment_jitter(self, choose: Callable[[], int] | None = None) -> int:
        """Return the milliseconds by which one segment is rolled early, drawn when it is opened (SEG-21).

        Args:
            choose: function that returns a Java ``int``; random by default.
        """
        if self.segment_jitter_ms == 0:
            return 0
        number = random.randint(INT_MIN, INT_MAX) if choose is None else choose()  # noqa: S311 -- spreads load
        # Utils.abs: the smallest int, which has no positive counterpart, becomes 0.
        return (0 if number == INT_MIN else abs(number)) % min(self.segment_jitter_ms, self.segment_ms)


class RollParams(NamedTuple):
    """Arguments of ``should_roll`` (``RollParams``).

    Attributes:
        max_segment_ms: age in milliseconds at which a segment is rolled.
        max_segment_bytes: size at which a segment is rolled.
        max_timestamp_in_messages: largest timestamp of the records that are about to be appended.
        max_offset_in_messages: last offset of these records.
        messages_size: size of these records in bytes.
        now: the wall clock in milliseconds.
    """

    max_segment_ms: int
    max_segment_bytes: int
    max_timestamp_in_messages: int
    max_offset_in_messages: int
    messages_size: int
    now: int
