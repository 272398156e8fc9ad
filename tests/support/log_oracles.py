"""Lockstep that also checks results of lookups against an oracle."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import time_oracle

from conformance.lockstep import Divergence, DivergenceError
from conformance.lockstep.scopes.log import LogLockstep
from conformance.operations import Operation
from conformance.operations.log import TOPIC_DIRECTORY, LogObservation
from kidx.log.lookup import MAX_TIMESTAMP, supports_target

if TYPE_CHECKING:
    from collections.abc import Iterable

    from time_oracle import ConsumerRecord

    from conformance.implementations.jvm.log import JvmLog


class WrongAnswer(NamedTuple):
    """Wrong result of a lookup, according to the oracle.

    Attributes:
        lookup: ``"max"`` (the special target -3) or ``"time"``.
        why: The kind of error, see :func:`time_oracle.disagreement`.
        circumstances: see :func:`circumstances`.
    """

    lookup: str
    why: str
    circumstances: str


class OracleLockstep(LogLockstep):
    """Lockstep whose newest reference is also checked against the oracle.

    Args:
        subjects, scratch, releases: As in the base class.
        tolerates: Callback that receives a wrong result, and returns True to tolerate it.
    """

    def __init__(
        self,
        subjects: Iterable[JvmLog],
        scratch: Path,
        *,
        releases: Iterable[str] = (),
        tolerates: Callable[[WrongAnswer], bool] = lambda _: False,
    ) -> None:
        super().__init__(subjects, scratch, releases=releases)
        self.tolerates = tolerates
        self.seen: Counter[WrongAnswer] = Counter()

    def perform(self, operation: Operation) -> LogObservation:
        """Execute an operation as in the base class, and check the result against the oracle.

        Raises:
            DivergenceError: A participant differs from the reference, or the reference from the oracle.
        """
        observation: LogObservation = super().perform(operation)
        if operation.name == "list_offsets" and observation.outcome.error is None and observation.state is not None:
            self._judge(operation, observation)
        return observation

    def _judge(self, operation: Operation, observation: LogObservation) -> None:
        group, state = self.primary, observation.state
        if state is None:
            return
        directory = group.reference.directory / TOPIC_DIRECTORY
        records = time_oracle.visible_records(directory, state.start_offset, state.end_offset)
        for target, answer in zip(operation.args[0], observation.outcome.value, strict=True):
            if target == MAX_TIMESTAMP and supports_target(group.dialect, target):
                lookup, right = "max", time_oracle.first_of_the_latest(records)
            elif target >= 0:
                lookup, right = "time", time_oracle.first_not_before(records, target)
            else:
                continue
            why = time_oracle.disagreement(right, answer, records)
            if why is None:
                continue
            wrong = WrongAnswer(
                lookup, why, circumstances(self.operations, records, state.segments[0][0] < state.start_offset)
            )
            self.seen[wrong] += 1
            if self.tolerates(wrong):
                continue
            wanted = None if right is None else (right.timestamp, right.offset, right.epoch)
            last = Operation("list_offsets", ([target],))
            divergence = Divergence(
                len(self.operations) - 1,
                last,
                group.reference.implementation.name,
                group.dialect.release,
                "oracle",
                ("outcome",),
                (None, (wanted,)),
                (None, (answer,)),
                wrong,
            )
            self.failure = DivergenceError(divergence, [*self.operations[:-1], last])
            raise self.failure


def circumstances(operations: Sequence[Operation], records: Sequence[ConsumerRecord], start_inside: bool) -> str:
    """Return the conditions that may explain a wrong result, as names joined by blanks."""
    opened = False
    words = set()
    for operation in operations:
        if operation.name == "open_log":
            if opened and operation.args[3] and "crash" in words:
                words.add("trusted")
            opened = True
        elif operation.name == "damage_log_file":
            words.add("damage")
        elif operation.name == "crash_log":
            words.add("crash")
        elif operation.name == "close_log" and not operation.args[0]:
            words.add("unprepared")
    if start_inside:
        words.add("start-inside")
    if any(record.timestamp < 0 for record in records):
        words.add("untimed")
    return " ".join(sorted(words - {"crash"}))
