"""Rules for an ``.index``: whether every lookup gives a right answer, and whether a release writes these bytes.

A search for an offset starts at the last entry not above it, and reads batches from its position on. It finds the same
batch as a scan of the whole log, if

* offsets and positions increase (OI-3), so that the search among the entries is right;
* a batch starts at every position (SEG-5);
* all offsets before the position are below the entry's offset (SEG-50a): the target is not in the skipped batches,
  and a fetch up to the position has no offset above the result of ``fetch_upper_bound_offset``;
* no offset exceeds the end of the log (SEG-40), so that the next offset is found.

It is *exact* if every entry has the last offset of the batch at its position, and one ``index.interval.bytes`` explains
the positions with and without entries (SEG-4, SEG-5). Before 3.9.1, and in 4.0.0, this holds only for appends of one
batch (SEG-3).
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from kidx.findings import Fault
from kidx.printable import counted
from kidx.verify.verdicts import Interval

if TYPE_CHECKING:
    from kidx.discovery import Segment
    from kidx.scan.entries import IndexContent
    from kidx.verify.facts import Gatherer
    from kidx.verify.reporter import Reporter

Array = np.ndarray[Any, Any]

_SUFFIX = ".index"
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
    add = partial(reporter.add_entry, _SUFFIX, entries)
    check_size(_SUFFIX, content, reporter)
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
    check_base(_SUFFIX, content, reporter)
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


def is_exact(content: IndexContent, facts: Gatherer, interval: Interval, given: int | None) -> tuple[bool, str]:
    """Return True if appends of single batches, or a recovery, write these bytes; otherwise also an explanation.

    Args:
        content: entries without any finding.
        facts: facts about the log.
        interval: interval of the entries.
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
