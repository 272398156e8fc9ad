"""Immutable entries and search results of the indexes."""

from __future__ import annotations

from typing import NamedTuple

from kidx.layout import TIME_INDEX

_NO_TIMESTAMP = -1


class OffsetPosition(NamedTuple):
    """Entry of an offset index: the record ``offset`` is in the batch at byte ``position`` of the log."""

    offset: int
    position: int


class TimestampOffset(NamedTuple):
    """Entry of a time index: no record before ``offset`` is later than ``timestamp`` (milliseconds)."""

    timestamp: int
    offset: int

    @classmethod
    def in_last_slot(cls, slot: bytes, base_offset: int) -> TimestampOffset:
        """Return what a broker that loads a segment takes for its largest timestamp (SEG-6): the last slot, unchanged.

        Args:
            slot: last 12 bytes of the ``.timeindex``, which may be zeros; fewer if it has no entry.
            base_offset: base offset of the segment.
        """
        if len(slot) < TIME_INDEX.size:
            return cls(_NO_TIMESTAMP, base_offset)
        timestamp, relative = TIME_INDEX.struct.unpack(slot)
        return cls(timestamp, base_offset + relative)

    def are_zeros(self, base_offset: int) -> bool:
        """Return True if the bytes of the entry are zeros, as after the entries of a preallocated file."""
        return self == (0, base_offset)

    def in_words(self, base_offset: int) -> str:
        """Return the entry in the last slot of a segment's ``.timeindex`` as text: zeros are called zeros."""
        if self == (_NO_TIMESTAMP, base_offset):
            return "there is no entry"
        what = "the file ends with zeros, the entry" if self.are_zeros(base_offset) else "the last entry is"
        return f"{what} {self.timestamp} at {self.offset}"


class AbortedTxn(NamedTuple):
    """Entry of a transaction index: an aborted transaction (TX-1)."""

    producer_id: int
    first_offset: int  # of the transaction's first batch
    last_offset: int  # of its abort marker
    last_stable_offset: int  # of the log immediately after the abort


class TxnIndexSearchResult(NamedTuple):
    """Result of :meth:`kidx.TransactionIndex.collect_aborted_txns`.

    ``aborted_transactions`` are the entries that the fetch needs, in file order. ``is_complete`` is True if no later
    segment can hold a transaction for the same fetch (TX-9).
    """

    aborted_transactions: tuple[AbortedTxn, ...]
    is_complete: bool
