"""A foreign log as a participant: held to what its capabilities let it promise, and no less."""

from __future__ import annotations

from collections import Counter
from itertools import repeat
from typing import TYPE_CHECKING, Any, Final

from conformance.implementations.kidx.log import ReferenceLog
from conformance.implementations.replies import FAILURE
from conformance.lockstep.levels.excuses import (
    DAMAGED,
    EXCUSES,
    Lengths,
    Seen,
    Variant,
    answers_of_records,
    variants,
)
from conformance.lockstep.levels.log_files import LogParticipant
from conformance.operations import OK, Operation
from conformance.operations.log import LogObservation, LogState
from conformance.operations.log_capabilities import CAPABILITIES

if TYPE_CHECKING:
    from pathlib import Path

    from conformance.lockstep.participant import Participant

_NOT_COMPARED: Final = ("unsupported", FAILURE)


class ForeignLogParticipant(LogParticipant):
    """A log with capabilities.

    It is held to the reference, but for the excuses of what it lacks. Where a step may be performed in several ways, a
    reference of its own performs the way that it has taken, and goes on with it until both are the same again.

    Attributes:
        excused: how many steps differed in a way that is excused, by the words of the excuse.
    """

    def __init__(self, implementation: Any, directory: Path) -> None:
        super().__init__(implementation, directory)
        self.lacking = tuple(name for name in CAPABILITIES if name not in implementation.capabilities)
        self.excused: Counter[str] = implementation.excused
        self._ways = 0
        self._own: _OtherWay | None = None
        self._history: list[Variant] = []
        self._lengths: Lengths = {}

    def begin(self) -> None:
        """See the base class."""
        self._leave_own()
        self._history, self._lengths = [], {}
        super().begin()

    def clear(self) -> None:
        """See the base class."""
        self._leave_own()
        super().clear()

    def _leave_own(self) -> None:
        own, self._own = self._own, None
        if own is not None:
            own.end()

    def damage(self, path: str, how: str, numbers: tuple[Any, ...]) -> None:
        """See the base class."""
        super().damage(path, how, numbers)
        operation = Operation("damage_log_file", (path, how, numbers))
        self._history.append(Variant("", operation))
        if self._own is not None:
            self._own.perform(self._history[-1])

    def listing_for(self, expected: list[str]) -> list[str]:
        """See the base class: which files there must be, :meth:`fairly` says after every step."""
        return expected

    def fairly(self, operation: Operation, expected: Seen, actual: Seen, reference: Participant) -> tuple[Seen, Seen]:
        """See the base class."""
        if actual[0].outcome.error in _NOT_COMPARED:
            return expected, actual
        self._history.append(Variant("", operation))
        mine = expected if self._own is None else self._own.perform(self._history[-1])
        if self._own is not None and mine == expected:
            self._leave_own()
        if operation.name == "list_offsets":
            mine = self._answered(operation, mine, expected, actual)
        compared = self._compared(operation, mine, actual, reference if self._own is None else self._own.log)
        if compared[0] == compared[1]:
            return compared
        for variant in variants(operation, self.lacking):
            own = self._other_way()
            for step in (*self._history[:-1], variant):
                other = own.perform(step)
            alike = self._compared(operation, other, actual, own.log)
            if alike[0] == alike[1]:
                self._leave_own()
                self._history[-1], self._own = variant, own
                self.excused[variant.words] += 1
                return alike
            own.end()
        return compared

    def _answered(self, operation: Operation, mine: Seen, expected: Seen, actual: Seen) -> Seen:
        """What is expected of answers where the log decided what to recover, and where indexes were damaged.

        Answers as if the segments were as the reference's are right in any case; and where Kafka trusts a damaged
        index, those that the records lead to. That a log has recovered less than Kafka does is no excuse for trusting
        an index that Kafka has made anew.
        """
        outcomes = [each[0].outcome for each in (mine, expected, actual)]
        is_damaged = any(step.operation.name == "damage_log_file" for step in self._history)
        if any(o.error or o.value is None for o in outcomes) or (self._own is None and not is_damaged):
            return mine
        rights = answers_of_records(operation, expected) if is_damaged else repeat(())
        # The log may have kept other segments, if it has recovered others.
        mine_too = answers_of_records(operation, mine) if is_damaged and self._own is not None else repeat(())
        answers, is_excused = [], False
        for own, kept, answer, right, held in zip(*(o.value for o in outcomes), rights, mine_too, strict=False):
            if own != kept and _plain(own) not in (*right, *held) and _plain(kept) in right:
                own = kept  # noqa: PLW2901 -- Kafka has made anew what the log trusts
            if answer == own or _plain(answer) == _plain(kept):
                answers.append(own if answer == own else kept)
            else:
                answers.append(answer if _plain(answer) in right else own)
                is_excused |= _plain(answer) in right
        if is_excused:
            self.excused[DAMAGED] += 1
        return mine[0]._replace(outcome=outcomes[0]._replace(value=tuple(answers))), mine[1]

    def _other_way(self) -> _OtherWay:
        self._ways += 1
        directory = self.directory.with_name(f"{self.directory.name}-other-way-{self._ways}")
        return _OtherWay(self.implementation.release, directory)

    def _compared(
        self, operation: Operation, expected: Seen, actual: Seen, reference: Participant
    ) -> tuple[Seen, Seen]:
        """Both without what is excused; excuses that made a difference are counted if nothing else differs."""
        if operation.name != "crash_log":  # what that leaves is as long as it was; a closed log has only entries
            self._lengths = reference.implementation.index_lengths()
        expected, untold = _as_far_as_told(expected, actual)
        needed = Counter(untold)
        for capability, excuse in EXCUSES.items():
            if capability in self.lacking and expected != actual:
                before = _differing(expected, actual)
                expected, actual = excuse.fair(operation, expected, actual, self._lengths)
                if _differing(expected, actual) != before:
                    needed[excuse.words] += 1
        if expected == actual:
            self.excused.update(needed)
        return expected, actual


