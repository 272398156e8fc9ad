"""Followers: parties that perform what the references have performed, some steps behind them.

A reference answers in microseconds, and so do Kafka's classes; asking 26 of them after every step costs more than both.
So followers get many steps at a time, each with what has to come of it, and perform them while the lockstep makes the
next ones. A difference is told of the step where it is, when it is seen: at the latest when the example ends.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple

from conformance.operations import FILE_OPERATIONS

if TYPE_CHECKING:
    from conformance.implementations.protocol import Followers, Script
    from conformance.lockstep.groups import IndexParty
    from conformance.operations import Observation, Operation

STEPS_BEHIND: Final = 32
"""So many steps are collected before followers begin with them: half an example of Hypothesis."""
BYTES_BEHIND: Final = 4 << 20
"""Or as many as have left files of so many bytes together: what is expected is kept until it has been compared."""


@dataclass(slots=True)
class Step:
    """A step of the references.

    Attributes:
        number: 0-based index into the example's operations.
        operation: what was done.
        name: of the file that is looked at after it.
        before: for each set of rules, the file that there was before, None for no file.
        expected: for each set of rules, the reference's observation, and its file, None for no file.
        listings: for each set of rules, the names of all files, if these are compared; then nothing is performed.
        clauses: for each set of rules, the clauses that the step exercises; None until it has been judged.
    """

    number: int
    operation: Operation
    name: str
    before: Sequence[bytes | None]
    expected: Sequence[tuple[Observation, bytes | None]]
    listings: Sequence[list[str]] = ()
    clauses: Sequence[tuple[str, ...]] | None = None

    def write(self, script: Script) -> None:
        """Adds itself to what followers will perform."""
        if self.listings:
            script.compare_listings(self.listings)
        elif self.operation.name in FILE_OPERATIONS:
            script.overwrite([file for _, file in self.expected])
        else:
            script.perform(self.operation, self.expected)


class _Kind(NamedTuple):
    """Followers of one kind, and the parties that they are, with their rules."""

    followers: Followers
    members: list[tuple[IndexParty, int]]


class Following:
    """The followers among the parties of a lockstep.

    Args:
        groups: for each set of rules, the parties that are held to it.
        judge: told of a step before it is handed over; raises if the references themselves are wrong.
        hold: told of a party that has stopped, its set of rules, and the step; raises if it differs and that counts,
            and takes the party out of the example (``active``) if it differs and that does not count.
        done: told of steps that everybody has performed.
    """

    def __init__(
        self,
        groups: Sequence[Sequence[IndexParty]],
        judge: Callable[[Step], None],
        hold: Callable[[IndexParty, int, Step], None],
        done: Callable[[Sequence[Step]], None],
    ) -> None:
        self._judge = judge
        self._hold = hold
        self._done = done
        self._collected: list[Step] = []
        self._begun: list[Step] = []
        self._bytes = 0
        kinds: dict[Callable[..., Followers], list[tuple[IndexParty, int]]] = {}
        for number, parties in enumerate(groups):
            for party in parties:
                if party.follows:
                    kinds.setdefault(party.implementation.followers, []).append((party, number))
        self._kinds = [
            _Kind(kind(len(groups), [(party.implementation, mine) for party, mine in members]), members)
            for kind, members in kinds.items()
        ]

    def __bool__(self) -> bool:
        return bool(self._kinds)

    def begin(self) -> None:
        """An example begins."""
        self.drop()
        for kind in self._kinds:
            kind.followers.begin()

    def add(self, step: Step) -> None:
        """A step that the references have performed."""
        self._collected.append(step)
        file = step.expected[-1][1] if step.expected else None
        self._bytes += len(file) if file else 0
        if len(self._collected) >= STEPS_BEHIND or self._bytes > BYTES_BEHIND:
            self._hand_over()

    def settle(self) -> None:
        """Returns when everybody has performed every step, and whoever has stopped has been held."""
        self._hand_over(alone=True)
        self._compare()

    def drop(self) -> None:
        """Forgets what nobody has compared yet; nobody is at work any more."""
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
            self._judge(step)
        if steps:
            for kind in self._kinds:
                script = kind.followers.script()
                for step in steps:
                    step.write(script)
                kind.followers.start(script, alone=alone)
            self._begun = steps

    def _finish(self) -> int:
        """Returns when everybody has performed what was begun with, or has stopped: how many have stopped."""
        return sum([kind.followers.finish() for kind in self._kinds])

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
            for kind in self._kinds:
                for member, (party, mine) in enumerate(kind.members):
                    if party.active and kind.followers.stopped_at(member) == number:
                        self._hold(party, mine, step)
                        if party.active:
                            kind.followers.resume(member)
