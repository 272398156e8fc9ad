"""Remarks about undamaged partitions that answer badly: lookups by time, and retention by time.

Everything is known from the segments' batches already, so that these rules read no file.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from kidx.findings import Fault
from kidx.printable import dated, looks_like_seconds

if TYPE_CHECKING:
    from kidx.discovery import Partition
    from kidx.verify.reporter import Reporter
    from kidx.verify.verdicts import SegmentVerdict

_DAY_MS: Final = 24 * 3_600_000


def check_answers(verdicts: Sequence[SegmentVerdict], reporter: Reporter[Partition]) -> None:
    """Report, as remarks, what makes lookups or retention by time useless though no file is wrong.

    Args:
        verdicts: verdicts on the segments that a broker loads, in order.
        reporter: receives the findings.
    """
    _check_lookups(verdicts, reporter)
    _check_retention(verdicts, reporter)


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
            f"its largest timestamp is in the future, {dated(late.max_timestamp)}: until then, retention by time "
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
