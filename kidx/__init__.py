"""Kafka's log indexes, exactly as Kafka writes and reads them, release by release.

Each export is imported at its first use: a program that reads an index need not load the log.
"""

from __future__ import annotations

from importlib import import_module

TYPE_CHECKING = False  # importing typing takes as long as the rest of what runs before an interrupt has a handler
if TYPE_CHECKING:
    from typing import Any, Final

    from kidx import errors
    from kidx.dialect import DIALECTS, Dialect, dialect_of
    from kidx.index.lazy import LazyIndex
    from kidx.index.offset import OffsetIndex, OffsetPosition
    from kidx.index.time import TimeIndex, TimestampOffset
    from kidx.index.transaction import AbortedTxn, TransactionIndex, TxnIndexSearchResult
    from kidx.log import UnifiedLog
    from kidx.segment import LogSegment
    from kidx.tables.read import read

__version__ = "0.2.0"

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

_EXPORTS: Final = {
    "dialect": ("DIALECTS", "Dialect", "dialect_of"),
    "index.lazy": ("LazyIndex",),
    "index.offset": ("OffsetIndex", "OffsetPosition"),
    "index.time": ("TimeIndex", "TimestampOffset"),
    "index.transaction": ("AbortedTxn", "TransactionIndex", "TxnIndexSearchResult"),
    "log": ("UnifiedLog",),
    "segment": ("LogSegment",),
    "tables.read": ("read",),
}
_MODULE_OF: Final = {name: module for module, names in _EXPORTS.items() for name in names}


def __getattr__(name: str) -> Any:
    if name == "errors":
        return import_module("kidx.errors")
    if name not in _MODULE_OF:
        raise AttributeError(f"module 'kidx' has no attribute {name!r}")
    try:
        module = import_module(f"kidx.{_MODULE_OF[name]}")
    except ModuleNotFoundError as error:
        if name != "read" or error.name != "pyarrow":
            raise
        message = "kidx.read requires pyarrow; install with: pip install 'kidx[arrow]'"
        raise import_module("kidx.errors").ToolError(message) from error
    value = globals()[name] = getattr(module, name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
