"""Rules for index files: whether every lookup gives a right answer, and whether a release writes these bytes.

The ``.index``: a search for an offset starts at the last entry not above it, and reads batches from its position on.
It finds the same batch as a scan of the whole log, if

* offsets and positions increase (OI-3), so that the search among the entries is right;
* a batch starts at every position (SEG-5);
* all offsets before the position are below the entry's offset (SEG-50a): the target is not in the skipped batches,
  and a fetch up to the position has no offset above the result of ``fetch_upper_bound_offset``;
* no offset exceeds the end of the log (SEG-40), so that the next offset is found.

It is *exact* if every entry has the last offset of the batch at its position, and one ``index.interval.bytes`` explains
the positions with and without entries (SEG-4, SEG-5). Before 3.9.1, and in 4.0.0, this holds only for appends of one
batch (SEG-3).

The ``.timeindex``: a search for a timestamp takes the last entry that is not above the target, and starts at the
position that the offset index has for this entry's offset. It finds the first record with a timestamp from the
target on, if

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
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from kidx.errors import KidxError
from kidx.files import read_range
from kidx.findings import Fault
from kidx.index.time import TimestampOffset
from kidx.layout import ATTRIBUTE_CODEC, ATTRIBUTE_LOG_APPEND_TIME
from kidx.printable import counted
from kidx.records import iter_batches
from kidx.scan.entries import TIME_ENTRY
from kidx.verify.verdicts import Interval

if TYPE_CHECKING:
    from pathlib import Path

    from kidx.discovery import Segment
    from kidx.scan.entries import IndexContent
    from kidx.verify.facts import Gatherer
    from kidx.verify.reporter import Reporter

Array = np.ndarray[Any, Any]

_OFFSETS = ".index"
_DEFAULT_INTERVAL = 4096


def check_size(suffix: str, content: IndexContent, reporter: Reporter[Segment]) -> None:
    """Report an ``.index`` or ``.timeindex`` that does not consist of whole entries (OI-11, TI-11a)."""
    if content.trailing_bytes:
        whole = content.entries.itemsize
        reporter.add(
            reporter.where.path(suffix),
            Fault.PARTIAL_ENTRY,
            "broken",
            f"{counted(content.size, 'byte')}, not a multiple of {whole}: kafka-dump-log rejects the file. "
            "A broker does not check the size: a start after a crash rebuilds the indexes of segments from the "
            "recovery point on; earlier segments, and all segments after a clean stop, keep their files",
            expected=f"a multiple of {whole}",
            actual=content.size,
        )


def check_base(suffix: str, content: IndexContent, reporter: Reporter[Segment]) -> None:
    """Report offsets below the segment's base offset (AI-9)."""
    offsets, base = content.entries["offset"], reporter.where.base_offset
    for slot in np.flatnonzero(offsets < base):
        message = f"offset {offsets[slot]} is below the segment's base offset {base}"
        reporter.add_entry(suffix, content.entries, slot, Fault.BELOW_BASE, message, expected=f"at least {base}")


