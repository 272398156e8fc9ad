"""Fetch of records from remote segments, with the aborted transactions (``RemoteLogManager.read``; TL-16 … TL-19)."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from kidx.index.offset import OffsetPosition
from kidx.log import OffsetOutOfRangeError
from kidx.records import iter_memory_batches

if TYPE_CHECKING:
    from kidx.index.transaction import AbortedTxn
    from kidx.tiers.metadata import CopiedSegment
    from kidx.tiers.tiered_log import TieredLog

Aborted = tuple[tuple[int, int], ...]
"""Producer id and first offset of each aborted transaction, in order."""


class RemoteFetch(NamedTuple):
    """Result of a fetch from remote segments.

    Attributes:
        offset: base offset of the first batch; the requested offset without a batch, and up to 3.9.0.
        segment_base: base offset of its segment, or -1.
        position: position of the first batch in the segment, bytes, or -1; up to 3.9.0 where the search began (TL-18a).
        records: batches from the first one on; the last one may be incomplete.
        aborted: aborted transactions that a consumer must hide, or None if they were not collected.
    """

    offset: int
    segment_base: int = -1
    position: int = -1
    records: bytes = b""
    aborted: Aborted | None = None


class RemoteReader:
    """Reader of the remote segments of one log."""

    def __init__(self, log: TieredLog) -> None:
        self.log = log

    def fetch(self, offset: int, max_bytes: int, *, at_least_one: bool, committed: bool) -> RemoteFetch:
        """Return the records from the batch with an offset on, of one segment (TL-16).

        Args:
            max_bytes: maximum size of the result.
            at_least_one: True to return a first batch that is larger than ``max_bytes``.
            committed: True to collect aborted transactions (``read_committed``).

        Raises:
            OffsetOutOfRangeError: no referenced segment has the offset in the epoch that the log has for it.
            RemoteStorageError: storage fails.
            KidxError, OSError: an index of either tier cannot be read.
        """
        segment = self.find(offset)
        if segment is None:
            raise OffsetOutOfRangeError(f"the remote tier does not have offset {offset}")
        batch, content = None, b""
        while batch is None and segment is not None:
            found, content = segment, segment.files[".log"]
            start = self.log.lookup.cache.lookup_offset(segment.cached, offset)
            self.log.remote.require("fetch")
            batch = next((each for each in iter_memory_batches(content, start) if each.last_offset >= offset), None)
            if batch is None:
                segment = self.find(segment.end_offset + 1)
        if batch is None:
            return RemoteFetch(offset, aborted=() if committed else None)
        if not at_least_one and batch.size_in_bytes > max_bytes:
            return RemoteFetch(offset)
        size = max(batch.size_in_bytes, max_bytes) if at_least_one else max_bytes
        records = content[batch.position : batch.position + size]
        first = OffsetPosition(batch.base_offset, batch.position)
        if not self.log.dialect.remote_fetch_begins_at_batch:
            first = OffsetPosition(offset, start)
        aborted = self.aborted(found, batch.base_offset, first, len(records)) if committed else None
        return RemoteFetch(first.offset, found.start_offset, first.position, records, aborted)

    def find(self, offset: int) -> CopiedSegment | None:
        """Return the segment with an offset in the epoch that the log has for it, or None."""
        epoch = self.log.epochs.epoch_of(offset)
        return None if epoch is None else self.log.remote.find(epoch, offset)

    def aborted(self, segment: CopiedSegment, start: int, first: OffsetPosition, size: int) -> Aborted:
        """Return the aborted transactions of the segment and the following ones, then of local segments (TL-17).

        Args:
            segment: the segment of the first batch.
            start: base offset of the first batch.
            first: offset and position from which the bytes are counted.
            size: size of the fetched records in bytes.
        """
        offsets = self.log.lookup.cache.entry(segment.cached).offset_index
        bound = offsets.fetch_upper_bound_offset(first, size)
        upper = segment.end_offset + 1 if bound is None else bound.offset
        return tuple(sorted({(txn.producer_id, txn.first_offset) for txn in self._collect(segment, start, upper)}))

    def _collect(self, segment: CopiedSegment, start: int, upper: int) -> list[AbortedTxn]:
        """Return the aborted transactions until an index has one that is stable only at the bound or later."""
        collected: list[AbortedTxn] = []
        current: CopiedSegment | None = segment
        while current is not None:
            if not current.has_no_transactions:
                result = self.log.lookup.cache.collect_aborted_txns(current.cached, start, upper)
                collected += result.aborted_transactions
                if result.is_complete:
                    return collected
            current = self.following(current.end_offset + 1)
        for local in self.log.segments:
            result = local.txn_index.collect_aborted_txns(start, upper)
            collected += result.aborted_transactions
            if result.is_complete:
                break
        return collected

    def following(self, offset: int) -> CopiedSegment | None:
        """Return the segment from an offset on whose transaction index is searched next, or None (TL-18)."""
        log = self.log
        if not log.dialect.metadata_knows_empty_transactions:
            return self.find(offset)
        first = log.epochs.epoch_of(offset)
        if first is None:
            return None
        for entry in (each for each in log.epochs.entries if each.epoch >= first):
            segment = log.remote.find(entry.epoch, max(entry.start_offset, offset))
            while segment is not None and segment.has_no_transactions:
                segment = log.remote.find(entry.epoch, segment.end_offset + 1)
            if segment is not None:
                return segment
        return None
