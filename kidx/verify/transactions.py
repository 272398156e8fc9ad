"""The ``.txnindex`` of every segment of a partition against the control records of its log (TX-15).

An entry is right if its last offset is that of an abort marker, its first offset where the transaction began, and its
last stable offset where the earliest other open transaction began, else the offset behind the marker. A transaction may
begin segments before it ends, so this is done once for a partition, in order. What began before the log does, because
retention or compaction took it, is not known, and then only what can be said is checked.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, NamedTuple

from kidx.findings import worst
from kidx.verify.verdicts import FileVerdict, SegmentVerdict

if TYPE_CHECKING:
    from kidx.findings import Verdict
    from kidx.verify.facts import TransactionEvent
    from kidx.verify.reporter import Reporter

_SUFFIX: Final = ".txnindex"


class Aborted(NamedTuple):
    """An entry; ``first_offset`` and ``last_stable_offset`` are upper bounds where ``known`` is False.

    It is ``visible`` if records of the transaction are known that a consumer can read.
    """

    producer_id: int
    first_offset: int
    last_offset: int
    last_stable_offset: int
    known: bool
    visible: bool = True

    def allows(self, entry: tuple[int, ...], log_start: int) -> bool:
        """Whether an entry of a file, version first, can be this one."""
        _, producer, first, last, stable = entry
        if (producer, last) != (self.producer_id, self.last_offset):
            return False
        if self.known:
            return (first, stable) == (self.first_offset, self.last_stable_offset)
        # Of what is below the log start a recovery reads nothing: then it begins with what is left of it.
        unseen = min(first, self.first_offset) < log_start or first == self.first_offset
        return unseen and (min(stable, self.last_stable_offset) < log_start or stable <= self.last_stable_offset)


@dataclass(slots=True)
class OpenTransactions:
    """Which transactions are open, from segment to segment.

    Attributes:
        whole: the log is there from offset 0 on, so that nothing can have begun before it.
        log_start: below it is nothing that a consumer can read.
        first: where each open transaction began, by producer.
        visible: producers with an open transaction of which something is at or above the log start.
    """

    whole: bool
    log_start: int = 0
    first: dict[int, int] = field(default_factory=dict)
    visible: set[int] = field(default_factory=set)

    def follow(self, events: Iterable[TransactionEvent]) -> list[Aborted]:
        """The transactions that a segment's events abort, in order."""
        aborted = []
        for event in events:
            if event.kind == "data":
                self.first.setdefault(event.producer_id, event.first_offset)
                if event.first_offset >= self.log_start:
                    self.visible.add(event.producer_id)
                continue
            first = self.first.pop(event.producer_id, None)
            visible = event.producer_id in self.visible
            self.visible.discard(event.producer_id)
            if event.kind == "abort" and (first is not None or not self.whole):
                stable = min(self.first.values(), default=event.last_offset + 1)
                start = event.first_offset if first is None else first
                known = self.whole and first is not None and min(first, stable) >= self.log_start
                aborted.append(Aborted(event.producer_id, start, event.last_offset, stable, known, visible))
        return aborted


def check_transactions(verdict: SegmentVerdict, open_: OpenTransactions, reporter: Reporter) -> list[FileVerdict]:
    """Reports what a fetch of committed records would get wrong; the verdict on the file, if there is or should be one.

    Args:
        verdict: of the segment.
        open_: as the segments before leave it; taken on.
        reporter: receives the findings.
    """
    expected = open_.follow(verdict.transactions)
    path = verdict.segment.path(_SUFFIX)
    if any(file.path == str(path) for file in verdict.files):  # unreadable, and said so
        return []
    log_start = open_.log_start
    certain = [each for each in expected if each.visible and each.first_offset < each.last_offset]
    if verdict.aborted is None:
        if not certain or verdict.compacted:
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
    _check_entries(verdict, verdict.aborted, expected, certain, log_start, reporter)
    torn = [finding.verdict for finding in verdict.findings if finding.path == str(path)]
    found: Verdict = worst([reporter.verdict(_SUFFIX), *torn])
    why = ""
    if found == "exact" and (verdict.compacted or not all(each.known for each in expected)):
        found, why = (
            "sound",
            "the log does not tell all that was aborted: its beginning, or what compaction took, is gone",
        )
    size = len(verdict.aborted) * 34
    return [FileVerdict(str(path), found, "2.4.0 – 4.4.0" if found == "exact" else "", why, len(verdict.aborted), size)]


def _check_entries(
    verdict: SegmentVerdict,
    entries: Sequence[tuple[int, ...]],
    expected: Sequence[Aborted],
    certain: Sequence[Aborted],
    log_start: int,
    reporter: Reporter,
) -> None:
    by_marker = {each.last_offset: each for each in expected}
    base = verdict.segment.base_offset
    before = -1
    for slot, entry in enumerate(entries):
        version, producer, first, last, stable = entry
        place = {"slot": slot, "offset": last, "actual": f"producer {producer}: {first} to {last}, stable {stable}"}
        if version != 0:
            reporter.add(
                _SUFFIX, "TX-7b", "broken", f"version {version} is unknown: 4.4 refuses to load the log", **place
            )
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
        if right is None and verdict.compacted:
            continue
        if right is None:
            reporter.add(
                _SUFFIX,
                "TX-15",
                "broken",
                f"no abort marker is at offset {last}: a consumer of committed records misses those of producer "
                f"{producer} from {first} to {last}",
                **place,
            )
        elif not right.allows(entry, log_start):
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
        if each.last_offset in by_marker and not verdict.compacted:
            reporter.add(
                _SUFFIX,
                "TX-15",
                "broken",
                f"the transaction of producer {each.producer_id} that the marker at {each.last_offset} aborts is "
                f"missing: a consumer of committed records gets those from offset {each.first_offset} on",
                offset=each.last_offset,
                expected=f"producer {each.producer_id}: {each.first_offset} to {each.last_offset}",
            )
