"""Kafka's log indexes, exactly as Kafka writes and reads them, release by release."""

from kidx import errors
from kidx.dialect import DIALECTS, Dialect, dialect_of
from kidx.entries import AbortedTxn, OffsetPosition, TimestampOffset, TxnIndexSearchResult
from kidx.lazy_index import LazyIndex
from kidx.log import UnifiedLog
from kidx.offset_index import OffsetIndex
from kidx.segment import LogSegment
from kidx.time_index import TimeIndex
from kidx.transaction_index import TransactionIndex

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
