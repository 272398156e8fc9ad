"""Lockstep: every party performs the same operations in the same order, and all must agree after each of them.

The parties are the *subjects* (implementations under test), for each dialect among them one *reference* (kidx) and
for each dialect one abstract *model* where it is defined. After every operation a subject must have the reference's
outcome, state and bytes on disk; the reference must have the model's. Kafka's own classes, of which there may be 26 at
once, perform a step a little later than the references (:mod:`conformance.lockstep.batched_execution`).
"""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING, Any

from conformance.attribution import Situation, clauses_of, follow
from conformance.implementations.model import UNKNOWN
from conformance.implementations.replies import FAILURE
from conformance.lockstep.batched_execution import Following, Step
from conformance.lockstep.divergence import Divergence, DivergenceError, Tally
from conformance.lockstep.generator_coverage import state_of_index
from conformance.lockstep.groups import Group, IndexParty
from conformance.lockstep.watched_file import damaged, overwrite
from conformance.operations import FILE_OPERATIONS, OK, Observation, Operation, Outcome
from kidx.dialect import dialect_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from pathlib import Path

    from conformance.implementations.protocol import Implementation

__all__ = ["Divergence", "DivergenceError", "Lockstep", "Tally"]


_NAMING = {"open": 1, "rename": 0}
"""Operations after which another file is looked at, and which argument names it."""
_REPLACING = frozenset({"open", "rename", "delete"})
"""Operations after which the reference's file may be another, or gone."""
_READING = frozenset({"lookup", "entry", "fetch_upper_bound", "collect_aborted", "all_aborted", "sanity_check"})
"""Operations after which the reference's file is what it was: if it is not, the next other one shows it. Those of the
subjects are looked at after every operation."""


