"""Power failures of a segment: Kafka's own ``LogSegment`` opens every state that its four files may have.

A broker trusts a segment below the recovery point, and every segment after a clean shutdown: it opens the files and
checks their sizes. It recovers all others. In lockstep, kidx does the same. Also without kidx, guarantees are checked:
all batches of the last flush exist, and lookups by offset, by time and of aborted transactions find what a scan finds.
Names of files are not lost, because the log syncs the directory, not the segment.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from random import Random
from typing import TYPE_CHECKING, Any, Final

from conformance.implementations.jvm.journal import DirectorySynced, Renamed, StepBegins
from conformance.implementations.jvm.segment import JvmSegment
from conformance.lockstep import DivergenceError
from conformance.machines.segment import SegmentMachine
from conformance.operations import Operation
from conformance.operations.batches import encode
from conformance.operations.segment import SUFFIXES
from conformance.operations.trace import Trace
from conformance.studies.power_loss.batches import Batch, batches_of_log, targets_of, timestamps_of
from conformance.studies.power_loss.disk import disks
from conformance.studies.power_loss.explorer import LockstepExplorer
from conformance.studies.power_loss.failures import CrashPoint, Failure, Restart, crash_points_of
from conformance.studies.power_loss.guarantees import Guarantee
from conformance.studies.power_loss.signatures import Finding
from kidx.dialect import dialect_of
from kidx.segment import file_name, follower_append_info

if TYPE_CHECKING:
    from conformance.implementations.jvm.journal import Event

_NOW: Final = 1_000_000
_PREALLOCATED: Final = 20_000
_INT_MAX: Final = (1 << 31) - 1
_LATEST: Final = 1 << 40
_NAME: Final = file_name(0, ".log")
_CHANGES: Final = frozenset({"append_records", "update_txn_index", "truncate_segment", "become_inactive"})


@dataclass(frozen=True)
class SegmentHistory:
    """Recorded history of a segment.

    Attributes:
        operations: operations from ``open_segment`` on.
        events: writes, renames and syncs of files by Kafka's classes during the operations.
    """

    operations: tuple[Operation, ...]
    events: tuple[Event, ...]


SegmentFinding = Finding[SegmentHistory]


class SegmentExplorer(LockstepExplorer[SegmentHistory]):
    """Search in one release's segment."""

    machine = SegmentMachine
    recorded = JvmSegment
    apart = "close_segment"

    def drawn(self, chance: Random) -> SegmentHistory:
        """Execute a generated example, and return its history; see the base class."""
        return self.record(_drawn(chance, finishes=dialect_of(self.release).close_finishes_segment))

    def record(self, operations: Iterable[Operation]) -> SegmentHistory:
        """Execute operations with Kafka's classes, and record what they do to the files."""
        shutil.rmtree(self._directory, ignore_errors=True)
        self._directory.mkdir(parents=True)
        self._recorded.begin(self._directory)
        self._journal.begin(self._directory)
        done = list[Operation]()
        for operation in operations:
            self._journal.step(len(done))
            self._recorded.perform(operation)
            done.append(operation)
        events = self._journal.end()
        self._recorded.end()
        return SegmentHistory(tuple(done), tuple(_with_names(events)))

    def crash_points(self, history: SegmentHistory) -> Iterator[CrashPoint]:
        """Yield the crash points at which power may fail; see the base class."""
        return crash_points_of(
            history.events, lambda step, done: _restarts(history.operations[: step + 1 if done else step])
        )

    def check(self, history: SegmentHistory, failure: Failure) -> dict[Guarantee | None, str]:
        """Return the evidence for each violated guarantee, and for None the divergence; see the base class."""
        return self._opened(history, failure)[1]

    def trace_of(self, finding: SegmentFinding) -> Trace:
        """Return a trace of the segment machine that opens the remaining files; see the base class."""
        steps, _ = self._opened(finding.history, finding.failure)
        title = f"a segment after a power failure: {finding.text}"
        return Trace("segment", self.release, tuple(steps), title=title)

    def _opened(self, history: SegmentHistory, failure: Failure) -> tuple[list[Operation], dict[Guarantee | None, str]]:
        """Return the steps that open the remaining files and look up everything, and what they show."""
        steps = list[Operation]()

        def do(name: str, *arguments: Any) -> Any:
            steps.append(Operation(name, arguments))
            return self._lockstep.perform(steps[-1]).outcome

        try:
            with self._lockstep.example():
                found = self._open(history, failure, do)
                self._lockstep.compare_directories()
                self._lockstep.flush()
        except DivergenceError as error:
            return steps, {None: f"{error.divergence.operation}: {', '.join(error.divergence.aspects)}"}
        return steps, found

    def _open(self, history: SegmentHistory, failure: Failure, do: Any) -> dict[Guarantee | None, str]:
        opening, files = history.operations[0], failure.files()
        do(opening.name, *opening.args)
        do("crash_segment")
        for suffix in SUFFIXES:
            content = files.get(file_name(0, suffix))
            how = ("remove_file", []) if content is None else ("write_file", [content.hex()])
            do("damage_segment_file", suffix, *how)
        base, interval, size, jitter, _, _, _, suffix, now = opening.args
        is_new = file_name(0, ".timeindex") not in files
        outcome = do("open_segment", base, interval, size, jitter, True, 0, False, suffix, now)
        if outcome.error is None:
            trusted = failure.restart.clean and do("check_segment", is_new).error is None
            outcome = outcome if trusted else do("recover_segment")
        if outcome.error is not None:
            return {Guarantee.OPENS: f"{outcome.error}: {(outcome.text or '')[:80]}"}
        return self._looked_up(history, failure, do)

    def _looked_up(self, history: SegmentHistory, failure: Failure, do: Any) -> dict[Guarantee | None, str]:
        size = self._lockstep.primary.observation.state.size
        batches = batches_of_log({_NAME: (self._lockstep.primary.files[0] or b"")[:size]})
        found = _lost(failure, history, batches)
        end, at = (batches[-1].last + 1 if batches else 0), 0
        if (seen := do("read_next_offset")).value != end:
            found[Guarantee.BY_OFFSET] = f"the next offset is {seen.value or seen.error}, and a scan finds {end}"
        for batch in batches:
            for offset in dict.fromkeys((batch.base, batch.last)):
                seen = do("read_segment", offset, _INT_MAX, size, True)
                if seen.value is None or seen.value[1] != at:
                    actual = seen.error or "nothing" if seen.value is None else f"position {seen.value[1]}"
                    found.setdefault(Guarantee.BY_OFFSET, f"offset {offset}: {actual}, and a scan finds {at}")
            at += len(batch.data)
        records = timestamps_of(batches)
        largest = max((timestamp for _, timestamp in records), default=None)
        if largest is not None and (seen := do("largest_timestamp", 0)).value != largest:
            # A log looks up a timestamp only in segments whose largest timestamp is not before it.
            found[Guarantee.BY_TIME] = (
                f"the largest timestamp is {seen.value or seen.error}, and a scan finds {largest}"
            )
        for target in [*targets_of(batches), _LATEST]:
            wanted = next((offset for offset, timestamp in records if timestamp >= target), None)
            seen = do("find_offset", target, 0, _INT_MAX - 8)
            actual = seen.error or (seen.value and seen.value[1])
            if actual != wanted:
                text = f"timestamp {target}: offset {actual}, and a scan finds {wanted}"
                found.setdefault(Guarantee.BY_TIME, text)
        aborted, _ = do("collect_from_segment", 0, _LATEST).value or ((), False)
        for batch in batches:
            if batch.is_abort and len(aborted) < sum(each.is_abort for each in batches):
                found.setdefault(Guarantee.ABORTED, f"{len(aborted)} of the aborted transactions of a scan")
        return found


