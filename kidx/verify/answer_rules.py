"""Remarks about undamaged partitions that answer badly: to lookups and retention by time, and to ``read_committed``.

Everything is known from the segments' batches already; a log is only read again to name the record in a remark.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from kidx.errors import KidxError
from kidx.files import read_range
from kidx.findings import Fault
from kidx.layout import ATTRIBUTE_CONTROL
from kidx.printable import dated, looks_like_seconds
from kidx.records import iter_batches
from kidx.scan.blocks import LogBlocks

if TYPE_CHECKING:
    from pathlib import Path

    from kidx.discovery import Partition
    from kidx.records import RecordBatch
    from kidx.verify.reporter import Reporter
    from kidx.verify.transactions import OpenTransactions
    from kidx.verify.verdicts import SegmentVerdict

_DAY_MS: Final = 24 * 3_600_000
_LONGEST_TRANSACTION_MS: Final = 15 * 60_000
"""``transaction.max.timeout.ms`` by default: the coordinator ends an older transaction."""


def check_answers(
    verdicts: Sequence[SegmentVerdict], transactions: OpenTransactions, reporter: Reporter[Partition]
) -> None:
    """Report, as remarks, what makes lookups, retention by time or consumers useless though no file is wrong.

    Args:
        verdicts: verdicts on the segments that a broker loads, in order.
        transactions: transactions that are open at the end of the last one.
        reporter: receives the findings.
    """
    _check_lookups(verdicts, reporter)
    _check_retention(verdicts, reporter)
    _check_transactions(verdicts, transactions, reporter)


def _check_transactions(
    verdicts: Sequence[SegmentVerdict], transactions: OpenTransactions, reporter: Reporter[Partition]
) -> None:
    """Report the first transaction that is open for longer than its coordinator allows, by the records after it."""
    open_ = sorted(
        (first, producer) for producer, first in transactions.first.items() if first >= transactions.hidden_to
    )
    for first, producer in open_[:1]:
        segment = next((one.segment for one in reversed(verdicts) if one.segment.base_offset <= first), None)
        batch = segment and _batch(segment.log, "base_offset", first)
        if segment and batch and _latest(verdicts[-1].segment.log) - batch.max_timestamp > _LONGEST_TRANSACTION_MS:
            reporter.add(
                segment.log,
                Fault.OPEN_TRANSACTION,
                "sound",
                f"a transaction of producer {producer} is open from offset {first} on, since "
                f"{dated(batch.max_timestamp)}: consumers of committed records get nothing from there on until it "
                "ends; kafka-transactions.sh find-hanging finds a transaction that nothing ends, and abort ends it",
                segment.base_offset,
                offset=first,
            )


def _latest(log: Path) -> int:
    """Return the largest timestamp of a log's records; markers are not meant, which have a broker's time."""
    latest = -1
    with contextlib.suppress(OSError), LogBlocks(log, checked=False) as blocks:
        for rows in blocks:
            stamps = rows["max_timestamp"][rows["attributes"] & ATTRIBUTE_CONTROL == 0]
            latest = max(latest, int(stamps.max(initial=-1)))
    return latest


def _batch(log: Path, column: str, value: int) -> RecordBatch | None:
    """Return the first batch of a log whose header has a value; None if there is no such batch."""
    with contextlib.suppress(KidxError, OSError), LogBlocks(log, checked=False) as blocks:
        for rows in blocks:
            for row in rows[rows[column] == value][:1]:
                return next(iter_batches(read_range(log, int(row["position"]), int(row["size"]))), None)
    return None


def _record_at(log: Path, timestamp: int) -> str:
    """Return the offset of the first record with a log's largest timestamp, as text; empty if it cannot be read."""
    with contextlib.suppress(KidxError, MemoryError, OSError):
        batch = _batch(log, "max_timestamp", timestamp)
        records = batch.offset_timestamps() if batch is not None else ()
        return next((f" at offset {each.offset}" for each in records if each.timestamp == timestamp), "")
    return ""


def _check_lookups(verdicts: Sequence[SegmentVerdict], reporter: Reporter[Partition]) -> None:
    """Report the first segment without a timestamp at which searches for the times of later segments end."""
    largest = -1
    for number, one in enumerate(verdicts[:-1]):
        if one.max_timestamp >= 0 or not one.signature or one.signature[0] is None:
            largest = max(largest, one.max_timestamp)
            continue
        modified = one.signature[0][1] // 1_000_000
        if modified > largest and any(largest < later.max_timestamp for later in verdicts[number + 1 :]):
            what = "is empty" if not one.batches else "has no timestamp"
            after = f" after {dated(largest)}" if largest >= 0 else ""
            reporter.add(
                one.segment.log,
                Fault.LOOKUPS,
                "sound",
                f"the segment {what}, and counts as old as its file, {dated(modified)}: a search for any time{after} "
                "up to then ends in it and finds nothing, though later segments have records",
                one.segment.base_offset,
            )
            return


def _check_retention(verdicts: Sequence[SegmentVerdict], reporter: Reporter[Partition]) -> None:
    stamped = [one for one in verdicts if one.max_timestamp >= 0]
    limit = time.time() * 1000 + _DAY_MS
    late = next((one for one in stamped if one.max_timestamp > limit), None)
    if late is not None:
        reporter.add(
            late.segment.log,
            Fault.RETENTION,
            "sound",
            f"its largest timestamp{_record_at(late.segment.log, late.max_timestamp)} is in the future, "
            f"{dated(late.max_timestamp)}: until then, retention by time "
            "deletes neither this segment nor a later one",
            late.segment.base_offset,
        )
    if stamped and all(looks_like_seconds(one.max_timestamp) for one in stamped):
        reporter.add(
            stamped[0].segment.log,
            Fault.RETENTION,
            "sound",
            f"the timestamps are probably in seconds, such as {dated(stamped[0].max_timestamp)}: Kafka's are in "
            "milliseconds, so that retention by time takes the records for records of 1970",
            stamped[0].segment.base_offset,
        )
