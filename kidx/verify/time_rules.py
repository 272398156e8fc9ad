"""Rules for a ``.timeindex``: whether every lookup gives a right answer, and whether a release writes these bytes.

A search for a timestamp takes the last entry that is not above the target, and starts at the position that the offset
index has for this entry's offset. It finds the first record with a timestamp from the target on, if

* timestamps increase and offsets do not decrease (TI-3);
* no batch before the entry's offset reaches the entry's timestamp (SEG-6): skipped batches are earlier than the entry,
  and therefore than the target;
* the last entry has the largest timestamp of the segment, and lies in the batch that has it (SEG-22): with it a log
  decides which segment to search (LO-6), and finds the largest timestamp of all (LO-9, LO-10). While a broker writes
  to the segment, that entry is not there yet.

It is *exact* if it has one entry for each entry of the ``.index`` at which the largest timestamp had risen, and the
last one (SEG-4, SEG-22). The offset is the last one of the batch; leaders of 2.4 to 3.6 name the record itself (SEG-9).
"""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from kidx.errors import KidxError
from kidx.files import read_range
from kidx.findings import Fault
from kidx.index.entries import TimestampOffset
from kidx.layout import ATTRIBUTE_CODEC, ATTRIBUTE_LOG_APPEND_TIME
from kidx.records import iter_batches
from kidx.scan.entries import TIME_ENTRY
from kidx.verify.offset_rules import check_base, check_size

if TYPE_CHECKING:
    from kidx.discovery import Segment
    from kidx.scan.entries import IndexContent
    from kidx.verify.facts import Gatherer
    from kidx.verify.reporter import Reporter

Array = np.ndarray[Any, Any]

_SUFFIX: Final = ".timeindex"


def check_time_index(content: IndexContent, facts: Gatherer, reporter: Reporter[Segment], *, finished: bool) -> None:
    """Report every entry that gives a wrong answer; entries that no release writes are a remark.

    Args:
        content: the entries of the file.
        facts: facts about the log.
        reporter: receives the findings.
        finished: True if nothing is appended to the segment any more, so that the last entry must exist.
    """
    entries, found, log = content.entries, facts.time_facts, facts.log
    stamps, offsets = entries["timestamp"], entries["offset"]
    add = partial(reporter.add_entry, _SUFFIX, entries)
    check_size(_SUFFIX, content, reporter)
    wrong_order = np.zeros(len(entries), bool)
    wrong_order[1:] = (stamps[1:] <= stamps[:-1]) | (offsets[1:] < offsets[:-1])
    for slot in np.flatnonzero(wrong_order):
        add(
            slot,
            Fault.ENTRY_ORDER,
            f"({stamps[slot]}, {offsets[slot]}) follows ({stamps[slot - 1]}, {offsets[slot - 1]}): "
            "the binary search fails, and lookups by time start too late",
            expected=f"later than {stamps[slot - 1]}, at {offsets[slot - 1]} or later",
        )
    check_base(_SUFFIX, content, reporter)
    missed = found["before_max"] >= stamps
    for slot in np.flatnonzero(missed):
        latest = int(found["before_max"][slot])
        add(
            slot,
            Fault.LATE_ENTRY,
            f"({stamps[slot]}, {offsets[slot]}): a record before that offset has timestamp {latest}: "
            f"a search for {stamps[slot]} to {latest} starts after that record, and returns a later one or none",
            expected=f"a timestamp above {latest}",
        )
    for slot in np.flatnonzero(~found["in_log"]):
        add(
            slot,
            Fault.PAST_END,
            f"({stamps[slot]}, {offsets[slot]}): the log ends at offset {log.end_offset - 1}",
            expected=f"an offset up to {log.end_offset - 1}",
        )
    odd = found["in_log"] & (found["holder_max"] != stamps) & ~missed & ~wrong_order
    odd[-1:] &= not finished or stamps[-1:] == log.max_timestamp
    for slot in np.flatnonzero(odd):
        add(
            slot,
            Fault.UNUSUAL_ENTRY,
            f"({stamps[slot]}, {offsets[slot]}): the batch with that offset reaches {found['holder_max'][slot]}: "
            "no release writes that, but lookups are right",
            verdict="sound",
            expected=f"timestamp {found['holder_max'][slot]}",
        )
    _check_last(content, facts, reporter, finished=finished)