class _OtherWay:
    """A reference that performs some steps in another way, from the beginning of the example."""

    def __init__(self, release: str, directory: Path) -> None:
        directory.mkdir(parents=True)
        self.log = LogParticipant(ReferenceLog(release), directory)
        self.log.implementation.begin(directory)

    def perform(self, step: Variant) -> Seen:
        """A step; its observation and the files after it."""
        operation = step.operation
        if operation.name == "damage_log_file":
            self.log.damage(*operation.args)
            return LogObservation(OK, None), self.log.read()
        before = self.log.names()
        observation = self.log.perform(operation)
        if operation.name == "crash_log":
            # The handles of an index that was never opened make its files, in old releases.
            for name in self.log.names().keys() - before.keys():
                self.log.damage(name, "remove_file", ())
        if step.deletes and observation.outcome.error is None and observation.state is not None:
            observation = observation._replace(state=self.log.implementation.delete_before_start())
        return observation, self.log.read()

    def end(self) -> None:
        """Removes it."""
        self.log.implementation.end()
        self.log.clear()


def _plain(answer: tuple[int, ...] | None) -> tuple[int, ...] | None:
    """An answer without its leader epoch."""
    return answer and tuple(answer[:2])


def _as_far_as_told(expected: Seen, actual: Seen) -> tuple[Seen, list[str]]:
    """What is expected with None in the fields that a state does not tell, and these fields in words.

    Texts of refusals are the log's own.
    """
    if expected[0].outcome[:2] == actual[0].outcome[:2]:
        expected = (expected[0]._replace(outcome=actual[0].outcome), expected[1])
    mine, theirs = expected[0].state, actual[0].state
    if mine is None or theirs is None:
        return expected, []
    untold = [name for name, value in zip(LogState._fields, theirs, strict=True) if value is None]
    if not untold:
        return expected, []
    words = [f"the state does not tell {name}" for name in untold]
    return (expected[0]._replace(state=mine.without(untold)), expected[1]), words


def _differing(expected: Seen, actual: Seen) -> set[str]:
    """What differs: names of files, fields of the state, and the outcome."""
    (mine, files), (theirs, contents) = expected, actual
    names = {name for name in {*files, *contents} if files.get(name) != contents.get(name)}
    if mine.outcome[:2] != theirs.outcome[:2]:
        names.add("outcome")
    if mine.state is None or theirs.state is None:
        return names | ({"state"} if mine.state is not theirs.state else set())
    pairs = zip(LogState._fields, mine.state, theirs.state, strict=True)
    return names | {name for name, one, other in pairs if one != other}
