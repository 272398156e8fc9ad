"""Batched execution: participants that perform what the references have performed, many steps at a time.

A reference answers in microseconds, and so do Kafka's classes; asking 26 of them after every step costs more than both.
So they get many steps at a time, each with the result that it must have, and perform them while the lockstep makes the
next ones. A difference is told of the step where it is, when it is seen: at the latest when the example ends.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, NamedTuple

if TYPE_CHECKING:
    from conformance.implementations.protocol import Followers, Script
    from conformance.lockstep.level import Level
    from conformance.lockstep.participant import Participant
    from conformance.operations import Operation

STEPS_BEHIND: Final = 32
"""So many steps are collected before participants begin with them: half an example of Hypothesis."""
BYTES_BEHIND: Final = 4 << 20
"""Or as many as have left files of so many bytes together: what is expected is kept until it has been compared."""


@dataclass(slots=True)
class Step:
    """A step of the references.

    Attributes:
        number: 0-based index into the example's operations.
        operation: what was done.
        name: of the files that are looked at after it.
        before: for each group, the reference's observation of the step before, and the files that there were.
        expected: for each group, the reference's observation, and its files after the step.
        listings: for each group, the names of all files, if these are compared; then nothing is performed.
        clauses: for each group, the clauses that the step exercises; None until it has been concluded.
        promised: for each group, whether a broker may come to such a step.
        damages: the harness itself has changed the files.
    """

    number: int
    operation: Operation
    name: Any
    before: Sequence[tuple[Any, Any]]
    expected: Sequence[tuple[Any, Any]]
    listings: Sequence[list[str]] = ()
    clauses: Sequence[tuple[str, ...]] | None = None
    promised: Sequence[bool] = ()
    damages: bool = False

    def is_promised(self, group: int) -> bool:
        """Return whether a broker may come to the step, as far as it was looked at."""
        return not self.promised or self.promised[group]

    def write(self, script: Script, level: Level[Any, Any]) -> None:
        """Adds itself to what batched participants will perform."""
        if self.listings:
            script.compare_listings(self.listings)
        elif self.damages:
            path = level.damaged(self.operation, self.name)
            script.overwrite(path, [level.by_name(files, self.name).get(path) for _, files in self.expected])
        else:
            script.perform(self.operation, self.expected, level.by_name, self.name)


class _Kind(NamedTuple):
    """Batched participants of one kind: what drives them, and each with the number of its group."""

    followers: Followers
    members: list[tuple[Participant, int]]


class BatchedExecution:
    """The batched participants of a lockstep.

    Args:
        level: what they keep.
        groups: for each group, its subjects.
        conclude: told of a step before it is handed over; raises if the references themselves are wrong.
        hold: told of a participant that has stopped, its group, and the step; raises if it differs and that counts,
            and takes the participant out of the example (``active``) if it differs and that does not count.
        done: told of steps that every participant has performed.

    Attributes:
        kinds: of batched participants; empty if there are none.
    """

    def __init__(
        self,
        level: Level[Any, Any],
        groups: Sequence[Sequence[Participant]],
        conclude: Callable[[Step], None],
        hold: Callable[[Participant, int, Step], None],
        done: Callable[[Sequence[Step]], None],
    ) -> None:
        self._level = level
        self._conclude = conclude
        self._hold = hold
        self._done = done
        self._collected: list[Step] = []
        self._begun: list[Step] = []
        self._bytes = 0
        kinds: dict[Callable[..., Followers], list[tuple[Participant, int]]] = {}
        for number, participants in enumerate(groups):
            for participant in participants:
                if participant.batched:
                    kinds.setdefault(participant.implementation.followers, []).append((participant, number))
        self.kinds = [
            _Kind(kind(len(groups), [(participant.implementation, mine) for participant, mine in members]), members)
            for kind, members in kinds.items()
        ]

    def step_of(self, participant: Participant) -> Step | None:
        """The step that a batched participant performs right now; another thread may ask."""
        begun = self._begun
        for kind in self.kinds:
            for number, (member, _) in enumerate(kind.members):
                if member is participant and (at := kind.followers.performing(number)) < len(begun):
                    return begun[at]
        return None

    def begin(self) -> None:
        """An example begins."""
        self.drop()
        for kind in self.kinds:
            kind.followers.begin()

    def add(self, step: Step) -> None:
        """A step that the references have performed."""
        self._collected.append(step)
        if step.expected and step.expected[-1][1] is not step.before[-1][1]:  # else they are not told again
            self._bytes += self._level.bytes_of(step.expected[-1][1])
        if len(self._collected) >= STEPS_BEHIND or self._bytes > BYTES_BEHIND:
            self._hand_over()

    def settle(self) -> None:
        """Returns when every participant has performed every step, and those that have stopped have been held."""
        self._hand_over(alone=True)
        self._compare()

    def drop(self) -> None:
        """Forgets what has not been compared yet; no participant is at work any more."""
        if self._begun:
            self._finish()
        self._begun, self._collected, self._bytes = [], [], 0

    def _hand_over(self, *, alone: bool = False) -> None:
        """Begins with what has been collected, when what was begun with before has been compared.

        Args:
            alone: nothing is collected meanwhile.
        """
        self._compare()
        steps, self._collected, self._bytes = self._collected, [], 0
        for step in steps:
            self._conclude(step)
        if steps:
            # Nothing has begun where a step cannot be written.
            scripts = [self._script(kind, steps) for kind in self.kinds]
            self._begun = steps
            for kind, script in zip(self.kinds, scripts, strict=True):
                kind.followers.start(script, alone=alone)

    def _script(self, kind: _Kind, steps: Sequence[Step]) -> Script:
        script = kind.followers.script()
        for step in steps:
            step.write(script, self._level)
        return script

    def _finish(self) -> int:
        """Returns when every participant has performed what was begun with, or has stopped: how many have stopped."""
        return sum([kind.followers.finish() for kind in self.kinds])

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
                for member, (participant, mine) in enumerate(kind.members):
                    if participant.active and kind.followers.stopped_at(member) == number:
                        self._hold(participant, mine, step)
                        if participant.active:
                            kind.followers.resume(member)
