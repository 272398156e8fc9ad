"""Kafka's log indexes, exactly as Kafka writes and reads them, release by release."""

from typing import TYPE_CHECKING, Any

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

if TYPE_CHECKING:
    from kidx.tables.read import read

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
    "read",
]


def __getattr__(name: str) -> Any:
    """What needs an extra is only imported where it is used: :func:`kidx.read` needs ``kidx[arrow]``."""
    if name != "read":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        from kidx.tables.read import read as found  # noqa: PLC0415
    except ModuleNotFoundError as error:
        if error.name != "pyarrow":
            raise
        raise errors.ToolError("kidx.read needs pyarrow: pip install 'kidx[arrow]'") from error
    return found
