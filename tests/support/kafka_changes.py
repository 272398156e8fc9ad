"""Changes of the bytecode of Kafka 4.3.1, each with the machine that must detect it.

A comparison is named by its jump instruction. ``if (a < b)`` jumps over its block if ``a >= b``, so it is named ``>=``.
"""

from __future__ import annotations

from typing import NamedTuple

from broken_kafka import Change

RELEASE = "4.3.1"
_LOG = "storage/internals/log/"
_RECORDS = "common/record/internal/FileRecords"
_EPOCHS = "storage/internals/epoch/LeaderEpochFileCache"


class Broken(NamedTuple):
    """Build with one defect.

    Attributes:
        machine: The machine that must find the defect.
        change: The change of the bytecode.
    """

    machine: str
    change: Change


def _broken(machine: str, class_name: str, method: str, old: str, number: int, new: str) -> Broken:
    return Broken(machine, Change(class_name if "/" in class_name else _LOG + class_name, method, old, number, new))


BROKEN = {
    "search-goes-the-other-way": _broken("offset", "AbstractIndex", "binarySearch", "<=0", 0, ">0"),
    "warm-section-is-half": _broken("offset", "AbstractIndex", "warmEntries", "8192", 0, "4096"),
    "one-entry-too-many": _broken("offset", "AbstractIndex", "isFull", "<", 0, "<="),
    "largest-relative-offset-refused": _broken("offset", "AbstractIndex", "toRelative", "<=0", 0, "<0"),
    "same-offset-twice": _broken("offset", "OffsetIndex", "lambda$append$0", "<=0", 0, "<0"),
    "truncation-forgets-the-first-entry": _broken("offset", "OffsetIndex", "lambda$truncateTo$0", ">=0", 0, ">0"),
    "truncation-keeps-the-equal-entry": _broken("offset", "OffsetIndex", "lambda$truncateTo$0", "!=0", 0, "==0"),
    "upper-bound-behind-the-start": _broken("offset", "OffsetIndex", "lambda$fetchUpperBoundOffset$0", "+", 0, "-"),
    "nothing-is-found": _broken("offset", "OffsetIndex", "lambda$lookup$0", "!=", 0, "=="),
    "offset-of-the-first-entry-is-not-below-it": _broken(
        "offset", "AbstractIndex", "indexSlotRangeFor", "<=0", 0, "<0"
    ),
    "first-offset-is-no-last-one": _broken("offset", "OffsetIndex", "sanityCheck", ">=0", 0, ">0"),
    "reserved-slot-given-away": _broken("time", "TimeIndex", "isFull", "1", 0, "0"),
    "equal-timestamps-appended": _broken("time", "TimeIndex", "lambda$maybeAppend$0", "<=0", 0, "<0"),
    "equal-timestamps-refused": _broken("time", "TimeIndex", "lambda$maybeAppend$0", ">=0", 1, ">0"),
    "time-truncation-forgets-the-first": _broken("time", "TimeIndex", "lambda$truncateTo$0", ">=0", 0, ">0"),
    "time-truncation-keeps-the-equal-entry": _broken("time", "TimeIndex", "lambda$truncateTo$0", "!=0", 0, "==0"),
    "slot-behind-the-last-is-read": _broken("time", "TimeIndex", "lambda$entry$0", "<", 0, "<="),
    "transaction-at-the-last-offset-appended": _broken(
        "transaction", "TransactionIndex", "lambda$append$0", "<0", 0, "<=0"
    ),
    "aborted-at-the-bound-is-left-out": _broken(
        "transaction", "TransactionIndex", "collectAbortedTxns", "<0", 0, "<=0"
    ),
    "collects-beyond-the-bound": _broken("transaction", "TransactionIndex", "collectAbortedTxns", ">=0", 0, ">0"),
    "stops-before-the-stable-offset": _broken("transaction", "TransactionIndex", "collectAbortedTxns", "<0", 1, "<=0"),
    "truncation-keeps-the-equal-transaction": _broken("transaction", "TransactionIndex", "truncateTo", "<0", 0, "<=0"),
    "entry-at-the-interval": _broken("segment", "LogSegment", "append", "<=", 0, "<"),
    "offset-of-the-latest-equal-timestamp": _broken("segment", "LogSegment", "append", "<=0", 1, "<0"),
    "rolls-when-just-full": _broken("segment", "LogSegment", "shouldRoll", ">", 0, ">="),
    "rolls-at-the-age": _broken("segment", "LogSegment", "shouldRoll", "<=0", 0, "<0"),
    "waits-from-the-epoch-not-the-start": _broken("segment", "LogSegment", "timeWaitedForRoll", "<0", 0, "<=0"),
    "recovery-keeps-a-bad-batch": _broken("segment", "LogSegment", "recover", "ensureValid()", 0, ""),
    "recovery-indexes-at-the-interval": _broken("segment", "LogSegment", "recover", "<=", 0, "<"),
    "recovery-takes-the-latest-equal-timestamp": _broken("segment", "LogSegment", "recover", "<=0", 0, "<0"),
    "finds-only-later-timestamps": _broken("segment", _RECORDS, "searchForTimestamp", "<0", 1, "<=0"),
    "finds-only-later-batches": _broken("segment", _RECORDS, "searchForTimestamp", "<0", 0, "<=0"),
    "finds-only-later-offsets": _broken("segment", _RECORDS, "searchForOffsetFromPosition", "<0", 0, "<=0"),
    "batch-that-ends-at-the-offset-is-passed": _broken(
        "segment", _RECORDS, "searchForOffsetFromPosition", "<0", 1, "<=0"
    ),
    "first-offset-of-a-search-is-left-out": _broken("segment", _RECORDS, "searchForTimestamp", "<0", 2, "<=0"),
    "reads-up-to-the-position-and-on": _broken("segment", "LogSegment", "read", ">=", 0, ">"),
    "truncation-of-a-segment-is-one-off": _broken("segment", "LogSegment", "truncateTo", "<0", 0, "<=0"),
    "largest-timestamp-is-the-latest": _broken("segment", _RECORDS, "largestTimestampAfter", "<=0", 0, "<0"),
    "stable-offset-behind-the-transaction": _broken(
        "log", "UnifiedLog", "fetchLastStableOffsetMetadata", ">=0", 0, "<0"
    ),
    "stable-offset-only-behind-the-high-watermark": _broken("log", "UnifiedLog", "lastStableOffset", ">=0", 0, "<0"),
    "end-offset-is-one-off": _broken("log", "LocalLog", "append", "1L", 0, "0L"),
    "retention-at-the-age": _broken("log", "UnifiedLog", "lambda$deleteRetentionMsBreachedSegments$0", "<=0", 0, "<0"),
    "retention-one-segment-early": _broken(
        "log", "UnifiedLog", "lambda$deleteRetentionSizeBreachedSegments$0", "<0", 0, "<=0"
    ),
    "start-within-the-segment-deletes-it": _broken(
        "log", "UnifiedLog", "lambda$deleteLogStartOffsetBreachedSegments$1", ">0", 0, ">=0"
    ),
    "truncation-at-the-first-offset-is-partial": _broken("log", "UnifiedLog", "lambda$truncateTo$1", "<=0", 0, "<0"),
    "truncation-deletes-too-many": _broken("log", "LocalLog", "lambda$truncateTo$0", "<=0", 0, "<0"),
    "rolls-where-a-segment-is": _broken("log", "LocalLog", "lambda$roll$1", "==0", 0, "!=0"),
    "epoch-at-the-end-is-kept": _broken("log", _EPOCHS, "lambda$truncateFromEnd$0", "<0", 0, "<=0"),
    "epoch-at-the-start-is-forgotten": _broken("log", _EPOCHS, "lambda$truncateFromStart$0", ">0", 0, ">=0"),
    "leader-epoch-may-be-newer": _broken("log", "UnifiedLog", "hasHigherPartitionLeaderEpoch", "<=", 0, "<"),
    "coordinator-may-not-come-again": _broken("log", "ProducerAppendInfo", "checkCoordinatorEpoch", "<=", 0, "<"),
    "recovers-from-the-recovery-point-on": _broken("log", "LogLoader", "recoverLog", "<=0", 0, "<0"),
    "sequence-may-skip-one": _broken("log", "ProducerAppendInfo", "inSequence", "1L", 0, "0L"),
    "producers-expire-early": _broken("log", "ProducerStateManager", "isProducerExpired", "<0", 0, "<=0"),
}
"""The broken builds by name."""

ENDLESS = {
    "search-does-not-end": _broken("offset", "AbstractIndex", "binarySearch", ">=", 0, ">"),
}
"""Builds whose calls do not return."""
