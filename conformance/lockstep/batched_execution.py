"""Batched execution: participants that execute many steps at a time, after the references have executed them.

The reference and Kafka's classes execute an operation in microseconds. Calls from Python into the classes of 26
releases after every step would take longer. So these classes receive many steps at a time, each with its expected
result, and execute them while the lockstep generates the next steps. A divergence is reported for the step in which it
occurred, at the latest when the example ends.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, NamedTuple

if TYPE_CHECKING:
    from conformance.implementations.protocol import BatchGroup, StepBatch
    from conformance.lockstep.participant import Participant
    from conformance.lockstep.scope import Scope
    from conformance.operations import Operation

MAX_LAG_STEPS: Final = 32
"""The number of steps that are collected before participants begin to execute them: half of a Hypothesis example."""
MAX_LAG_BYTES: Final = 4 << 20
"""The total size in bytes of the collected files at which participants begin, too."""


@dataclass(slots=True)
class Step:
    """Step that the references have executed.

    Attributes:
        number: The 0-based index into the example's operations.
        name: The name of the files that are compared after the step.
        before: For each group, the reference's observation and files before the step.
        expected: For each group, the reference's observation and files after the step.
        listings: For each group, the names of all files. If given, only these are compared, and no operation is
            executed.
        clauses: For each group, the clauses that the step exercises; None until they are determined.
        promised: For each group, True if a broker can execute such a step.
        hidden: For each group, the clauses below MUST by which hidden parts of the state came about before the step.
        is_corruption: True if the harness itself changed the files.
    """

    number: int
    operation: Operation
    name: Any
    before: Sequence[tuple[Any, Any]]
    expected: Sequence[tuple[Any, Any]]
    listings: Sequence[list[str]] = ()
    clauses: Sequence[tuple[str, ...]] | None = None
    promised: Sequence[bool] = ()
    hidden: Sequence[tuple[str, ...]] = ()
    is_corruption: bool = False

    def is_promised(self, group: int) -> bool:
        """Return True if a broker can execute the step, or if this is unknown."""
        return not self.promised or self.promised[group]

    def write(self, batch: StepBatch, scope: Scope[Any, Any]) -> None:
        """Add this step to a batch of steps."""
        if self.listings:
            batch.compare_listings(self.listings)
        elif self.is_corruption:
            path = scope.corrupted_path(self.operation, self.name)
            batch.overwrite(path, [scope.by_name(files, self.name).get(path) for _, files in self.expected])
        else:
            batch.perform(self.operation, self.expected, scope.by_name, self.name)


class _Kind(NamedTuple):
    """Batched participants of one kind: the object that executes their batches, and (participant, group number)."""

    batch_group: BatchGroup
    members: list[tuple[Participant, int]]


class BatchedExecution:
    """Batched participants of a lockstep.

    Args:
        groups: For each group (of subjects whose releases behave alike), its subjects.
        attribute_step: A callback that receives each step before the participants do. It raises an error if a
            reference is wrong.
        compare: A callback that receives a participant that has stopped at a difference, the number of its group, and
            the step. It raises an error if the divergence counts; otherwise it may set ``active`` to False.
        done: A callback that receives the steps that every participant has executed.

    Attributes:
        kinds: The batched participants by kind; empty without batched participants.
    """

    def __init__(
        self,
        scope: Scope[Any, Any],
        groups: Sequence[Sequence[Participant]],
        attribute_step: Callable[[Step], None],
        compare: Callable[[Participant, int, Step], None],
        done: Callable[[Sequence[Step]], None],
    ) -> None:
        self._scope = scope
        self._attribute_step = attribute_step
        self._compare_subject = compare
        self._done = done
        self._collected: list[Step] = []
        self._begun: list[Step] = []
        self._bytes = 0
        kinds: dict[Callable[..., BatchGroup], list[tuple[Participant, int]]] = {}
        for number, participants in enumerate(groups):
            for participant in participants:
                if participant.batched:
                    kinds.setdefault(participant.implementation.batch_group, []).append((participant, number))
        self.kinds = [
            _Kind(kind(len(groups), [(participant.implementation, group) for participant, group in members]), members)
            for kind, members in kinds.items()
        ]

    def step_of(self, participant: Participant) -> Step | None:
        """Return the step that a batched participant is executing, or None; may be called from another thread."""
        begun = self._begun
        for kind in self.kinds:
            for number, (member, _) in enumerate(kind.members):
                if member is participant and (at := kind.batch_group.performing(number)) < len(begun):
                    return begun[at]
        return None

    def begin(self) -> None:
        """Begin an example."""
        self.discard_pending()
        for kind in self.kinds:
            kind.batch_group.begin()

    def add(self, step: Step) -> None:
        """Add a step that the references have executed."""
        self._collected.append(step)
        if step.expected and step.expected[-1][1] is not step.before[-1][1]:  # unchanged files are not sent again
            self._bytes += self._scope.bytes_of(step.expected[-1][1])
        if len(self._collected) >= MAX_LAG_STEPS or self._bytes > MAX_LAG_BYTES:
            self._hand_over()

    def flush(self) -> None:
        """Wait until every participant has executed every step, and compare the participants that have stopped."""
        self._hand_over(alone=True)
        self._compare()

    def discard_pending(self) -> None:
        """Discard the steps that have not been compared yet; afterwards no participant is executing a step."""
        if self._begun:
            self._finish()
        self._begun, self._collected, self._bytes = [], [], 0

    def _hand_over(self, *, alone: bool = False) -> None:
        """Compare the steps in progress, then start the collected steps.

        Args:
            alone: True if the caller waits for the steps immediately.
        """
        self._compare()
        steps, self._collected, self._bytes = self._collected, [], 0
        for step in steps:
            self._attribute_step(step)
        if steps:
            # All batches are written before one is started, because writing may fail.
            batches = [self._batch(kind, steps) for kind in self.kinds]
            self._begun = steps
            for kind, batch in zip(self.kinds, batches, strict=True):
                kind.batch_group.start(batch, alone=alone)

    def _batch(self, kind: _Kind, steps: Sequence[Step]) -> StepBatch:
        batch = kind.batch_group.script()
        for step in steps:
            step.write(batch, self._scope)
        return batch

    def _finish(self) -> int:
        """Wait until every participant has executed the batch or stopped; return the number of stopped ones."""
        return sum([kind.batch_group.finish() for kind in self.kinds])

    def _compare(self) -> None:
        if not self._begun:
            return
        stopped = self._finish()
        begun, self._begun = self._begun, []
        if not stopped:
            self._done(begun)
            return
        for number, step in enumerate(begun):
            self._done((step,))
            for kind in self.kinds:
                for member, (participant, group) in enumerate(kind.members):
                    if participant.active and kind.batch_group.stopped_at(member) == number:
                        self._compare_subject(participant, group, step)
                        if participant.active:
                            kind.batch_group.resume(member)