class Lockstep:
    """A set of parties that perform operations together.

    Args:
        subjects: the implementations under test; each is held to the dialect of its own release.
        scratch: an empty directory for their files, best in memory.
        releases: dialects to run the reference in even without a subject.
        excuse: decides about a difference: True lets the party leave the example, False raises.
        attribute: count which clauses the steps exercise.
        model: hold the reference to the abstract model.

    Attributes:
        stays: whether a party goes on with the example after a difference that is excused; by default none does.
    """

    def __init__(
        self,
        subjects: Iterable[Implementation],
        scratch: Path,
        *,
        releases: Iterable[str] = (),
        excuse: Callable[[Divergence], bool] = lambda _: False,
        attribute: bool = True,
        model: bool = True,
    ) -> None:
        self.excuse = excuse
        self.attribute = attribute
        self.stays: Callable[[Divergence], bool] = lambda _: False
        self.tally = Tally()
        self.operations: list[Operation] = []
        self.failure: DivergenceError | None = None
        self._failed = False
        parties = [IndexParty(subject, scratch / str(number)) for number, subject in enumerate(subjects)]
        by_dialect: dict[str, tuple[str, list[IndexParty]]] = {dialect_of(r).index_rules: (r, []) for r in releases}
        for party in parties:
            release = party.implementation.release
            by_dialect.setdefault(dialect_of(release).index_rules, (release, []))[1].append(party)
        self.groups = [
            Group(release, members, scratch, model=model) for _, (release, members) in sorted(by_dialect.items())
        ]
        self._parties = [*parties, *(group.reference for group in self.groups)]
        self._following = self._followers()
        for group in self.groups:
            self.tally.clauses[group.dialect.index_rules] = group.exercised
        self._name = ""

    def _followers(self) -> Following:
        return Following([group.subjects for group in self.groups], self._judge, self._hold_follower, self._count)

    @property
    def primary(self) -> Group:
        """The group that strategies look at: the newest dialect."""
        return self.groups[-1]

    @property
    def subjects(self) -> list[Implementation]:
        """The implementations under test that have not been retired."""
        return [party.implementation for group in self.groups for party in group.subjects]

    def retire(self, name: str) -> bool:
        """Takes an implementation out for good, after it has diverged.

        Returns:
            False if it is the reference: nobody can be held to it any more.
        """
        for group in self.groups:
            for party in group.subjects:
                if party.implementation.name == name:
                    party.end()
                    group.subjects.remove(party)
                    group.beside = [other for other in group.subjects if not other.follows]
                    self._parties.remove(party)
                    self._following = self._followers()
                    return True
        return False

    def leave(self, name: str) -> None:
        """Lets a party leave the example that has just begun."""
        for party in self._parties:
            if party.implementation.name == name:
                party.active = False

    def supports(self, operation: str) -> bool:
        """Whether every party has an operation of that name."""
        return operation in FILE_OPERATIONS or all(p.implementation.supports(operation) for p in self._parties)

    def begin(self) -> None:
        """Starts an example: every party in its empty directory."""
        self.operations = []
        self._name = ""
        self._failed = False
        self.tally.examples += 1
        for party in self._parties:
            party.begin()
        self._following.begin()
        for group in self.groups:
            if group.model is not None:
                group.model.begin()
            group.situation = Situation(group.dialect.release)
            group.observation = Observation(OK, None)
            group.file = None

    def end(self) -> None:
        """Ends the example and removes its files. If a step has failed, nobody is asked for more.

        Raises:
            DivergenceError: somebody differs who was behind, or somebody's program has failed when its index was closed
                because the example was over.
        """
        try:
            if not self._failed:
                self.settle()
        finally:
            self._following.drop()
            for party in self._parties:
                party.end()
        for party in self._parties:
            told: list[str] = getattr(party.implementation, "failures_between_examples", [])
            if told:
                text = told[-1]
                told.clear()
                if not self._failed:
                    # As a step of its own it comes again in a replay.
                    self.operations.append(Operation("close"))
                    pairs = {"outcome": (OK[:2], Outcome(FAILURE, None, text))}
                    self._diverged(party, "kidx", pairs, ())

    def settle(self) -> None:
        """Returns when everybody has performed every step.

        Raises:
            DivergenceError: somebody differs, and it counts; its step may be any since the last time.
        """
        self._following.settle()

    def perform(self, operation: Operation) -> Observation:
        """One step of everybody.

        Returns:
            What came of it in the newest dialect's reference.

        Raises:
            DivergenceError: somebody differs, and it counts. Of a follower it may tell of an earlier step, and its
                differences may be told later: :meth:`settle` makes sure.
        """
        try:
            return self._perform(operation)
        except BaseException:
            self._failed = True
            raise

    def _perform(self, operation: Operation) -> Observation:
        self.operations.append(operation)
        self.tally.steps += 1
        name = operation.name
        before = self._name
        if name in _NAMING:
            self._watch(operation.args[_NAMING[name]])
            if name == "open" and self._name != before:
                for group in self.groups:
                    group.file = group.reference.file.read()
        files = [group.file for group in self.groups]
        act = self._damage if name in FILE_OPERATIONS else self._refer
        for group in self.groups:
            act(group, operation)
        expected = [(group.observation, group.file) for group in self.groups]
        step = Step(len(self.operations) - 1, operation, self._name, files, expected)
        if self._following:
            self._following.add(step)
        else:
            self._judge(step)
            self._count((step,))
        if name not in FILE_OPERATIONS:
            self._hold_others(step)
        return self.groups[-1].observation

    def _hold_others(self, step: Step) -> None:
        """Those who do not follow perform the step now."""
        for number, group in enumerate(self.groups):
            for subject in group.beside:
                if subject.active:
                    self._hold(subject, step, number)

    def _count(self, steps: Sequence[Step]) -> None:
        """Everybody has performed these steps, so that they are evidence for their clauses."""
        if self.attribute:
            for number, group in enumerate(self.groups):
                group.exercised.update(chain.from_iterable(step.clauses[number] for step in steps if step.clauses))

    def _watch(self, name: str) -> None:
        self._name = name
        for party in self._parties:
            if not party.follows:
                party.file.watch(party.prefix + name)

    def _refer(self, group: Group, operation: Operation) -> None:
        """The reference performs an operation."""
        group.observation = group.reference.perform(operation)
        if operation.name not in _READING:
            file = group.reference.file
            group.file = file.read() if operation.name in _REPLACING else file.read_again()

    def _damage(self, group: Group, operation: Operation) -> None:
        """Everybody's file is changed alike; they are all the same, as the step before has shown."""
        group.observation = Observation(OK, group.observation.state)
        if group.file is None and operation.name != "write_file":
            return
        group.file = damaged(group.file or b"", operation.name, operation.args)
        for party in (group.reference, *group.beside):
            if party.active:
                overwrite(party.prefix + self._name, group.file)
                party.file.watch(party.prefix + self._name)

    def _judge(self, step: Step) -> None:
        """Holds the references to their models, and finds the clauses that the step exercises."""
        if step.clauses is None:
            parts = zip(self.groups, step.before, step.expected, strict=True)
            step.clauses = [self._judge_reference(group, step, before, *seen) for group, before, seen in parts]

    def _judge_reference(
        self, group: Group, step: Step, before: bytes | None, observation: Observation, file: bytes | None
    ) -> tuple[str, ...]:
        operation = step.operation
        prediction = None if group.model is None else group.model.perform(operation, file_bytes=before)
        if operation.name in FILE_OPERATIONS:
            follow(group.situation, operation, observation)
            return ()
        clauses: tuple[str, ...] = ()
        if self.attribute:
            situation = group.situation
            if operation.name == "open":
                situation.preexisting = before is not None
            clauses = clauses_of(operation, situation, observation)
            if group is self.groups[-1]:
                self.tally.cells[operation.name, state_of_index(situation), observation.outcome.error] += 1
            follow(situation, operation, observation)
        if prediction is not None:
            self._hold_reference_to_model(group, step, prediction, observation, file, clauses)
        return clauses

    def _hold_follower(self, party: IndexParty, group: int, step: Step) -> None:
        """Looks at what a follower has come to that has stopped behind a step."""
        party.file.watch(party.prefix + step.name)
        if step.listings:
            pairs = {"bytes": (step.listings[group], party.listing())}
            self._diverged(party, "kidx", pairs, (), step.number)
        else:
            self._hold(party, step, group)

    def _hold(self, party: IndexParty, step: Step, group: int) -> None:
        """Compares somebody with the reference of a set of rules."""
        operation, (expected, file) = step.operation, step.expected[group]
        actual = party.perform(operation)
        content = party.file.read()
        if actual == expected and content == file:
            return
        if actual.outcome.error == "unsupported":
            self.tally.unsupported[party.implementation.name, operation.name] += 1
            party.active = False
            return
        mine, theirs = expected.outcome, actual.outcome
        speaks_kafka = party.implementation.speaks_kafka
        pairs = {
            # What went wrong with somebody's program is told in the text of its failure.
            "outcome": (mine[:2], theirs if theirs.error == FAILURE else theirs[:2]),
            "text": (mine.text, theirs.text) if speaks_kafka else (None, None),
            # Who is not Kafka need not tell its state, of a closed index for instance; the file speaks for it.
            "state": (expected.state, actual.state if actual.state or speaks_kafka else expected.state),
            "bytes": (file, content),
        }
        if not party.follows:
            self.settle()  # by then the step is judged, and what followers have come to before it is told
        clauses = step.clauses[group] if step.clauses else ()
        self._diverged(party, "kidx", pairs, clauses, step.number)

    def _hold_reference_to_model(
        self,
        group: Group,
        step: Step,
        prediction: Any,
        observation: Observation,
        file: bytes | None,
        clauses: tuple[str, ...],
    ) -> None:
        if (
            prediction.outcome[:2] == observation.outcome[:2]
            and (prediction.state is UNKNOWN or prediction.state == observation.state)
            and (prediction.file is UNKNOWN or prediction.file == file)
        ):
            return
        pairs = {
            "outcome": (prediction.outcome[:2], observation.outcome[:2]),
            "state": (prediction.state, observation.state if prediction.state is not UNKNOWN else UNKNOWN),
            "bytes": (prediction.file, file if prediction.file is not UNKNOWN else UNKNOWN),
        }
        self._diverged(group.reference, "model", pairs, clauses, step.number)

    def require(self, condition: bool, invariant: str, state: Any) -> None:
        """An invariant of the reference itself, in words.

        Raises:
            DivergenceError: it does not hold.
        """
        if not condition:
            reference = self.primary.reference
            self._diverged(reference, "model", {"state": (invariant, state)}, ())

    def compare_directories(self) -> None:
        """Every party has the same files, and no others.

        Raises:
            DivergenceError: a party has left something behind, or lost something.
        """
        listings = [group.reference.listing() for group in self.groups]
        for group, expected in zip(self.groups, listings, strict=True):
            for party in group.beside:
                if party.active and (actual := party.listing()) != expected:
                    self._diverged(party, "kidx", {"bytes": (expected, actual)}, ())
        if self._following:
            step = Step(len(self.operations) - 1, self.operations[-1], self._name, (), (), listings, ())
            self._following.add(step)

    def _diverged(
        self,
        party: IndexParty,
        against: str,
        pairs: dict[str, tuple[Any, Any]],
        clauses: tuple[str, ...],
        number: int | None = None,
    ) -> None:
        """Says who differs in what, in the step of that number; in the last one by default."""
        different = {aspect: pair for aspect, pair in pairs.items() if pair[0] != pair[1]}
        if not different:
            return
        if not party.follows:
            self.settle()  # what followers have come to in earlier steps comes first
        if number is None:
            number = len(self.operations) - 1
        expected, actual = next(iter(different.values()))
        divergence = Divergence(
            number,
            self.operations[number],
            party.implementation.name,
            party.implementation.release,
            against,
            tuple(different),
            expected,
            actual,
            clauses,
        )
        if against == "kidx" and self.excuse(divergence):
            party.active = self.stays(divergence)
            for clause in clauses:
                self.tally.dropped[party.implementation.name, clause] += 1
            return
        self.failure = DivergenceError(divergence, self.operations[: number + 1])
        self._failed = True
        raise self.failure
