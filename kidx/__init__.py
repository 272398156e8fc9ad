"""Kafka's log indexes, exactly as Kafka writes and reads them, release by release."""

from kidx import errors
from kidx.dialect import DIALECTS, Dialect, dialect_of
from kidx.index.entries import AbortedTxn, OffsetPosition, TimestampOffset, TxnIndexSearchResult
from kidx.index.lazy import LazyIndex
from kidx.index.offset import OffsetIndex
from kidx.index.time import TimeIndex
from kidx.index.transaction import TransactionIndex
from kidx.log import UnifiedLog
from kidx.segment import LogSegment

__version__ = "0.1.0"

__all__ = [
    "DIALECTS",
    "AbortedTxn",
    "Dialect",
    "LazyIndex",
    "LogSegment",
    "OffsetIndex",
    "OffsetPosition",
    "TimeIndex",
    "TimestampOffset",
    "TransactionIndex",
    "TxnIndexSearchResult",
    "UnifiedLog",
    "dialect_of",
    "errors",
]
