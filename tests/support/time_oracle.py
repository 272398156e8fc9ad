"""Oracle for searches by time that shares no code with kidx.

It uses only the list of records that a consumer may see. The result for a timestamp is the first record whose timestamp
is not smaller. The result for the largest timestamp is the first record that has it. Indexes, segments and cached state
are not used. If a result of Kafka differs, :func:`disagreement` returns the kind of error.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Literal

from conformance.oracle import ConsumerRecord, records_of

Why = Literal[
    "newer-segment", "later-record", "deleted-record", "wrong-offset", "wrong-timestamp", "missing", "surplus"
]


def visible_records(directory: Path, start: int, end: int) -> list[ConsumerRecord]:
    """Return the records of a log's files with offsets from ``start`` (inclusive) to ``end`` (exclusive), in order."""
    files = sorted(directory.glob("*.log"))
    found = [record for number, file in enumerate(files) for record in records_of(file.read_bytes(), number)]
    return [record for record in found if start <= record.offset < end]


def first_not_before(records: Iterable[ConsumerRecord], timestamp: int) -> ConsumerRecord | None:
    """Return the first record whose timestamp is ``timestamp`` or later."""
    return next((record for record in records if record.timestamp >= timestamp), None)


def first_of_the_latest(records: Sequence[ConsumerRecord]) -> ConsumerRecord | None:
    """Return the first record with the largest timestamp, or None if no record has a timestamp."""
    latest = max(records, key=lambda record: record.timestamp, default=None)
    return latest if latest is not None and latest.timestamp >= 0 else None


def disagreement(
    right: ConsumerRecord | None, answer: tuple[int, int, int] | None, records: Sequence[ConsumerRecord]
) -> Why | None:
    """Return the kind of error of a result (timestamp, offset, epoch or -1), or None; the epoch is not checked.

    ``missing``: no result although a record exists. ``surplus``: a result although no record qualifies.
    ``deleted-record``: the record in the result is not visible. ``later-record``: an earlier record qualifies.
    ``newer-segment``: an earlier record qualifies, in another segment. ``wrong-offset``: only the offset is wrong.
    ``wrong-timestamp``: the timestamp is wrong, too.
    """
    if answer is None or answer[1] < 0:
        return None if right is None else "missing"
    timestamp, offset, _ = answer
    if right is not None and (timestamp, offset) == (right.timestamp, right.offset):
        return None
    found = _seen(answer, records)
    if not records or offset < records[0].offset or (right is None and found is None):
        return "deleted-record"
    return "surplus" if right is None else _difference(right, timestamp, found)


def _difference(right: ConsumerRecord, timestamp: int, found: ConsumerRecord | None) -> Why:
    """Return the kind of error of a result whose record is not the right one."""
    if timestamp == right.timestamp and (found is None or found.timestamp != timestamp):
        return "wrong-offset"
    if found is not None and found.offset > right.offset:
        return "newer-segment" if found.segment != right.segment else "later-record"
    return "wrong-timestamp"


def _seen(answer: tuple[int, int, int], records: Iterable[ConsumerRecord]) -> ConsumerRecord | None:
    return next((record for record in records if record.offset == answer[1]), None)
