"""Rules for the ``.txnindex`` files of a partition, according to the markers in its log (TX-15).

An entry is right if its last offset is the offset of an abort marker, its first offset the start of the transaction,
and its last stable offset the start of the earliest other open transaction, or else the offset after the marker. A
transaction may begin segments before it ends, so a partition is checked as a whole, in order. The start of a
transaction whose first records retention has deleted is unknown; then only the remaining rules apply. Compaction
removes the data of an aborted transaction, and later its marker, below the offset up to which it has cleaned. The start
of a transaction that began below that offset is unknown, too.

A broker writes the entries of an append after all its batches: a broker that is killed between them omits the entries.
Only the last segment can lack them, and the next start rebuilds its file.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from kidx.dialect import DIALECTS
from kidx.findings import Fault, worst
from kidx.printable import counted
from kidx.verify.verdicts import FileVerdict, SegmentVerdict

if TYPE_CHECKING:
    from kidx.dialect import Dialect
    from kidx.discovery import Segment
    from kidx.findings import Verdict
    from kidx.verify.facts import TransactionEvent
    from kidx.verify.reporter import Reporter

_SUFFIX: Final = ".txnindex"
_ALL: Final = f"{next(iter(DIALECTS))} – {list(DIALECTS)[-1]}"
"""The releases, all of which write the same bytes."""


class Aborted(NamedTuple):
    """Entry that an aborted transaction should have, according to the log.

    If ``known`` is False, ``first_offset`` is an upper bound. ``visible`` is True if a consumer can read a record of
    the transaction. ``others`` are the first offsets of all transactions that were open at the marker, or began after
    it in the segment. A follower, or a replica that moves between disks, appends many batches in one call. Its last
    stable offset is then the start of the earliest transaction that is open at the end of the call.
    """

    producer_id: int
    first_offset: int
    last_offset: int
    last_stable_offset: int
    known: bool
    visible: bool = True
    others: frozenset[int] = frozenset()

    def allows(self, entry: tuple[int, ...], hidden_to: int) -> bool:
        """Return True if an entry of a file is right.

        Args:
            entry: version, producer, first offset, last offset and last stable offset.
            hidden_to: offset below which the log does not have all records.
        """
        _, producer, first, last, stable = entry
        if (producer, last) != (self.producer_id, self.last_offset):
            return False
        if self.known:
            return first == self.first_offset and stable in {self.last_stable_offset, last + 1, *self.others}
        # A recovery reads nothing below the log start, so that the transaction begins with its remaining records.
        unseen = min(first, self.first_offset) < hidden_to or first == self.first_offset
        least = min(stable, self.last_stable_offset)
        return unseen and (least < hidden_to or stable == least or stable in self.others)


def cleaned_to(verdicts: Sequence[SegmentVerdict], noted: int) -> int:
    """Return the offset below which compaction may have removed records.

    Args:
        verdicts: verdicts on the segments, whose batches show compaction.
        noted: offset in the cleaner's checkpoint; 0 without one.
    """
    ends = [0, noted]
    for one, other in pairwise(verdicts):
        end = one.last_offset + 1 if one.batches else one.segment.base_offset
        if one.compacted or end < other.segment.base_offset:
            ends.append(other.segment.base_offset)
    ends += [verdict.last_offset + 1 for verdict in verdicts[-1:] if verdict.compacted]
    return max(ends)


@dataclass(slots=True)
class OpenTransactions:
    """Transactions that are open at the end of a segment, carried over to the next segment.

    Attributes:
        whole: True if the log begins at offset 0, so that no transaction began before it.
        log_start: offset below which a consumer cannot read.
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
        """Offset below which the log may lack records or markers."""
        return max(self.log_start, self.cleaned_to)

    def follow(self, events: Iterable[TransactionEvent]) -> list[Aborted]:
        """Update the open transactions with a segment's events; return the aborted transactions, in order."""
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