def _check_last(content: IndexContent, facts: Gatherer, reporter: Reporter[Segment], *, finished: bool) -> None:
    """Report a last entry that is not the largest timestamp; in a finished segment zeros are an entry, too."""
    log, base = facts.log, reporter.where.base_offset
    path = reporter.where.path(_SUFFIX)
    slots = len(content.entries) + content.omitted + (content.padding_entries if finished else 0)
    own = content.entries[-1:].tolist()
    found = TimestampOffset.in_last_slot(content.last_slot, base)
    last = found if finished else TimestampOffset._make(own[0]) if own else TimestampOffset(-1, base)
    place: dict[str, Any] = {
        "slot": slots - 1 if slots else None,
        "timestamp": last.timestamp,
        "offset": last.offset if slots else None,
        "expected": f"{log.max_timestamp} at {log.max_timestamp_offset}",
        "actual": f"{last.timestamp} at {last.offset}" if slots else "no entry",
    }
    said = f"{last.in_words(base)}, and the log has {log.max_timestamp} at {log.max_timestamp_offset}"
    if last.timestamp < log.max_timestamp and finished:
        if not slots:
            effect = (
                "the segment counts as old as its .log file, by its modification time: a search for a later time "
                "leaves it out, and retention goes by it"
            )
        else:
            effect = (
                f"a search for {last.timestamp + 1} to {log.max_timestamp} leaves this segment out, and retention "
                f"takes it for older than it is{', for one of 1970' if not last.timestamp else ''}"
            )
        reporter.add(path, Fault.LARGEST_TIMESTAMP, "broken", f"{said}: {effect}", **place)
    elif last.timestamp > log.max_timestamp:
        reporter.add(
            path,
            Fault.LARGEST_TIMESTAMP,
            "broken",
            f"{said}: a search for {log.max_timestamp + 1} to {last.timestamp} ends in this segment without a result, "
            "though later ones may have one",
            **place,
        )
    elif own and last == tuple(own[0]) and last.timestamp == log.max_timestamp != facts.time_facts["holder_max"][-1]:
        reporter.add_where(
            lambda dialect: dialect.max_lookup == "remembered",
            path,
            Fault.LARGEST_TIMESTAMP_OFFSET,
            f"the batch with offset {last.offset} does not have the segment's largest timestamp, {last.timestamp}: "
            "ListOffsets(-3) names a wrong record",
            **place,
        )


def expected_entries(facts: Gatherer, *, finished: bool) -> Array:
    """Return the entries that a broker writes together with an exact ``.index``, as :data:`TIME_ENTRY`.

    Args:
        facts: facts about the log.
        finished: True to add the last entry, with the largest timestamp.
    """
    found, log = facts.offset_facts, facts.log
    stamps = found["running_timestamp"]
    rises = np.empty(len(stamps), bool)
    rises[:1] = stamps[:1] > -1
    rises[1:] = stamps[1:] > stamps[:-1]
    entries = np.empty(int(rises.sum()), TIME_ENTRY)
    entries["timestamp"], entries["offset"] = stamps[rises], found["running_offset"][rises]
    if finished and log.max_timestamp > (entries["timestamp"][-1] if len(entries) else -1):
        entries = np.append(entries, np.array([(log.max_timestamp, log.max_timestamp_offset)], TIME_ENTRY))
    return entries


def is_exact(log: Path, content: IndexContent, facts: Gatherer, *, finished: bool) -> tuple[str, str]:
    """Return the releases that write these bytes, and an explanation if none does.

    The releases are ``all``, ``record`` for the leaders up to 3.6, which name the record itself, or empty.
    """
    actual = content.entries
    for complete in (True,) if finished else (True, False):
        expected = expected_entries(facts, finished=complete)
        if not np.array_equal(actual["timestamp"], expected["timestamp"]):
            continue
        differing = np.flatnonzero(actual["offset"] != expected["offset"])
        if not len(differing):
            return "all", ""
        if all(_names_the_record(log, facts.time_facts[slot], *actual[slot].tolist()) for slot in differing):
            return "record", ""
    return "", (
        "the entries are not those that go with the offset index: a restart or a truncation (SEG-7), or appends of "
        "several batches (SEG-3)"
    )


def _names_the_record(log: Path, facts: Any, stamp: int, offset: int) -> bool:
    """Return True if the entry names the first record with its timestamp, in a batch that was appended unchanged."""
    plain = facts["holder_attributes"] & (ATTRIBUTE_CODEC | ATTRIBUTE_LOG_APPEND_TIME) == 0
    if not facts["in_log"] or facts["holder_magic"] != 2 or not plain:
        return False
    try:
        data = read_range(log, int(facts["holder_position"]), int(facts["holder_size"]))
        records = (record for batch in iter_batches(data) for record in batch)
        return next((record.offset for record in records if record.timestamp == stamp), None) == offset
    except (KidxError, OSError):
        return False
