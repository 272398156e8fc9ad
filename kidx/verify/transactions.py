"""Rules for the ``.txnindex`` of every segment of a partition, according to the control records of its log (TX-15).

An entry is right if its last offset is the offset of an abort marker, its first offset the start of the transaction,
and its last stable offset the start of the earliest other open transaction, or else the offset after the marker. A
transaction may begin segments before it ends, so a partition is checked as a whole, in order. The start of a
transaction that began before the log, because retention deleted it, is unknown; then only the remaining rules apply.
Compaction removes the data of an aborted transaction, and later its marker, up to the offset that it has cleaned. Of
transactions that began before that offset, equally little is known.

A broker writes the entries of an append after all its batches: a broker that is killed between them omits the entries.
Only the last segment can lack them, and the next start rebuilds its file.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING, Final, NamedTuple

from kidx.findings import worst
from kidx.printable import counted
from kidx.verify.verdicts import FileVerdict, SegmentVerdict

if TYPE_CHECKING:
    from kidx.findings import Verdict
    from kidx.verify.facts import TransactionEvent
    from kidx.verify.reporter import Reporter

_SUFFIX: Final = ".txnindex"


class Aborted(NamedTuple):
    """Entry according to the log; ``first_offset`` is an upper bound if ``known`` is False.

    It is ``visible`` if a consumer can read some known record of the transaction. ``others`` are the first offsets
    of all transactions that were open at the marker, or began after it in the segment: a follower, or a replica that
    moves between disks, appends many batches in one call, and records the earliest that is open at the call's end.
    """

    producer_id: int
    first_offset: int
    last_offset: int
    last_stable_offset: int
    known: bool
    visible: bool = True
    others: frozenset[int] = frozenset()

    def allows(self, entry: tuple[int, ...], hidden_to: int) -> bool:
        """Return True if an entry of a file, version first, can be this one; below ``hidden_to`` the log is unknown."""
        _, producer, first, last, stable = entry
        if (producer, last) != (self.producer_id, self.last_offset):
            return False
        if self.known:
            return first == self.first_offset and stable in {self.last_stable_offset, last + 1, *self.others}
        # A recovery reads nothing below the log start: the transaction then begins with its remaining records.
        unseen = min(first, self.first_offset) < hidden_to or first == self.first_offset
        least = min(stable, self.last_stable_offset)
        return unseen and (least < hidden_to or stable == least or stable in self.others)


def cleaned_to(verdicts: Sequence[SegmentVerdict], noted: int) -> int:
    """Return the offset below which a cleaner may have been at work: as it has noted, or as the batches show."""
    ends = [0, noted]
    for one, other in pairwise(verdicts):
        end = one.last_offset + 1 if one.batches else one.segment.base_offset
        if one.compacted or end < other.segment.base_offset:
            ends.append(other.segment.base_offset)
    ends += [verdict.last_offset + 1 for verdict in verdicts[-1:] if verdict.compacted]
    return max(ends)


@dataclass(slots=True)
class OpenTransactions:
    """Open transactions, from segment to segment.

    Attributes:
        whole: True if the log begins at offset 0, so that no transaction began before it.
        log_start: offset below which a consumer reads nothing.
        cleaned_to: offset below which data and markers may have been removed.
        first: first offset of each open transaction, by producer.
        visible: producers with an open transaction that has records at or above the log start.
    """

    whole: bool
    log_start: int = 0
    cleaned_to: int = 0
    first: dict[int, int] = field(default_factory=dict)
    visible: set[int] = field(default_factory=set)

    @property
    def hidden_to(self) -> int:
        """Below it the log does not tell all that there was."""
        return max(self.log_start, self.cleaned_to)

    def follow(self, events: Iterable[TransactionEvent]) -> list[Aborted]:
        """Yield the transactions that a segment's events abort, in order."""
        aborted = []
        tells_all = self.whole and not self.cleaned_to
        events = list(events)
        begun = [(number, event.first_offset) for number, event in enumerate(events) if event.kind == "data"]
        for number, event in enumerate(events):
            if event.kind == "data":
                self.first.setdefault(event.producer_id, event.first_offset)
                if event.first_offset >= self.hidden_to:
                    self.visible.add(event.producer_id)
                continue
            first = self.first.pop(event.producer_id, None)
            visible = event.producer_id in self.visible
            self.visible.discard(event.producer_id)
            if event.kind == "abort" and (first is not None or not tells_all):
                stable = min(self.first.values(), default=event.last_offset + 1)
                start = event.first_offset if first is None else first
                known = tells_all and first is not None and min(first, stable) >= self.hidden_to
                others = frozenset([*self.first.values(), *(first for later, first in begun if later > number)])
                aborted.append(Aborted(event.producer_id, start, event.last_offset, stable, known, visible, others))
        return aborted


