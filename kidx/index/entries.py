"""Immutable entries and search results of the indexes."""

from __future__ import annotations

from typing import NamedTuple


class OffsetPosition(NamedTuple):
    """Entry of an offset index: the record ``offset`` is in the batch at byte ``position`` of the log."""

    offset: int
    position: int


class TimestampOffset(NamedTuple):
    """Entry of a time index: no record before ``offset`` is later than ``timestamp`` (milliseconds)."""

    timestamp: int
    offset: int


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