def _with_names(events: Iterable[Event]) -> Iterator[Event]:
    """Yield the events, with a sync of the directory after each new name."""
    for event in events:
        yield event
        if isinstance(event, Renamed):
            yield DirectorySynced("the log")


def _drawn(chance: Random, *, finishes: bool) -> Iterator[Operation]:
    """Draw the operations of a segment; each record has its own timestamp.

    Args:
        chance: source of randomness.
        finishes: True if closing a segment at a shutdown trims its files, as before 4.4; otherwise the segment becomes
            inactive first.
    """
    preallocates = chance.random() < 0.3
    room = _PREALLOCATED if preallocates else 0
    interval, size = chance.choice((0, 0, 100)), chance.choice((120, 240, 9000))
    yield Operation("open_segment", (0, interval, size, 0, False, room, preallocates, "", _NOW))
    bases, end, timestamps, newest = [0], 0, set[int](), 10_000
    value = chance.choice((0, 20, 3000))
    for _ in range(chance.randint(1, 8)):
        act = chance.choice(("append",) * 6 + ("flush", "flush", "truncate", "abort"))
        if act == "flush":
            yield Operation("flush_segment")
        elif act == "truncate":
            end = chance.choice(bases)
            bases = [base for base in bases if base <= end]
            yield Operation("truncate_segment", (end, _NOW))
        else:
            rows = []
            for number in range(1 if act == "abort" else chance.choice((1, 1, 2))):
                timestamp = newest + chance.choice((10, 10, 100, -35))
                while timestamp in timestamps:
                    timestamp += 1
                timestamps.add(timestamp)
                newest = max(newest, timestamp)
                rows.append([number, timestamp, value])
            producer = {"producer": [7, 0, end], "transactional": True}
            sent: list[dict[str, Any]] = [{"base": end, "records": rows} | (producer if act == "abort" else {})]
            last = end + len(rows) - 1
            if act == "abort":
                last += 1
                marker = [[0, rows[0][1]]]
                sent.append({"base": last, "marker": "abort", "records": marker, "producer": [7, 0, -1]})
            data = encode(sent)
            yield Operation("append_records", (data.hex(), *follower_append_info(data)))
            if act == "abort":
                yield Operation("update_txn_index", (7, end, last, True, last + 1))
            end = last + 1
            bases.append(end)
    yield from _end(chance, finishes=finishes)