def check_offset_index(content: IndexContent, facts: Gatherer, reporter: Reporter[Segment]) -> None:
    """Report every entry that gives a wrong answer; entries that no release writes are a remark."""
    entries, found = content.entries, facts.offset_facts
    offsets, positions = entries["offset"], entries["position"]
    add = partial(reporter.add_entry, _OFFSETS, entries)
    check_size(_OFFSETS, content, reporter)
    wrong_order = np.zeros(len(entries), bool)
    wrong_order[1:] = (offsets[1:] <= offsets[:-1]) | (positions[1:] <= positions[:-1])
    for slot in np.flatnonzero(wrong_order):
        add(
            slot,
            Fault.ENTRY_ORDER,
            f"({offsets[slot]}, {positions[slot]}) follows ({offsets[slot - 1]}, {positions[slot - 1]}): "
            "the binary search fails, and fetches may start too late",
            expected=f"more than {offsets[slot - 1]} at more than {positions[slot - 1]}",
        )
    check_base(_OFFSETS, content, reporter)
    for slot in np.flatnonzero(~found["at_batch"]):
        around = int(found["around_position"][slot])
        last = f"after the last batch, at {facts.log.last_position}"
        beyond = "at bytes that are no batch" if facts.log.hidden else last
        message = f"inside the batch at {around}" if around >= 0 else beyond
        effect = "the fetch fails or finds nothing" if around >= 0 else "nothing is found there"
        add(
            slot,
            Fault.NOT_AT_BATCH,
            f"offset {offsets[slot]} points at byte {positions[slot]}, {message}: "
            f"a consumer at offset {offsets[slot]} starts reading there, and {effect}",
            expected="the start of a batch",
        )
    late = found["at_batch"] & (found["before_last"] >= offsets)
    for slot in np.flatnonzero(late):
        reached = int(found["before_last"][slot])
        add(
            slot,
            Fault.LATE_ENTRY,
            f"offset {offsets[slot]} points at byte {positions[slot]}, but the log before that reaches {reached}: "
            f"a consumer at offset {offsets[slot]} to {reached} gets none of these records, and continues after them",
            expected=f"an offset above {reached}",
        )
    for slot in np.flatnonzero(~found["in_log"]):
        add(
            slot,
            Fault.PAST_END,
            f"offset {offsets[slot]} is past the end of the log, {facts.log.end_offset - 1}: the broker looks for the "
            "next offset there and finds none, so that offsets are given twice",
            expected=f"at most {facts.log.end_offset - 1}",
        )
    odd = found["in_log"] & ~found["ends_batch"] & ~late & found["at_batch"] & ~wrong_order
    for slot in np.flatnonzero(odd):
        add(
            slot,
            Fault.UNUSUAL_ENTRY,
            f"offset {offsets[slot]} is not the last one of any batch: no release writes that, but lookups are right",
            verdict="sound",
            expected="the last offset of a batch",
        )


def interval_of(entries: Array, facts: Gatherer) -> Interval:
    """Return the values of ``index.interval.bytes`` that explain sound entries (SEG-4).

    A broker writes an entry with the first batch that starts more than the interval after the
    position of the previous entry. A restart or a truncation resets the count of bytes (SEG-7), so that the next entry
    is later. Entries that are later than the other entries explain are counted as restarts.
    """
    positions = entries["position"]
    starts = np.concatenate([[0], positions[:-1]]) if len(positions) else positions
    too_small = np.maximum(facts.offset_facts["before_position"] - starts, 0)
    too_large = positions - starts
    last = int(positions[-1]) if len(positions) else 0
    needed = np.append(too_small, max(0, facts.log.last_position - last))
    if not len(positions):
        return Interval(int(needed[0]), None)
    most = int(too_large.min()) - 1
    explained = needed[needed <= most]
    return Interval(int(explained.max(initial=0)), most, len(needed) - len(explained))


def is_exact_offset_index(
    content: IndexContent, facts: Gatherer, interval: Interval, given: int | None
) -> tuple[bool, str]:
    """Return True if appends of single batches, or a recovery, write these bytes; otherwise also an explanation.

    Args:
        content: entries without any finding.
        facts: facts about the log.
        given: the topic's ``index.interval.bytes``, if it is known.
    """
    found = facts.offset_facts
    grouped = int((found["batch_last"] != content.entries["offset"]).sum())
    if grouped:
        return False, (
            f"{counted(grouped, 'entry')} with the last offset of a later batch: appends of several batches have "
            "one entry before 3.9.1 and in 4.0.0 (SEG-3)"
        )
    if interval.restarts:
        return False, (
            f"index.interval.bytes is {interval.most} at most, and {counted(interval.restarts, 'entry')} later than "
            "that: after a restart or a truncation the count is reset (SEG-7), an append of several batches has one "
            "entry (SEG-3), or entries are lost"
        )
    if given is not None and not interval.holds(given):
        return False, f"index.interval.bytes was given as {given}, but the entries fit {interval}"
    if given is None and not len(content.entries) and interval.least > _DEFAULT_INTERVAL:
        least = counted(interval.least, "byte")
        return False, f"{least} of log without an entry: index.interval.bytes is larger, or entries are lost"
    return True, ""


_TIMES: Final = ".timeindex"


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
    add = partial(reporter.add_entry, _TIMES, entries)
    check_size(_TIMES, content, reporter)
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
    check_base(_TIMES, content, reporter)
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
    path = reporter.where.path(_TIMES)
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


def writers_of_time_index(log: Path, content: IndexContent, facts: Gatherer, *, finished: bool) -> tuple[str, str]:
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
