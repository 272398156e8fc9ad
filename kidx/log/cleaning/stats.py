"""Statistics of one round of cleaning."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(slots=True)
class CleanerStats:
    """Statistics of one round of cleaning (``CleanerStats``).

    Attributes:
        next_dirty_offset: offset at which the next round begins.
        map_records_read, map_bytes_read: records and bytes read to build the offset map.
        records_read, bytes_read: records and bytes read to copy segments; a batch that is discarded as a whole counts
            only its bytes.
        records_written, bytes_written: records and bytes retained.
        keyless: records without a key, which cannot be retained.
    """

    next_dirty_offset: int = 0
    map_records_read: int = 0
    map_bytes_read: int = 0
    records_read: int = 0
    bytes_read: int = 0
    records_written: int = 0
    bytes_written: int = 0
    keyless: int = 0
