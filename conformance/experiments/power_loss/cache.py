"""Power failures of the cache of remote index files: Kafka's own cache starts with every state that its files may have.

The cache syncs nothing, so each file that it fetched may have lost its end, a page or its name. In lockstep, kidx opens
the same files. Without a reference, the cache has to open, and a lookup must not pass what remote storage has.
"""

from __future__ import annotations

import shutil
import struct
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from conformance.experiments.power_loss.disk import Length, Loss, disks
from conformance.experiments.power_loss.failures import Failure, Moment, Restart, fewest, losses
from conformance.experiments.power_loss.promises import Promise
from conformance.experiments.power_loss.signatures import Signature, signature_of
from conformance.implementations.jvm.cache import JvmCache
from conformance.implementations.jvm.journal import JournalledClasses
from conformance.lockstep import DivergenceError
from conformance.machines import CacheMachine
from conformance.operations import Operation
from conformance.operations.cache import DIRECTORY
from conformance.operations.trace import Trace

if TYPE_CHECKING:
    from conformance.implementations.jvm.journal import Event
    from conformance.kafka.jar_fetch import Progress

_IDS: Final = ("b-_UbGhWQSyTrDfNnQxAAw", "AAAAAAAAAAAAAAAAAAAAAg")
_RESTART: Final = Restart(clean=False, recovery_point=0, start=0)
_OPEN: Final = Operation("open_cache", (1 << 20, 1 << 30, 0))
_ALL: Final = 1 << 40
_CUT: Final = 0.5
"""Share of the lost lengths that are between two lengths that the file had."""


class CachePlan(NamedTuple):
    """Amount of work.

    Attributes:
        seed: random seed.
        lives: number of generated lives.
        moments: maximum number of moments in each life.
        losses: number of losses for each moment; all possible ones if there are no more.
        seconds: time after which no new life begins; None for no limit.
    """

    seed: int = 0
    lives: int = 8
    moments: int = 4
    losses: int = 8
    seconds: float | None = None


class Stored(NamedTuple):
    """Segment in remote storage.

    Attributes:
        id: id of the segment.
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


class CacheLife(NamedTuple):
    """Recorded history of a cache.

    Attributes:
        stored: segments in remote storage.
        operations: operations from ``open_cache`` on.
        events: file operations of Kafka's classes in the meantime.
    """

    stored: tuple[Stored, ...]
    operations: tuple[Operation, ...]
    events: tuple[Event, ...]


@dataclass
class CacheFinding:
    """Guarantee that a power failure breaks, or a divergence of kidx.

    Attributes:
        signature: signature of all failures with the same cause.
        life: the life.
        failure: the failure with the fewest losses.
        text: evidence.
        times: number of occurrences.
    """

    signature: Signature
    life: CacheLife
    failure: Failure
    text: str
    times: int = 1


@dataclass
class CacheExplored:
    """Result of a plan for one release."""

    release: str
    lives: int = 0
    states: int = 0
    findings: list[CacheFinding] = field(default_factory=list)


class CacheExplorer:
    """Runner of power failures for one release's cache.

    Args:
        release: release of the classes, which has the cache.
        scratch: an empty directory.
        progress: called while jars are fetched.

    Raises:
        ToolError: Java or a jar is missing.
    """

    def __init__(self, release: str, scratch: Path, progress: Progress | None = None) -> None:
        self.release = release
        (scratch / "classes").mkdir(parents=True)
        self._directory = scratch / "recorded"
        self._journal = JournalledClasses(release, scratch / "classes", progress)
        self._cache = JvmCache(release, loader=self._journal.loader)
        subjects = [CacheMachine.subject("jvm", release, progress)]
        self._lockstep = CacheMachine.new_lockstep(subjects, scratch / "opening", releases=[release])

    def explore(self, plan: CachePlan) -> CacheExplored:
        """Return the result of a plan."""
        explored = CacheExplored(self.release)
        end = None if plan.seconds is None else time.monotonic() + plan.seconds
        for number in range(plan.lives):
            if end is not None and time.monotonic() > end:
                break
            chance = Random(f"cache {plan.seed} {number}")  # noqa: S311 -- nothing secret
            life = self.record(*_drawn(chance))
            every = list(_moments(life))
            for moment in chance.sample(every, min(plan.moments, len(every))):
                for loss in losses(moment.disk, plan.losses, chance):
                    explored.states += 1
                    self._note(life, Failure(moment, _cut(moment, loss, chance), _RESTART), explored)
            explored.lives += 1
        return explored

    def record(self, stored: Sequence[Stored], operations: Sequence[Operation]) -> CacheLife:
        """Execute operations with Kafka's classes, and record what they do to the files."""
        shutil.rmtree(self._directory, ignore_errors=True)
        (self._directory / DIRECTORY).mkdir(parents=True)
        self._cache.begin(self._directory)
        for operation in (each for segment in stored for each in segment.operations()):
            self._cache.perform(operation)
        self._journal.begin(self._directory / DIRECTORY)
        for number, operation in enumerate(operations):
            self._journal.step(number)
            self._cache.perform(operation)
        events = tuple(self._journal.end())
        self._cache.end()
        return CacheLife(tuple(stored), tuple(operations), events)

    def judge(self, life: CacheLife, failure: Failure) -> dict[Promise | None, str]:
        """Return the evidence for each guarantee that a failure breaks, and for None the divergence of kidx."""
        found: dict[Promise | None, str] = {}
        try:
            with self._lockstep.example():
                for operation in steps_of(life, failure):
                    outcome = self._lockstep.perform(operation).outcome
                    broken, wrong = _broken(life, operation, outcome)
                    if wrong:
                        found.setdefault(broken, wrong)
                    if operation == _OPEN and outcome.error is not None:
                        found[Promise.CACHE_OPENS] = f"{outcome.error}: {(outcome.text or '')[:80]}"
                        break
                else:
                    self._lockstep.compare_directories()
                self._lockstep.flush()
        except DivergenceError as error:
            return {None: f"{error.divergence.operation}: {', '.join(error.divergence.aspects)}"}
        return found

    def _note(self, life: CacheLife, failure: Failure, explored: CacheExplored) -> None:
        for promise in self.judge(life, failure):
            signature = signature_of(life, failure, promise)
            causes = (each for each in explored.findings if each.signature.lost)
            known = next((each for each in causes if each.signature.explains(signature)), None)
            if known is None:

                def still(other: Failure, promise: Promise | None = promise) -> bool:
                    return promise in self.judge(life, other)

                smallest = fewest(failure, still)
                signature = signature_of(life, smallest, promise)
                known = next((each for each in explored.findings if each.signature == signature), None)
                if known is None:
                    text = self.judge(life, smallest)[promise]
                    explored.findings.append(CacheFinding(signature, life, smallest, text))
                    continue
            known.times += 1


