"""Power failures of the cache of remote index files: Kafka's own cache starts with every state that its files may have.

The cache syncs nothing, so each file that it fetched may have lost its end, a page or its name. In lockstep, kidx opens
the same files. Also without kidx, two guarantees are checked: the cache opens, and no lookup returns a position past
the wanted record.
"""

from __future__ import annotations

import shutil
import struct
from collections.abc import Iterator, Sequence
from random import Random
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from conformance.implementations.jvm.cache import JvmCache
from conformance.lockstep import DivergenceError
from conformance.machines.cache import CacheMachine
from conformance.operations import Operation
from conformance.operations.cache import DIRECTORY
from conformance.operations.trace import Trace
from conformance.studies.power_loss.explorer import LockstepExplorer
from conformance.studies.power_loss.failures import CrashPoint, Failure, Restart, crash_points_of
from conformance.studies.power_loss.guarantees import Guarantee
from conformance.studies.power_loss.signatures import Finding

if TYPE_CHECKING:
    from conformance.implementations.jvm.journal import Event

# Ids of the segments in remote storage.
_IDS: Final = ("b-_UbGhWQSyTrDfNnQxAAw", "AAAAAAAAAAAAAAAAAAAAAg")
_RESTART: Final = Restart(clean=False, recovery_point=0, start=0)
_OPEN: Final = Operation("open_cache", (1 << 20, 1 << 30, 0))
_ALL: Final = 1 << 40
"""Offset after all records."""


class Stored(NamedTuple):
    """Segment in remote storage.

    Attributes:
        start: first offset.
        offsets: offset and position of each entry of the offset index.
        times: timestamp and offset of each entry of the time index.
        aborted: first and last offset of each aborted transaction.
    """

    id: str
    start: int
    offsets: tuple[tuple[int, int], ...]
    times: tuple[tuple[int, int], ...]
    aborted: tuple[tuple[int, int], ...]

    def operations(self) -> Iterator[Operation]:
        """Yield the operations that put the index files into remote storage."""
        transactions = (struct.pack(">h4q", 0, 7, first, last, last + 1) for first, last in self.aborted)
        files = {
            ".index": b"".join(struct.pack(">2i", offset - self.start, at) for offset, at in self.offsets),
            ".timeindex": b"".join(struct.pack(">qi", time, offset - self.start) for time, offset in self.times),
            ".txnindex": b"".join(transactions),
        }
        for kind, content in files.items():
            yield Operation("store_index", (self.id, kind, "gives", content.hex()))

    def position_of(self, offset: int) -> int:
        """Return the position from which a scan finds an offset."""
        return max((at for first, at in self.offsets if first <= offset), default=0)

    def position_at(self, timestamp: int) -> int:
        """Return the position from which a scan finds a timestamp."""
        return self.position_of(max((offset for time, offset in self.times if time <= timestamp), default=self.start))


class CacheHistory(NamedTuple):
    """Recorded history of a cache.

    Attributes:
        stored: segments in remote storage.
        operations: operations from ``open_cache`` on.
        events: writes, renames and syncs of files by Kafka's classes during the operations.
    """

    stored: tuple[Stored, ...]
    operations: tuple[Operation, ...]
    events: tuple[Event, ...]


CacheFinding = Finding[CacheHistory]


class CacheExplorer(LockstepExplorer[CacheHistory]):
    """Search in one release's cache of remote indexes."""

    machine = CacheMachine
    recorded = JvmCache

    def drawn(self, chance: Random) -> CacheHistory:
        """Execute a generated example, and return its history; see the base class."""
        return self.record(*_drawn(chance))

    def crash_points(self, history: CacheHistory) -> Iterator[CrashPoint]:
        """Yield the crash points at which power may fail; see the base class."""
        return crash_points_of(history.events, lambda _step, _done: (_RESTART,), after=False)

    def trace_of(self, finding: CacheFinding) -> Trace:
        """Return a trace of the cache machine that opens the remaining files; see the base class."""
        title = f"a cache after a power failure: {finding.text}"
        return Trace("cache", self.release, tuple(steps_of(finding.history, finding.failure)), title=title)

    def record(self, stored: Sequence[Stored], operations: Sequence[Operation]) -> CacheHistory:
        """Execute operations with Kafka's classes, and record what they do to the files."""
        shutil.rmtree(self._directory, ignore_errors=True)
        (self._directory / DIRECTORY).mkdir(parents=True)
        self._recorded.begin(self._directory)
        for operation in (each for segment in stored for each in segment.operations()):
            self._recorded.perform(operation)
        self._journal.begin(self._directory / DIRECTORY)
        for number, operation in enumerate(operations):
            self._journal.step(number)
            self._recorded.perform(operation)
        events = tuple(self._journal.end())
        self._recorded.end()
        return CacheHistory(tuple(stored), tuple(operations), events)

    def check(self, history: CacheHistory, failure: Failure) -> dict[Guarantee | None, str]:
        """Return the evidence for each violated guarantee, and for None the divergence; see the base class."""
        found: dict[Guarantee | None, str] = {}
        try:
            with self._lockstep.example():
                for operation in steps_of(history, failure):
                    outcome = self._lockstep.perform(operation).outcome
                    guarantee, wrong = _violation(history, operation, outcome)
                    if wrong:
                        found.setdefault(guarantee, wrong)
                    if operation == _OPEN and outcome.error is not None:
                        found[Guarantee.CACHE_OPENS] = f"{outcome.error}: {(outcome.text or '')[:80]}"
                        break
                else:
                    self._lockstep.compare_directories()
                self._lockstep.flush()
        except DivergenceError as error:
            return {None: f"{error.divergence.operation}: {', '.join(error.divergence.aspects)}"}
        return found


