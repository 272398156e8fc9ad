"""Third-party log as a participant, compared as far as its capabilities require.

Its reference executes some steps in another permitted way.
"""

from __future__ import annotations

from collections import Counter
from itertools import repeat
from typing import TYPE_CHECKING, Any, Final

from conformance.implementations.kidx.log import ReferenceLog
from conformance.lockstep.scopes.directory import COMPARED, LogParticipant
from conformance.lockstep.scopes.tolerances import (
    AFTER_CORRUPTION,
    TOLERANCES,
    AllowedVariant,
    Lengths,
    ObservedFiles,
    results_from_records,
    variants,
)
from conformance.operations import OK, Operation
from conformance.operations.log import PRODUCER_ERRORS, UNSPECIFIED_PRODUCER_ERROR, LogObservation, LogState
from conformance.operations.log_capabilities import CAPABILITIES, NOT_IN_STATE
from conformance.operations.outcomes import FAILURE
from kidx.discovery import PARTITION_METADATA

if TYPE_CHECKING:
    from pathlib import Path

    from conformance.lockstep.participant import Participant


class AlternativeReference:
    """Reference that executes an example from its beginning, with permitted variants of some steps.

    A variant (:class:`~conformance.lockstep.scopes.tolerances.AllowedVariant`) may execute another operation before or
    after its own, delete segments, or truncate the indexes to their entries.
    """

    def __init__(self, release: str, directory: Path) -> None:
        directory.mkdir(parents=True)
        self.log = LogParticipant(ReferenceLog(release), directory)
        self.log.implementation.begin(directory)
        self._lengths: Lengths = {}

    def is_like(self, reference: Participant) -> bool:
        """Return True if the indexes have as many entries as in another reference; entries of zeros count."""
        own_lengths: Lengths = self.log.implementation.index_lengths()
        other_lengths: Lengths = reference.implementation.index_lengths()
        return own_lengths == other_lengths

    def perform(self, step: AllowedVariant) -> ObservedFiles:
        """Execute a step, and return its observation and the files after it."""
        operation = step.operation
        if operation.name == "damage_log_file":
            self.log.corrupt(*operation.args)
            return LogObservation(OK, None), self.log.read()
        if step.cuts_indexes and operation.name == "open_log":
            self.perform(AllowedVariant("", Operation("crash_log"), cuts_indexes=True))
        before = self.log.names()
        if step.first is not None:
            self.log.perform(step.first)
        observation = self.log.perform(operation)
        if step.last is not None and observation.outcome.value:
            observation = observation._replace(state=self.log.perform(step.last).state)
        if operation.name == "crash_log":
            # In old releases, closing the log creates the files of indexes that were never opened.
            for name in self.log.names().keys() - before.keys():
                self.log.corrupt(name, "remove_file", ())
            if step.cuts_indexes:
                for name, length in self._lengths.items():
                    self.log.corrupt(name, "cut_file", (length,))
        self._lengths = self.log.implementation.index_lengths()
        if step.deletes_segments and observation.outcome.error is None and observation.state is not None:
            observation = observation._replace(state=self.log.implementation.delete_before_start())
        return observation, self.log.read()

    def end(self) -> None:
        """Remove the reference and its files."""
        self.log.implementation.end()
        self.log.clear()


_NOT_COMPARED: Final = ("unsupported", FAILURE)
"""The errors after which neither state nor files are normalized: the log lacks the operation, or has crashed."""
_OPENING_OR_CLOSING: Final = frozenset({"open_log", "close_log", "crash_log"})