def check_transactions(
    verdict: SegmentVerdict, open_: OpenTransactions, reporter: Reporter[Segment]
) -> list[FileVerdict]:
    """Report entries that mislead a consumer of committed records; return the verdict on an existing or missing file.

    Args:
        verdict: verdict on the segment.
        open_: open transactions after the previous segments; updated.
        reporter: receives the findings.
    """
    expected = open_.follow(verdict.transactions)
    path = verdict.segment.path(_SUFFIX)
    if any(file.path == str(path) for file in verdict.files):  # unreadable, which is already a finding
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
            path,
            Fault.MISSING_INDEX,
            "missing",
            f"there is no .txnindex for {len(certain)} aborted transactions: a consumer of committed records "
            f"gets their records from offset {first.first_offset} on",
            offset=first.first_offset,
        )
        return [FileVerdict(str(path), "missing")]
    _check_entries(verdict, verdict.aborted, expected, certain, open_.hidden_to, reporter, is_cleaned=is_cleaned)
    torn = [finding.verdict for finding in verdict.findings if finding.path == str(path)]
    found: Verdict = worst([reporter.verdict(path), *torn])
    why = ""
    if found == "exact" and (is_cleaned or not all(each.known for each in expected)):
        found, why = (
            "sound",
            "the log does not show all aborted transactions: its beginning was deleted, or compaction removed records",
        )
    size = len(verdict.aborted) * 34
    return [FileVerdict(str(path), found, _ALL if found == "exact" else "", why, len(verdict.aborted), size)]


def _without_last(certain: list[Aborted], verdict: SegmentVerdict, reporter: Reporter[Segment]) -> list[Aborted]:
    """Return the transactions up to the last entry; report transactions without an entry yet as a remark."""
    path = verdict.segment.path(_SUFFIX)
    last = max((entry[3] for entry in verdict.aborted or ()), default=-1)
    later = [each for each in certain if each.last_offset > last]
    if later:
        reporter.add(
            path,
            Fault.PENDING_TRANSACTION,
            "sound",
            f"no entry yet for {counted(len(later), 'aborted transaction')} at the end: the next start rebuilds the "
            "file",
            offset=later[0].last_offset,
        )
    return [each for each in certain if each.last_offset <= last]


def _rejects(version: int, dialect: Dialect) -> bool:
    """Return True if a release rejects an entry of this version (TX-7)."""
    return version > 0 or dialect.strict_txn_version


def _check_entries(
    verdict: SegmentVerdict,
    entries: Sequence[tuple[int, ...]],
    expected: Sequence[Aborted],
    certain: Sequence[Aborted],
    hidden_to: int,
    reporter: Reporter[Segment],
    *,
    is_cleaned: bool,
) -> None:
    by_marker = {each.last_offset: each for each in expected}
    base, path = verdict.segment.base_offset, verdict.segment.path(_SUFFIX)
    before = -1
    for slot, entry in enumerate(entries):
        version, producer, first, last, stable = entry
        place: dict[str, Any] = {
            "slot": slot,
            "offset": last,
            "actual": f"producer {producer}: {first} to {last}, stable {stable}",
        }
        if version != 0:
            unknown = f"version {version} is unknown: a broker cannot load the log"
            reporter.add_where(partial(_rejects, version), path, Fault.TRANSACTION_VERSION, unknown, **place)
        if last < base:
            reporter.add(
                path,
                Fault.BELOW_BASE,
                "broken",
                f"last offset {last} is below the base offset {base}: the broker's sanity check rejects the file",
                **place,
            )
        if last <= before:
            reporter.add(
                path,
                Fault.ENTRY_ORDER,
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
                path,
                Fault.TRANSACTION,
                "broken",
                f"no abort marker is at offset {last}: a read_committed consumer misses the records of producer "
                f"{producer} from {first} to {last}",
                **place,
            )
        elif not right.allows(entry, hidden_to):
            wanted = f"producer {right.producer_id}: {right.first_offset} to {right.last_offset}, "
            wanted += f"stable {right.last_stable_offset}"
            reporter.add(
                path,
                Fault.TRANSACTION,
                "broken",
                f"({producer}, {first}, {last}, {stable}) differs from the log, which has {wanted}: "
                "a consumer of committed records gets aborted ones, or misses others",
                expected=wanted,
                **place,
            )
    for each in certain:
        if each.last_offset in by_marker and not is_cleaned:
            reporter.add(
                path,
                Fault.TRANSACTION,
                "broken",
                f"the transaction of producer {each.producer_id} that the marker at {each.last_offset} aborts is "
                f"missing: a consumer of committed records gets its records from offset {each.first_offset} on",
                offset=each.last_offset,
                expected=f"producer {each.producer_id}: {each.first_offset} to {each.last_offset}",
            )
