"""Compaction: the records that the cleaner of each release retains, and how it writes them (``Cleaner``; clauses CL).

The cleaned segments and their index files follow entirely from the segments before the round.
"""

from __future__ import annotations

from kidx.log.cleaning.buffers import CleanerBuffer
from kidx.log.cleaning.cleanable_range import cleanable_range
from kidx.log.cleaning.cleaner import Cleaner, CrashPointCallback
from kidx.log.cleaning.filtering import RecordFilter
from kidx.log.cleaning.offset_map import OffsetMap
from kidx.log.cleaning.stats import CleanerStats
from kidx.log.cleaning.transactions import CleanedTransactions

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