class ExternalLogParticipant(LogParticipant):
    """Log that declares its capabilities.

    The log is compared with the reference, except for the tolerances of its missing capabilities. If a log may execute
    a step in several ways, and has executed it in another way than the reference, the log gets a separate reference
    that has executed the same variant. The log keeps it until both references are equal again.

    Attributes:
        tolerated: The number of steps with a tolerated difference, by the description of the tolerance.
    """

    compared = tuple(end for end in COMPARED if end != PARTITION_METADATA)  # programs assign no topic ids

    def __init__(self, implementation: Any, directory: Path) -> None:
        super().__init__(implementation, directory)
        self.lacking = tuple(name for name in CAPABILITIES if name not in implementation.capabilities)
        self.tolerated: Counter[str] = implementation.excused
        self._alternatives = 0  # the number of directories of separate references so far
        self._own: AlternativeReference | None = None  # the separate reference; None if it needs none
        self._history: list[AllowedVariant] = []  # the steps of the example, as the log has executed them
        # The last opening: its index in the history, the operation, and the log's result.
        self._opening: tuple[int, Operation, ObservedFiles] | None = None
        self._lengths: Lengths = {}
        self._before: ObservedFiles | None = None  # the expected result of the previous step

    def begin(self) -> None:
        """See the base class."""
        self._drop_own()
        self._history, self._opening, self._lengths, self._before = [], None, {}, None
        super().begin()

    def clear(self) -> None:
        """See the base class."""
        self._drop_own()
        super().clear()

    def _drop_own(self) -> None:
        own, self._own = self._own, None
        if own is not None:
            own.end()

    def corrupt(self, path: str, how: str, numbers: tuple[Any, ...]) -> None:
        """See the base class."""
        super().corrupt(path, how, numbers)
        operation = Operation("damage_log_file", (path, how, numbers))
        self._history.append(AllowedVariant("", operation))
        if self._own is not None:
            self._own.perform(self._history[-1])

    def comparable_listing(self, expected: list[str]) -> list[str]:
        """See the base class; :meth:`normalize` compares the files after every step already."""
        return expected

    def normalize(
        self, operation: Operation, expected: ObservedFiles, actual: ObservedFiles, reference: Participant
    ) -> tuple[ObservedFiles, ObservedFiles]:
        """See the base class."""
        if actual[0].outcome.error in _NOT_COMPARED:
            return expected, actual
        own_result = self._expected(operation, expected, actual, reference)
        if operation.name == "list_offsets":
            own_result = self._answered(operation, own_result, expected, actual, is_own=self._own is not None)
        compared = self._compared(operation, own_result, actual, reference if self._own is None else self._own.log)
        before, self._before = self._before, own_result
        if compared[0] == compared[1]:
            return compared
        for variant in variants(operation, self.lacking, before, own_result):
            own = self._alternative()
            # A kill cuts the indexes in either case.
            variant = variant._replace(cuts_indexes=self._history[-1].cuts_indexes)  # noqa: PLW2901
            for step in (*self._history[:-1], variant):
                other = own.perform(step)
            alike = self._compared(operation, other, actual, own.log)
            if alike[0] == alike[1]:
                self._adopt(own, -1, variant)
                self._before = other
                return alike
            own.end()
        return self._reconsider(operation, expected, actual) or compared

    def _adopt(self, own: AlternativeReference, number: int, variant: AllowedVariant) -> None:
        """Compare the log from now on with a reference that has executed a variant of a step.

        Args:
            number: The index of the step in the history.
        """
        self._drop_own()
        self._history[number], self._own = variant, own
        if variant.description:
            self.tolerated[variant.description] += 1

    def _reconsider(
        self, operation: Operation, expected: ObservedFiles, actual: ObservedFiles
    ) -> tuple[ObservedFiles, ObservedFiles] | None:
        """Return both sides if another variant of the last opening explains the log's results, or None.

        An entry of zeros is indistinguishable from a preallocated tail, so two variants of an opening may look alike
        until the next append.
        """
        if self._opening is None:
            return None
        number, opening, seen = self._opening
        last, taken = len(self._history) - 1, self._history[number]
        for variant in (AllowedVariant("", opening), *variants(opening, self.lacking)) if number < last else ():
            if variant.operation == taken.operation and variant.deletes_segments == taken.deletes_segments:
                continue
            variant = variant._replace(cuts_indexes=taken.cuts_indexes)  # noqa: PLW2901 -- with the same kill
            own = self._alternative()
            for at, step in enumerate((*self._history[:number], variant, *self._history[number + 1 :])):
                other = own.perform(step)
                if at in (number, last):
                    question, result = (opening, seen) if at == number else (operation, actual)
                    if question.name == "list_offsets":
                        other = self._answered(question, other, expected, result, is_own=True)
                    alike = self._compared(question, other, result, own.log)
                    if alike[0] != alike[1]:
                        break
            else:
                self._adopt(own, number, variant)
                return alike
            own.end()
        return None

    def _expected(
        self, operation: Operation, expected: ObservedFiles, actual: ObservedFiles, reference: Participant
    ) -> ObservedFiles:
        """Return the expected result of a step, from the log's own reference if it has one or now needs one."""
        cuts = self._cuts(operation)
        self._history.append(AllowedVariant("", operation, cuts_indexes=cuts))
        if operation.name == "open_log":
            self._opening = len(self._history) - 1, operation, actual
        if self._own is None and cuts:
            self._own = self._alternative()
            for step in self._history[:-1]:
                self._own.perform(step)
        if self._own is None:
            return expected
        own_result = self._own.perform(self._history[-1])
        if own_result == expected and self._own.is_like(reference):
            self._drop_own()
        return own_result

    def _cuts(self, operation: Operation) -> bool:
        """Return True if a step kills a log without ``preallocation``, whose indexes then end after their entries."""
        return "preallocation" in self.lacking and (
            operation.name == "crash_log" or (operation.name == "open_log" and self._is_open)
        )

    @property
    def _is_open(self) -> bool:
        """True if the log was open before the last step of its history."""
        before = [step.operation.name for step in self._history if step.operation.name in _OPENING_OR_CLOSING]
        return bool(before) and before[-1] == "open_log"

    def _answered(
        self,
        operation: Operation,
        own_result: ObservedFiles,
        expected: ObservedFiles,
        actual: ObservedFiles,
        *,
        is_own: bool,
    ) -> ObservedFiles:
        """Return the expected results of ``list_offsets`` for a log with its own reference or with corrupt indexes.

        Results that are right for the reference's segments are always accepted. If Kafka trusts a corrupt index,
        results that are right according to the records are accepted as well. A log that recovers less than Kafka does
        must not trust an index that Kafka has rebuilt.

        Args:
            own_result: The observation that the log is compared with.
            expected: The observation of the shared reference.
            actual: The log's observation.
            is_own: True if the log is compared with a separate reference.
        """
        outcomes = [each[0].outcome for each in (own_result, expected, actual)]
        is_damaged = any(step.operation.name == "damage_log_file" for step in self._history)
        if any(o.error or o.value is None for o in outcomes) or not (is_own or is_damaged):
            return _as_nothing(own_result, actual)
        rights = results_from_records(operation, expected) if is_damaged else repeat(())
        # A log that has recovered other segments may have retained other segments.
        alternatives = results_from_records(operation, own_result) if is_damaged and is_own else repeat(())
        results, is_excused = [], False
        for own, kept, answer, right, held in zip(*(o.value for o in outcomes), rights, alternatives, strict=False):
            if own != kept and _plain(own) not in (*right, *held) and _plain(kept) in right:
                own = kept  # noqa: PLW2901 -- Kafka has rebuilt what the log trusts
            if answer == own or _plain(answer) == _plain(kept):
                results.append(own if answer == own else kept)
            else:
                results.append(answer if _plain(answer) in right else own)
                is_excused |= _plain(answer) in right
        if is_excused:
            self.tolerated[AFTER_CORRUPTION] += 1
        return _as_nothing(
            (own_result[0]._replace(outcome=outcomes[0]._replace(value=tuple(results))), own_result[1]), actual
        )

    def _alternative(self) -> AlternativeReference:
        self._alternatives += 1
        directory = self.directory.with_name(f"{self.directory.name}-other-way-{self._alternatives}")
        return AlternativeReference(self.implementation.release, directory)

    def _compared(
        self, operation: Operation, expected: ObservedFiles, actual: ObservedFiles, reference: Participant
    ) -> tuple[ObservedFiles, ObservedFiles]:
        """Return both sides without tolerated differences, and count the tolerances if both sides are equal."""
        expected_outcome = expected[0].outcome
        if actual[0].outcome.error == UNSPECIFIED_PRODUCER_ERROR and expected_outcome.error in PRODUCER_ERRORS:
            actual = actual[0]._replace(outcome=expected_outcome), actual[1]
        if operation.name != "crash_log":  # a crash does not change the lengths; a closed log has only entries
            self._lengths = reference.implementation.index_lengths()
        expected, unreported = _mask_unreported_fields(expected, actual)
        needed = Counter(unreported)
        for capability, tolerance in TOLERANCES.items():
            if capability in self.lacking and expected != actual:
                before = _differing(expected, actual)
                expected, actual = tolerance.normalize(operation, expected, actual, self._lengths)
                if _differing(expected, actual) != before:
                    needed[tolerance.description] += 1
        if expected == actual:
            self.tolerated.update(needed)
        return expected, actual


