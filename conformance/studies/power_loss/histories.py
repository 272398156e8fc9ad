"""Histories of a log: examples that Kafka's own classes executed, recorded with each of their writes and syncs.

Checkpoint of Kafka's log cleaner: the offset up to which it has cleaned a log (``cleaner-offset-checkpoint``).
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Final

from conformance.implementations.jvm.journal import JournalledClasses
from conformance.implementations.jvm.log import JvmLog
from conformance.operations import Operation
from conformance.operations.log import TOPIC_DIRECTORY, LogObservation, LogState

if TYPE_CHECKING:
    from pathlib import Path
    from random import Random

    from conformance.implementations.jvm.journal import Event
    from conformance.kafka.builds import Build
    from conformance.kafka.jar_fetch import Progress

NO_CHECKPOINT: Final = -1
"""Value for a log that was never cleaned."""


def checkpoint_after(before: int, operation: Operation, seen: LogObservation) -> int:
    """Return the checkpoint after an operation.

    A cleaning round sets it to the end of the cleaned records. A truncation lowers it to the new end of the log.

    Args:
        before: the checkpoint before.
        seen: the result of the operation.
    """
    if operation.name == "clean_log" and seen.outcome.error is None and seen.outcome.value:
        return int(seen.outcome.value[0])
    if operation.name in ("truncate_log", "truncate_fully"):
        return min(before, int(operation.args[0]))
    return before


def with_checkpoint(operation: Operation, checkpoint: int) -> Operation:
    """Return the operation; if it is a cleaning round, it begins at the checkpoint."""
    return Operation(operation.name, (checkpoint, *operation.args[1:])) if operation.name == "clean_log" else operation


def last_checkpoints(operations: Iterable[Operation], observations: Iterable[LogObservation]) -> list[int]:
    """Return the checkpoints that a broker may have written last, the newest first."""
    found = [NO_CHECKPOINT]
    for operation, seen in zip(operations, observations, strict=False):
        found.append(checkpoint_after(found[-1], operation, seen))
    return list(dict.fromkeys(reversed(found[-2:])))


_NOW: Final = 1_000_000
_EMPTY: Final = LogState(0, 0, 0, 0, 0, ())
# What the generator does next; an act that is listed more than once is more frequent.
_ACTS: Final = (
    *("append",) * 10,
    *("roll",) * 3,
    *("truncate", "truncate"),
    *("delete_records", "delete_records"),
    "truncate_fully",
    *("become_leader", "become_leader"),
    *("transaction",) * 5,
    *("restart", "restart"),
)


@dataclass(frozen=True)
class History:
    """Recorded example of a log.

    Attributes:
        release: release of the classes that executed it.
        operations: operations from ``open_log`` on.
        observations: result of each operation.
        events: writes, renames and syncs of files by the classes during the operations.
        checkpoints: state of the log after each operation, which a broker writes into its checkpoint files; by
            default the states in the observations.
    """

    release: str
    operations: tuple[Operation, ...]
    observations: tuple[LogObservation, ...]
    events: tuple[Event, ...]
    checkpoints: tuple[LogState | None, ...] = ()

    def __post_init__(self) -> None:
        if not self.checkpoints:
            object.__setattr__(self, "checkpoints", tuple(seen.state for seen in self.observations))


Next = Callable[[LogState, LogObservation | None], Operation | None]
"""Function that returns the next operation, from the last state of the log and the last result; None at the end."""


class Recorder:
    """Recorder of what Kafka's classes of a release write while they execute the operations of an example.

    Args:
        release: release of the classes.
        scratch: an empty directory.
        progress: called while jars are fetched.
        build: build whose classes are used instead, or None.

    Raises:
        ToolError: Java or a jar is missing, or the classes are not the known ones.
    """

    def __init__(
        self, release: str, scratch: Path, progress: Progress | None = None, build: Build | None = None
    ) -> None:
        self.release = release
        classes = scratch / "classes"
        classes.mkdir(parents=True)
        self._directory = scratch / "recorded"
        self._journal = JournalledClasses(release, classes, progress, build)
        self._log = JvmLog(release, build=build, loader=self._journal.loader)

    def record(self, following: Next) -> History:
        """Execute and record operations up to the first that fails; the cleaner begins where its last round ended."""
        shutil.rmtree(self._directory, ignore_errors=True)
        (self._directory / TOPIC_DIRECTORY).mkdir(parents=True)
        self._log.begin(self._directory)
        self._journal.begin(self._directory / TOPIC_DIRECTORY)
        operations, observations = list[Operation](), list[LogObservation]()
        state, seen, checkpoint = _EMPTY, None, NO_CHECKPOINT
        while (operation := following(state, seen)) is not None:
            operation = with_checkpoint(operation, checkpoint)
            self._journal.step(len(operations))
            seen = self._log.perform(operation)
            operations.append(operation)
            observations.append(seen)
            state = seen.state or state
            checkpoint = checkpoint_after(checkpoint, operation, seen)
            if seen.outcome.error is not None:
                break
        events = tuple(self._journal.end())
        self._log.end()
        return History(self.release, tuple(operations), tuple(observations), events)

    def perform(self, operations: Sequence[Operation]) -> History:
        """Execute and record these operations."""
        left = iter(operations)
        return self.record(lambda _state, _seen: next(left, None))


class OperationGenerator:
    """Generator of the operations of an example, one after the other; call it with the state of the log.

    Every record has its own timestamp, so that a scan shows which one a lookup by time must find.

    Args:
        chance: source of randomness.

    Attributes:
        acts: the acts that are drawn; each becomes one or more operations.
        settings: the settings of the log.
    """

    acts: ClassVar[Sequence[str]] = _ACTS

    def __init__(self, chance: Random) -> None:
        self._chance = chance
        self._left = chance.randint(3, 14)
        self._coming: Iterator[Operation] = iter(())
        self._timestamps: set[int] = set()
        self._newest = 10_000
        self._epoch = 0
        self._sequence, self._producer = 0, 7
        self._in_transaction = False
        self._begins: list[int] = []
        small = chance.random() < 0.6
        self.settings: dict[str, Any] = {
            "segment.bytes": chance.choice((300, 500, 1000) if small else (9000, 20_000)),
            "segment.index.bytes": chance.choice((120, 240) if small else (600, 9000)),
            "index.interval.bytes": chance.choice((0, 0, 100)),
        }
        if chance.random() < 0.3:
            self.settings["preallocate"] = "true"
        if chance.random() < 0.4:
            self.settings["flush.messages"] = chance.choice((1, 1, 3))
        self._sizes = (0, 0, 20) if small else (0, 700, 3000)

    def __call__(self, state: LogState, seen: LogObservation | None) -> Operation | None:
        """Return the next operation; None at the end."""
        following = next(self._coming, None)
        if following is not None:
            if following.name == "append_as_leader":
                self._begins.append(state.end_offset)
            return following
        if seen is None or seen.state is None:
            return self._open(state, clean=True) if self._left > 0 else None
        if self._left <= 0:
            return None
        self._left -= 1
        self._coming = iter(self._act(state))
        return OperationGenerator.__call__(self, state, seen)

    def _open(self, state: LogState, *, clean: bool) -> Operation:
        return Operation("open_log", (self.settings, state.start_offset, state.recovery_point, clean, _NOW))

    def _act(self, state: LogState) -> list[Operation]:
        return self._do(self._chance.choice(self.acts), state)

    def _do(self, act: str, state: LogState) -> list[Operation]:  # noqa: PLR0911 -- a table by kind of act
        chance = self._chance
        if act == "roll":
            return [Operation("roll_log")]
        if act == "become_leader":
            self._epoch += 1
            return [Operation("assign_epoch", (self._epoch, state.end_offset))]
        if act == "restart":
            return [Operation("close_log", (True,))]
        if act == "transaction":
            return self._transact()
        inside = chance.randint(state.start_offset, state.end_offset)
        if act in ("truncate", "truncate_fully") and state.end_offset > state.start_offset:
            self._in_transaction, self._sequence, self._producer = False, 0, self._producer + 1
            if act == "truncate":
                # A follower truncates only between batches, because it copies the leader's batches.
                begins = [offset for offset in self._begins if state.start_offset <= offset <= state.end_offset]
                target = chance.choice([*begins, state.end_offset])
                self._begins = [offset for offset in self._begins if offset <= target]
                return [Operation("truncate_log", (target,))]
            self._begins = []
            return [Operation("truncate_fully", (chance.choice((state.end_offset, state.end_offset + 5)),))]
        if act == "delete_records":
            highest = Operation("update_high_watermark", (state.end_offset,))
            return [highest, Operation("delete_records", (inside,)), Operation("apply_retention")]
        return [self._append({}) for _ in range(chance.choice((1, 1, 2, 4)))]

    def _transact(self) -> list[Operation]:
        """Return the append of a batch in a transaction, or of the marker that ends it."""
        if not self._in_transaction or self._chance.random() < 0.4:
            self._in_transaction = True
            self._sequence += 10
            return [
                self._append({"producer": [self._producer, 0, self._sequence - 10], "transactional": True}, count=10)
            ]
        self._in_transaction = False
        marker = {"marker": self._chance.choice(("abort", "abort", "commit")), "producer": [self._producer, 0, -1]}
        return [self._append(marker, count=1)]

    def _append(self, of_producer: dict[str, Any], count: int | None = None) -> Operation:
        """Return the append of a batch with a producer's fields; empty records if their number is given."""
        records = []
        for number in range(count or self._chance.choice((1, 1, 1, 2, 3))):
            size = 0 if count else self._chance.choice(self._sizes)
            records.append([number, self._timestamp(), size] if size else [number, self._timestamp()])
        return Operation("append_as_leader", ([{"records": records, **of_producer}], self._epoch))

    def _timestamp(self) -> int:
        """Return a timestamp that no other record has: mostly later than all, sometimes earlier."""
        timestamp = self._newest + self._chance.choice((10, 10, 10, 100, -35, -95))
        while timestamp in self._timestamps:
            timestamp += 1
        self._timestamps.add(timestamp)
        self._newest = max(self._newest, timestamp)
        return timestamp
