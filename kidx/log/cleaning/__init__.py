"""Compaction: the records that the cleaner of each release retains, and how it writes them (``Cleaner``; clauses CL).

The cleaned segments and their index files follow entirely from the segments before the round.
"""

from __future__ import annotations

from kidx.log.cleaning.cleaner import Cleaner, CrashPointCallback, cleanable_range
from kidx.log.cleaning.filtering import CleanedTransactions, CleanerBuffer, CleanerStats, OffsetMap, RecordFilter

__all__ = [
    "CleanedTransactions",
    "Cleaner",
    "CleanerBuffer",
    "CleanerStats",
    "CrashPointCallback",
    "OffsetMap",
    "RecordFilter",
    "cleanable_range",
]