def _end(chance: Random, *, finishes: bool) -> Iterator[Operation]:
    """Draw the end of a segment: it is rolled, or the broker is shut down."""
    end = chance.choice(("roll", "roll", "shutdown", "shutdown", "none"))
    if end == "roll" or (end == "shutdown" and not finishes):
        yield Operation("become_inactive")
    if end != "none":
        yield Operation("flush_segment")
    if end == "shutdown":
        yield Operation("close_segment")


def _restarts(ended: Sequence[Operation]) -> Iterator[Restart]:
    """Yield the restarts after operations: a broker trusts an inactive segment that was flushed, and a closed one."""
    names = [operation.name for operation in ended]
    last = max((n for n, name in enumerate(names) if name in _CHANGES), default=0)
    flushed = "flush_segment" in names[last:]
    if flushed and ("become_inactive" in names or names[-1] == "close_segment"):
        yield Restart(clean=True, recovery_point=0, start=0)
    yield Restart(clean=False, recovery_point=0, start=0)


def _lost(failure: Failure, history: SegmentHistory, batches: Sequence[Batch]) -> dict[Guarantee | None, str]:
    """Return the violation if a batch of the last flush is lost that was not truncated since."""
    crash_point, there = failure.crash_point, {batch.base: batch.data for batch in batches}
    for batch in _durable(history, crash_point):
        if there.get(batch.base) != batch.data:
            return {Guarantee.DURABLE: f"offsets {batch.base} to {batch.last}"}
    return {}


def _durable(history: SegmentHistory, crash_point: CrashPoint) -> list[Batch]:
    """Return the batches of the last flush that have not been truncated since."""
    durable = list[Batch]()
    for event, disk in zip(history.events, disks(history.events), strict=True):
        if disk.event > crash_point.disk.event:
            break
        if isinstance(event, StepBegins):
            if event.number and history.operations[event.number - 1].name == "flush_segment":
                durable = batches_of_log(disk.live())
            operation = history.operations[event.number]
            if operation.name == "truncate_segment":
                durable = [batch for batch in durable if batch.last < operation.args[0]]
    ended = crash_point.done and history.operations[crash_point.step].name == "flush_segment"
    return batches_of_log(crash_point.disk.live()) if ended else durable
