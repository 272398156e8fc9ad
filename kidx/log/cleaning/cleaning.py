"""What one round of cleaning has done."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(slots=True)
class Cleaning:
    """What one round of cleaning has done (``CleanerStats``).

    Attributes:
        next_dirty_offset: where the next round begins.
        map_records_read, map_bytes_read: while the newest offset of each key was looked for.
        records_read, bytes_read: while segments were copied; batches that go as a whole have their bytes counted only.
        records_written, bytes_written: what was left.
        keyless: records without a key, which cannot be kept.
    """

    next_dirty_offset: int = 0
    map_records_read: int = 0
    map_bytes_read: int = 0
    records_read: int = 0
    bytes_read: int = 0
    records_written: int = 0
    bytes_written: int = 0
    keyless: int = 0