def check_transactions(verdict: SegmentVerdict, open_: OpenTransactions, reporter: Reporter) -> list[FileVerdict]:
    """Report the errors of a fetch of committed records; return the verdict on the file, if it exists or should exist.

    Args:
        verdict: verdict on the segment.
        open_: open transactions after the segments before; updated.
        reporter: receives the findings.
    """
    expected = open_.follow(verdict.transactions)
    path = verdict.segment.path(_SUFFIX)
    if any(file.path == str(path) for file in verdict.files):  # unreadable, and said so
        return []
    is_cleaned = verdict.compacted or verdict.segment.base_offset < open_.cleaned_to
    certain = [each for each in expected if each.visible and each.first_offset < each.last_offset]
    if verdict.segment.is_last and not verdict.segment.clean:
        certain = _without_last(certain, verdict, reporter)
    if verdict.aborted is None:
        if not certain or is_cleaned:
            return []
        first = certain[0]
        reporter.add(
            _SUFFIX,
            "TX-15",
            "missing",
            f"there is no .txnindex for {len(certain)} aborted transactions: a consumer of committed records "
            f"gets those from offset {first.first_offset} on",
            offset=first.first_offset,
        )
        return [FileVerdict(str(path), "missing")]
    _check_entries(verdict, verdict.aborted, expected, certain, open_.hidden_to, reporter, is_cleaned=is_cleaned)
    torn = [finding.verdict for finding in verdict.findings if finding.path == str(path)]
    found: Verdict = worst([reporter.verdict(_SUFFIX), *torn])
    why = ""
    if found == "exact" and (is_cleaned or not all(each.known for each in expected)):
        found, why = (
            "sound",
            "the log does not tell all that was aborted: its beginning, or what compaction took, is gone",
        )
    size = len(verdict.aborted) * 34
    return [FileVerdict(str(path), found, "2.4.0 – 4.4.0" if found == "exact" else "", why, len(verdict.aborted), size)]


def _without_last(certain: list[Aborted], verdict: SegmentVerdict, reporter: Reporter) -> list[Aborted]:
    """Return the transactions up to the last entry; a remark names the transactions that are not written yet."""
    last = max((entry[3] for entry in verdict.aborted or ()), default=-1)
    later = [each for each in certain if each.last_offset > last]
    if later:
        reporter.add(
            _SUFFIX,
            "TX-15",
            "sound",
            f"no entry yet for {counted(len(later), 'aborted transaction')} at the end: a start rebuilds the file",
            offset=later[0].last_offset,
        )
    return [each for each in certain if each.last_offset <= last]


def _check_entries(
    verdict: SegmentVerdict,
    entries: Sequence[tuple[int, ...]],
    expected: Sequence[Aborted],
    certain: Sequence[Aborted],
    hidden_to: int,
    reporter: Reporter,
    *,
    is_cleaned: bool,
) -> None:
    by_marker = {each.last_offset: each for each in expected}
    base = verdict.segment.base_offset
    before = -1
    for slot, entry in enumerate(entries):
        version, producer, first, last, stable = entry
        place = {"slot": slot, "offset": last, "actual": f"producer {producer}: {first} to {last}, stable {stable}"}
        if version != 0:
            reporter.add(_SUFFIX, "TX-7b", "broken", f"version {version} is unknown: 4.4 cannot load the log", **place)
        if last < base:
            reporter.add(
                _SUFFIX,
                "TX-12a",
                "broken",
                f"last offset {last} is below the base offset {base}: sanity check",
                **place,
            )
        if last <= before:
            reporter.add(
                _SUFFIX,
                "TX-10",
                "broken",
                f"last offset {last} follows {before}: truncation cuts at the wrong entry",
                **place,
            )
        before = last
        right = by_marker.pop(last, None)
        if right is None and is_cleaned:
            continue
        if right is None:
            reporter.add(
                _SUFFIX,
                "TX-15",
                "broken",
                f"no abort marker is at offset {last}: a read_committed consumer misses the records of producer "
                f"{producer} from {first} to {last}",
                **place,
            )
        elif not right.allows(entry, hidden_to):
            wanted = f"producer {right.producer_id}: {right.first_offset} to {right.last_offset}, "
            wanted += f"stable {right.last_stable_offset}"
            reporter.add(
                _SUFFIX,
                "TX-15",
                "broken",
                f"({producer}, {first}, {last}, {stable}) is not what the log tells, {wanted}: "
                "a consumer of committed records gets aborted ones, or misses others",
                expected=wanted,
                **place,
            )
    for each in certain:
        if each.last_offset in by_marker and not is_cleaned:
            reporter.add(
                _SUFFIX,
                "TX-15",
                "broken",
                f"the transaction of producer {each.producer_id} that the marker at {each.last_offset} aborts is "
                f"missing: a consumer of committed records gets those from offset {each.first_offset} on",
                offset=each.last_offset,
                expected=f"producer {each.producer_id}: {each.first_offset} to {each.last_offset}",
            )
