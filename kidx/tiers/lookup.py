"""Lookup by time in the remote segments of a log (``RemoteLogManager.findOffsetByTimestamp``; LO-19)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from kidx.log.lookup import find_in_segments
from kidx.records import iter_memory_batches
from kidx.remote import RemoteIndexCache, RemoteResourceNotFoundError, RemoteSegment
from kidx.remote.lineage import is_within, with_records
from kidx.remote.loading import release_handles
from kidx.segment import TimestampAndOffset
from kidx.tiers.metadata import COPY_FINISHED, CopiedSegment

if TYPE_CHECKING:
    from kidx.log import UnifiedLog
    from kidx.tiers.metadata import RemoteMetadata

_CACHE_BYTES = 1 << 30
"""Maximum size of the cache of index files: the default of ``remote.log.index.file.cache.total.size.bytes``."""


class RemoteLookup:
    """Search in the remote segments of one log, with a cache of their index files next to the log's directory.

    Args:
        log: the log.
        remote: metadata of the remote segments.
    """

    def __init__(self, log: UnifiedLog, remote: RemoteMetadata) -> None:
        self._log, self._remote = log, remote
        self.cache = RemoteIndexCache(
            log.directory.parent, self, max_size=_CACHE_BYTES, clock=log.clock, dialect=log.dialect
        )

    def close(self) -> None:
        """Close the cached files."""
        release_handles(self.cache.entries)

    def fetch_index(self, segment: RemoteSegment, kind: str) -> Iterable[bytes]:
        """Fetch a copied file; see :class:`kidx.remote.RemoteStorage`."""
        files = self._remote.segments[int.from_bytes(segment.id)].files
        if kind not in files:
            raise RemoteResourceNotFoundError(f"there is no {segment.file_name(kind)}")
        return (files[kind],)

    def lineage(self) -> dict[int, int]:
        """Return the start offset of each leader epoch of the log that has records."""
        return with_records({entry.epoch: entry.start_offset for entry in self._log.epochs.entries})

    def is_valid(self, segment: CopiedSegment, lineage: dict[int, int]) -> bool:
        """Return True if a remote segment belongs to the log."""
        log = self._log
        return is_within(segment.epochs, segment.end_offset + 1, lineage, log.end_offset, log.dialect)

    def find(self, timestamp: int, starting_offset: int) -> TimestampAndOffset | None:
        """Return the first record with that timestamp or a later one, or None.

        Args:
            timestamp: milliseconds.
            starting_offset: minimum offset of the record.

        Raises:
            KidxError, OSError: an index or a log cannot be read.
        """
        log = self._log
        first = log.epochs.epoch_of(starting_offset)
        if first is None:
            return None
        lineage = self.lineage()
        for epoch in [entry.epoch for entry in log.epochs.entries if entry.epoch >= first]:
            for segment in self._remote.of_epoch(epoch):
                if (
                    segment.max_timestamp < timestamp
                    or segment.end_offset < starting_offset
                    or not self.is_valid(segment, lineage)
                    or (segment.state != COPY_FINISHED and log.dialect.lookup_omits_unfinished_copies)
                ):
                    continue
                is_local = segment.start_offset >= log.segments.first.base_offset
                if not (is_local and log.dialect.prefers_local_segments):
                    return self.find_in(segment, timestamp, starting_offset)
                if any(each.largest_timestamp >= timestamp for each in log.segments):
                    return find_in_segments(log, timestamp, starting_offset)
        return None

    def find_in(self, segment: CopiedSegment, timestamp: int, starting_offset: int) -> TimestampAndOffset | None:
        """Return the first record of a remote segment with that timestamp or a later one, or None."""
        position = self.cache.lookup_timestamp(segment.cached, timestamp, starting_offset)
        self._remote.require("fetch")
        for batch in iter_memory_batches(segment.files[".log"][position:]):
            if batch.max_timestamp < timestamp or batch.last_offset < starting_offset:
                continue
            for record in batch.offset_timestamps(streaming=True):
                if record.timestamp >= timestamp and record.offset >= starting_offset:
                    epoch = batch.partition_leader_epoch
                    return TimestampAndOffset(record.timestamp, record.offset, epoch if epoch >= 0 else None)
        return None