def steps_of(history: CacheHistory, failure: Failure) -> list[Operation]:
    """Return the operations that write the remaining files, open the cache, and look up in each segment."""
    steps = [each for segment in history.stored for each in segment.operations()]
    steps += [_OPEN, Operation("crash_cache")]
    for name, content in sorted(failure.files().items()):
        steps.append(Operation("damage_cached_file", (name, "write_file", [content.hex()])))
    steps.append(_OPEN)
    for segment in history.stored:
        first, last = segment.offsets[0][0], segment.offsets[-1][0]
        for offset in (segment.start, (first + last) // 2, last + 1):
            steps.append(Operation("look_up_offset", (segment.id, segment.start, offset)))
        for target in (segment.times[0][0], segment.times[-1][0] - 1, segment.times[-1][0] + 1):
            steps.append(Operation("look_up_timestamp", (segment.id, segment.start, target, segment.start)))
        steps.append(Operation("aborted_in", (segment.id, segment.start, segment.start, _ALL)))
    return steps


def _violation(history: CacheHistory, operation: Operation, outcome: Any) -> tuple[Guarantee, str]:
    """Return the guarantee that an operation checks, and the evidence of its violation; empty if it is kept."""
    segment = next((each for each in history.stored if operation.args and each.id == operation.args[0]), None)
    if segment is None or outcome.error is not None:
        return Guarantee.CACHE_LOOKUP, ""
    _, _, target, *_ = (*operation.args, 0)
    match operation.name:
        case "look_up_offset" if outcome.value > segment.position_of(target):
            return Guarantee.CACHE_LOOKUP, f"offset {target}: position {outcome.value} is past the record"
        case "look_up_timestamp" if outcome.value > segment.position_at(target):
            return Guarantee.CACHE_LOOKUP, f"timestamp {target}: position {outcome.value} is past the record"
        case "aborted_in":
            found, _ = outcome.value
            missing = len(segment.aborted) - len(found)
            return (
                Guarantee.CACHE_ABORTED,
                f"{missing} of {len(segment.aborted)} aborted transactions" if missing else "",
            )
    return Guarantee.CACHE_LOOKUP, ""


def _drawn(chance: Random) -> tuple[list[Stored], list[Operation]]:
    """Draw segments of remote storage, and operations that fetch, remove and fetch again."""
    stored = [_segment(chance, name, 1000 * number) for number, name in enumerate(_IDS)]
    operations = [_OPEN]
    for _ in range(chance.randint(1, 4)):
        segment = chance.choice(stored)
        operations.append(Operation("fetch_entry", (segment.id, segment.start, False)))
        if chance.random() < 0.3:
            operations.append(Operation("remove_entries", ([segment.id],)))
            if chance.random() < 0.5:
                operations.append(Operation("delete_removed"))
    return stored, [*operations, Operation("close_cache")] if chance.random() < 0.5 else operations


def _segment(chance: Random, name: str, start: int) -> Stored:
    """Draw a segment with indexes of a few entries, or of more than a page."""
    count = chance.choice((1, 3, 5, 600))
    offsets = tuple((start + 1 + n, 100 * (n + 1)) for n in range(count))
    times = tuple((10_000 + 10 * n, start + 1 + n) for n in range(count))
    aborted = tuple((start + 2 * n, start + 2 * n + 1) for n in range(chance.choice((0, 1, 2, 130))))
    return Stored(name, start, offsets, times, aborted)
