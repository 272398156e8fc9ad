"""Base of the rules of the log machine: its knowledge of the log, and its names for places in the log."""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, Any, ClassVar, Final

from conformance.implementations.process import ProcessLog
from conformance.lockstep.scopes.log import LogLockstep
from conformance.machines.files import FilesMachine
from conformance.operations import Operation
from conformance.operations.log import EXPIRATION, LogState
from conformance.operations.log_capabilities import settings_for
from kidx.java_values import LONG_MAX
from kidx.producers import EXPIRATION_MS, LATE_MS

if TYPE_CHECKING:
    from collections.abc import Callable

    from conformance.strategies.log import Shape

_MOST_PRODUCERS: Final = 4
"""Producers for which one step asks about late transactions."""
_EMPTY = LogState(0, 0, 0, 0, 0, (), 0, (), (), ())


class LogBase(FilesMachine):
    """Machine of a lockstep of logs, with what one example has written to its log.

    Attributes:
        settings: The topic's settings.
        timestamps: The timestamps of all appended records.
        now: The time of the log's clock, in milliseconds.
        newest: The timestamp near which the next records have theirs.
        epoch: The current leader epoch.
        lists_offsets: True if the example lists offsets after every step.
        is_open: True if the log is open; otherwise rules do nothing.
        stopped_halfway: True if a truncation failed after some of its changes.
    """

    kind: ClassVar[str] = "log"
    lockstep_type = LogLockstep
    lockstep: ClassVar[LogLockstep]
    program: ClassVar[Callable[..., Any] | None] = ProcessLog

    def __init__(self) -> None:
        super().__init__()
        self.settings: dict[str, Any] = {}
        self.timestamps: set[int] = set()
        self.now = 10_000
        self.newest = 1000
        self.epoch = 0
        self.lists_offsets = False
        self.is_open = False
        self.stopped_halfway = False

    def do(self, name: str, *arguments: Any) -> None:
        """Execute an operation with every participant, if the log is open and every participant supports it."""
        operation = Operation(name, arguments)
        if self.is_open and self.lockstep.can(operation):
            self.lockstep.perform(operation)

    def truncate(self, name: str, offset: int) -> None:
        """Truncate, and remember whether it stopped halfway (LG-11, LG-73)."""
        self.do(name, offset)
        self.stopped_halfway |= any(group.observation.outcome.error is not None for group in self.lockstep.groups)
        self.ask_for_late_transactions()

    def ask_for_late_transactions(self) -> None:
        """Ask, for some producers, when their transactions would be late, and whether any transaction is open."""
        if "late_transactions" not in self.lockstep.lacking:
            longest = self.settings.get(EXPIRATION, EXPIRATION_MS) + LATE_MS
            last = [producer[3] + longest for producer in self.state.producers[:_MOST_PRODUCERS]]
            times = {time + delta for time in last for delta in (0, 1)}
            self.do("late_transactions", [*sorted(times), LONG_MAX])

    def topic(self, settings: dict[str, Any]) -> dict[str, Any]:
        """Return a topic's settings, in the form that every participant accepts."""
        return settings_for(settings, self.lockstep.capabilities)

    def as_producer_batch(self, batch: dict[str, Any]) -> dict[str, Any]:
        """Return a producer's batch that all participants have to rewrite in the same way, if they rewrite it."""
        return batch

    @abstractmethod
    def open(self, *, clean: bool, recovery_point: int, start: int) -> None:
        """Open the log with the checkpoints' offsets, as a broker does; end the example if a release fails."""

    # -- state of the log --------------------------------------------------------------------------------------

    @property
    def state(self) -> LogState:
        """State of the log in the reference of the newest tested release."""
        return self.lockstep.primary.observation.state or _EMPTY

    def offset(self, anchor: str, delta: int = 0) -> int:
        """Return the offset that an anchor names; never negative."""
        state = self.state
        bases = [base for base, _ in state.segments] or [0]
        anchors = {
            "start": state.start_offset,
            "end": state.end_offset,
            "high_watermark": state.high_watermark,
            "active": bases[-1],
            "second": bases[min(1, len(bases) - 1)],
            "middle": bases[len(bases) // 2],
            "half": (state.start_offset + state.end_offset) // 2,
            "zero": 0,
        }
        return max(0, anchors[anchor] + delta)

    def timestamp(self, gap: int | None) -> int:
        """Return the next record's timestamp: the newest one plus a gap, or -1 for no timestamp."""
        if gap is None:
            return -1
        timestamp = max(0, self.newest + gap)
        self.newest = max(self.newest, timestamp)
        self.timestamps.add(timestamp)
        return timestamp

    def records(self, shape: Shape) -> list[list[int]]:
        """Return the records of a batch."""
        offset, records = 0, []
        for gap, distance in shape.records:
            offset += distance
            records.append([offset, self.timestamp(gap)])
            offset += 1
        return records

    def keyed(self, records: list[list[int]]) -> list[list[int]]:
        """Return the records as a leader of this topic accepts them: with keys if the topic is compacted."""
        if "compact" not in self.settings.get("cleanup.policy", ""):
            return records
        return [[*record, 0, 1] if len(record) == 2 else record for record in records]

    def append_one(self, of_producer: dict[str, Any]) -> None:
        """Append a batch of one record as a follower."""
        batch = {"base": self.state.end_offset, "epoch": self.epoch, "records": [[0, self.timestamp(1)]]}
        self.do("append_as_follower", [batch | of_producer], self.epoch)