def _as_nothing(expected: ObservedFiles, actual: ObservedFiles) -> ObservedFiles:
    """Return the expected results, with "no result" in the form that the log uses: None or (-1, -1, -1)."""
    expected_outcome, actual_outcome = expected[0].outcome, actual[0].outcome
    if not (expected_outcome.value and actual_outcome.value):
        return expected
    pairs = zip(expected_outcome.value, actual_outcome.value, strict=False)
    results = tuple(other if _is_nothing(answer) and _is_nothing(other) else answer for answer, other in pairs)
    return expected[0]._replace(outcome=expected_outcome._replace(value=results)), expected[1]


def _is_nothing(answer: tuple[int, ...] | None) -> bool:
    return answer is None or answer == (-1, -1, -1)


def _plain(answer: tuple[int, ...] | None) -> tuple[int, ...] | None:
    """Return a result without its leader epoch."""
    return answer and tuple(answer[:2])


def _mask_unreported_fields(expected: ObservedFiles, actual: ObservedFiles) -> tuple[ObservedFiles, list[str]]:
    """Return the expected side with None in unreported fields of the state, and descriptions of these fields.

    The messages of errors are the log's own.
    """
    if expected[0].outcome[:2] == actual[0].outcome[:2]:
        expected = (expected[0]._replace(outcome=actual[0].outcome), expected[1])
    expected_state, actual_state = expected[0].state, actual[0].state
    if expected_state is None or actual_state is None:
        return expected, []
    unreported = [name for name, value in zip(LogState._fields, actual_state, strict=True) if value is None]
    if not unreported:
        return expected, []
    description = [f"{NOT_IN_STATE}{name}" for name in unreported]
    return (expected[0]._replace(state=expected_state.without(unreported)), expected[1]), description


def _differing(expected: ObservedFiles, actual: ObservedFiles) -> set[str]:
    """Return the parts that differ: names of files, fields of the state, and the outcome."""
    (expected_observation, files), (actual_observation, contents) = expected, actual
    names = {name for name in {*files, *contents} if files.get(name) != contents.get(name)}
    if expected_observation.outcome[:2] != actual_observation.outcome[:2]:
        names.add("outcome")
    if expected_observation.state is None or actual_observation.state is None:
        return names | ({"state"} if expected_observation.state is not actual_observation.state else set())
    pairs = zip(LogState._fields, expected_observation.state, actual_observation.state, strict=True)
    return names | {name for name, one, other in pairs if one != other}
