"""Compaction: what the cleaner of each release leaves of a log, and how it writes it down (``Cleaner``; clauses CL).

The cleaned segments are predicted whole, records and indexes, from the segments before.
"""

from __future__ import annotations

from kidx.log.cleaning.bounds import cleanable_range
from kidx.log.cleaning.buffers import CleanerBuffer
from kidx.log.cleaning.cleaner import Cleaner, Watch
from kidx.log.cleaning.cleaning import Cleaning
from kidx.log.cleaning.filtering import RecordFilter
from kidx.log.cleaning.keys import KeyOffsets
from kidx.log.cleaning.transactions import CleanedTransactions

__all__ = [
    "CleanedTransactions",
    "Cleaner",
    "CleanerBuffer",
    "Cleaning",
    "KeyOffsets",
    "RecordFilter",
    "Watch",
    "cleanable_range",
]
