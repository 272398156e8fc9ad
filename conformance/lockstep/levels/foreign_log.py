"""A foreign log as a participant: held to what its capabilities let it promise, and no less."""

from __future__ import annotations

from collections import Counter
from itertools import repeat
from typing import TYPE_CHECKING, Any, Final

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
from conformance.lockstep.levels.other_way import OtherWay
from conformance.operations import Operation
from conformance.operations.log import PRODUCER_ERRORS, UNSPECIFIED_PRODUCER_ERROR, LogState
from conformance.operations.log_capabilities import CAPABILITIES, UNTOLD

if TYPE_CHECKING:
    from pathlib import Path

    from conformance.lockstep.participant import Participant

_NOT_COMPARED: Final = ("unsupported", FAILURE)
_LETTING_GO: Final = frozenset({"open_log", "close_log", "crash_log"})


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
        self._own: OtherWay | None = None
        self._history: list[Variant] = []
        self._opening: tuple[int, Operation, Seen] | None = None
        self._lengths: Lengths = {}
        self._before: Seen | None = None

    def begin(self) -> None:
        """See the base class."""
        self._leave_own()
        self._history, self._opening, self._lengths, self._before = [], None, {}, None
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
        mine = self._expected(operation, expected, actual, reference)
        if operation.name == "list_offsets":
            mine = self._answered(operation, mine, expected, actual, is_own=self._own is not None)
        compared = self._compared(operation, mine, actual, reference if self._own is None else self._own.log)
        before, self._before = self._before, mine
        if compared[0] == compared[1]:
            return compared
        for variant in variants(operation, self.lacking, before, mine):
            own = self._other_way()
            variant = variant._replace(cuts=self._history[-1].cuts)  # noqa: PLW2901 -- a kill cuts either way
            for step in (*self._history[:-1], variant):
                other = own.perform(step)
            alike = self._compared(operation, other, actual, own.log)
            if alike[0] == alike[1]:
                self._take(own, -1, variant)
                self._before = other
                return alike
            own.end()
        return self._reconsidered(operation, expected, actual) or compared

    def _take(self, own: OtherWay, number: int, variant: Variant) -> None:
        """Hold the log to another way from now on, in which it has performed a step of its history."""
        self._leave_own()
        self._history[number], self._own = variant, own
        if variant.words:
            self.excused[variant.words] += 1

    def _reconsidered(self, operation: Operation, expected: Seen, actual: Seen) -> tuple[Seen, Seen] | None:
        """What is compared if the log was opened in another way than it seemed; None if that does not explain it.

        An entry of zeros cannot be told from room, so that two ways of opening may look alike until the next append.
        """
        if self._opening is None:
            return None
        number, opening, seen = self._opening
        last, taken = len(self._history) - 1, self._history[number]
        for variant in (Variant("", opening), *variants(opening, self.lacking)) if number < last else ():
            if variant.operation == taken.operation and variant.deletes == taken.deletes:
                continue
            variant, own = variant._replace(cuts=taken.cuts), self._other_way()  # noqa: PLW2901 -- as it was killed
            for at, step in enumerate((*self._history[:number], variant, *self._history[number + 1 :])):
                other = own.perform(step)
                if at in (number, last):
                    question, theirs = (opening, seen) if at == number else (operation, actual)
                    if question.name == "list_offsets":
                        other = self._answered(question, other, expected, theirs, is_own=True)
                    alike = self._compared(question, other, theirs, own.log)
                    if alike[0] != alike[1]:
                        break
            else:
                self._take(own, number, variant)
                return alike
            own.end()
        return None

    def _expected(self, operation: Operation, expected: Seen, actual: Seen, reference: Participant) -> Seen:
        """What is expected of a step the way that the log has taken, which a kill may make another one."""
        cuts = self._cuts(operation)
        self._history.append(Variant("", operation, cuts=cuts))
        if operation.name == "open_log":
            self._opening = len(self._history) - 1, operation, actual
        if self._own is None and cuts:
            self._own = self._other_way()
            for step in self._history[:-1]:
                self._own.perform(step)
        if self._own is None:
            return expected
        mine = self._own.perform(self._history[-1])
        if mine == expected and self._own.is_like(reference):
            self._leave_own()
        return mine

    def _cuts(self, operation: Operation) -> bool:
        """Whether a step kills a log that makes no room in its indexes, so that they are as long as their entries."""
        return "preallocation" in self.lacking and (
            operation.name == "crash_log" or (operation.name == "open_log" and self._is_open)
        )

    @property
    def _is_open(self) -> bool:
        """Whether the log was open before the last step of its history."""
        before = [step.operation.name for step in self._history if step.operation.name in _LETTING_GO]
        return bool(before) and before[-1] == "open_log"

    def _answered(self, operation: Operation, mine: Seen, expected: Seen, actual: Seen, *, is_own: bool) -> Seen:
        """What is expected of answers where the log decided what to recover, and where indexes were damaged.

        Answers as if the segments were as the reference's are right in any case; and where Kafka trusts a damaged
        index, those that the records lead to. That a log has recovered less than Kafka does is no excuse for trusting
        an index that Kafka has made anew.

        Args:
            operation: the question.
            mine: what the log is held to.
            expected: what the reference shows that performs the one way.
            actual: what the log shows.
            is_own: what the log is held to is another way.
        """
        outcomes = [each[0].outcome for each in (mine, expected, actual)]
        is_damaged = any(step.operation.name == "damage_log_file" for step in self._history)
        if any(o.error or o.value is None for o in outcomes) or not (is_own or is_damaged):
            return _as_nothing(mine, actual)
        rights = answers_of_records(operation, expected) if is_damaged else repeat(())
        # The log may have kept other segments, if it has recovered others.
        mine_too = answers_of_records(operation, mine) if is_damaged and is_own else repeat(())
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
        return _as_nothing((mine[0]._replace(outcome=outcomes[0]._replace(value=tuple(answers))), mine[1]), actual)

    def _other_way(self) -> OtherWay:
        self._ways += 1
        directory = self.directory.with_name(f"{self.directory.name}-other-way-{self._ways}")
        return OtherWay(self.implementation.release, directory)

    def _compared(
        self, operation: Operation, expected: Seen, actual: Seen, reference: Participant
    ) -> tuple[Seen, Seen]:
        """Both without what is excused; excuses that made a difference are counted if nothing else differs."""
        mine = expected[0].outcome
        if actual[0].outcome.error == UNSPECIFIED_PRODUCER_ERROR and mine.error in PRODUCER_ERRORS:
            actual = actual[0]._replace(outcome=mine), actual[1]
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


def _as_nothing(expected: Seen, actual: Seen) -> Seen:
    """What is expected with "none" in the words of the log: no answer, or one without timestamp and offset."""
    mine, theirs = expected[0].outcome, actual[0].outcome
    if not (mine.value and theirs.value):
        return expected
    pairs = zip(mine.value, theirs.value, strict=False)
    answers = tuple(other if _is_nothing(answer) and _is_nothing(other) else answer for answer, other in pairs)
    return expected[0]._replace(outcome=mine._replace(value=answers)), expected[1]


def _is_nothing(answer: tuple[int, ...] | None) -> bool:
    return answer is None or answer == (-1, -1, -1)


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
    words = [f"{UNTOLD}{name}" for name in untold]
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