def steps_of(life: CacheLife, failure: Failure) -> list[Operation]:
    """Return the operations that write the remaining files, open the cache, and look up in each segment."""
    steps = [each for segment in life.stored for each in segment.operations()]
    steps += [_OPEN, Operation("crash_cache")]
    for name, content in sorted(failure.files().items()):
        steps.append(Operation("damage_cached_file", (name, "write_file", [content.hex()])))
    steps.append(_OPEN)
    for segment in life.stored:
        first, last = segment.offsets[0][0], segment.offsets[-1][0]
        for offset in (segment.start, (first + last) // 2, last + 1):
            steps.append(Operation("look_up_offset", (segment.id, segment.start, offset)))
        for target in (segment.times[0][0], segment.times[-1][0] - 1, segment.times[-1][0] + 1):
            steps.append(Operation("look_up_timestamp", (segment.id, segment.start, target, segment.start)))
        steps.append(Operation("aborted_in", (segment.id, segment.start, segment.start, _ALL)))
    return steps


def trace_of(finding: CacheFinding, release: str) -> Trace:
    """Return a trace of the cache machine that opens the remaining files."""
    title = f"a cache after a power failure: {finding.text}"
    return Trace("cache", release, tuple(steps_of(finding.life, finding.failure)), title=title)


def cache_lines(finding: CacheFinding) -> list[str]:
    """Return evidence, operations and losses of a finding, a line each."""
    steps = enumerate(finding.life.operations[: finding.failure.moment.step + 1], start=1)
    return [
        f"shows        {finding.text}",
        "steps",
        *(f"{number:>5}  {step}" for number, step in steps),
        *(f"lost         {lost}" for lost in finding.failure.described()),
    ]


def _broken(life: CacheLife, operation: Operation, outcome: Any) -> tuple[Promise, str]:
    """Return the guarantee that an operation may break, and the evidence; empty if it holds it."""
    segment = next((each for each in life.stored if operation.args and each.id == operation.args[0]), None)
    if segment is None or outcome.error is not None:
        return Promise.CACHE_LOOKUP, ""
    _, _, target, *_ = (*operation.args, 0)
    match operation.name:
        case "look_up_offset" if outcome.value > segment.position_of(target):
            return Promise.CACHE_LOOKUP, f"offset {target}: position {outcome.value} is past the record"
        case "look_up_timestamp" if outcome.value > segment.position_at(target):
            return Promise.CACHE_LOOKUP, f"timestamp {target}: position {outcome.value} is past the record"
        case "aborted_in":
            found, _ = outcome.value
            missing = len(segment.aborted) - len(found)
            return Promise.CACHE_ABORTED, f"{missing} of {len(segment.aborted)} aborted transactions" if missing else ""
    return Promise.CACHE_LOOKUP, ""


def _moments(life: CacheLife) -> Iterator[Moment]:
    """Yield the moments at which something may be lost that could not be lost before."""
    before: Any = {}
    for disk in disks(life.events):
        options = disk.options()
        if options and options != before and disk.step >= 0:
            before = options
            yield Moment(disk.copy(), disk.step, done=False, restarts=(_RESTART,))


def _cut(moment: Moment, loss: Loss, chance: Random) -> Loss:
    """Return a loss with some lengths that the file had only during a copy, which Java makes in one call."""
    found = dict(loss)
    for item, value in loss.items():
        if isinstance(item, Length) and isinstance(value, int) and chance.random() < _CUT:
            found[item] = chance.randrange(value, moment.disk.files[item.file].lengths[-1])
    return found


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
