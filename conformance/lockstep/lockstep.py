"""Lockstep: every participant performs the same operations in the same order, and all are compared after each.

The participants are the *subjects* (implementations under test), for each set of rules among their releases one
*reference* (kidx), and for each reference one abstract *model* if the level has one. After every operation a subject
must have the reference's outcome, state and bytes on disk; the reference must have the model's. Batched participants
perform a step later (:mod:`conformance.lockstep.batched_execution`). A ``Level`` says what is driven and compared.
"""

from __future__ import annotations

from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, Any, Generic

from conformance.implementations.replies import FAILURE
from conformance.implementations.sizes import takes
from conformance.lockstep.batched_execution import BatchedExecution, Step
from conformance.lockstep.comparison import difference, pairs_of_model, pairs_of_subject
from conformance.lockstep.divergence import Divergence, DivergenceError, Statistics
from conformance.lockstep.level import Files, Group, Level, Seen, grouped
from conformance.lockstep.shared_references import SharedReferences
from conformance.lockstep.staying import Ruling
from conformance.lockstep.watched import WATCHED
from conformance.operations import OK, Operation, Outcome
from conformance.operations.effects import Effect

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from pathlib import Path

    from conformance.implementations.protocol import Implementation
    from conformance.lockstep.participant import Participant


class Lockstep(Generic[Seen, Files]):
    """A set of participants that perform operations together.

    Args:
        subjects: the implementations under test; each is held to the dialect of its own release.
        scratch: an empty directory for their files, best in memory.
        releases: dialects to run the reference in even without a subject.
        excuse: decides about a difference: a :class:`~conformance.lockstep.staying.Ruling`, or a boolean.
        attribute: count which clauses the steps exercise.
        model: hold the reference to the abstract model, if there is one.

    Attributes:
        journal: called with each step before it is performed, and with None where an example begins.
    """

    level: Level[Any, Any]

    def __init__(
        self,
        subjects: Iterable[Any],
        scratch: Path,
        *,
        releases: Iterable[str] = (),
        excuse: Callable[[Divergence], int] = lambda _: False,
        attribute: bool = True,
        model: bool = True,
    ) -> None:
        level = self.level
        self.excuse = excuse
        self.attribute = attribute
        self.statistics = Statistics(level.key)
        self.operations: list[Operation] = []
        self.journal: Callable[[Operation | None], None] = lambda _: None
        self._held: Participant | None = None
        self.failure: DivergenceError | None = None
        self._failed = False
        self._name = level.unnamed
        self._seen: list[tuple[Seen, Files]] = []
        participants = [level.participant(subject, scratch / str(number)) for number, subject in enumerate(subjects)]
        self.groups: list[Group[Seen, Files]] = grouped(level, participants, releases, scratch, model=model)
        self._subjects = participants
        self._share()
        self._batch()
        for group in self.groups:
            self.statistics.clauses[level.key(group.dialect.release)] = group.exercised
        WATCHED.add(self)

    def _share(self) -> None:
        """Finds out which references perform for each other."""
        self._references: SharedReferences[Seen, Files] = SharedReferences(self.level, self.groups)

    def _batch(self) -> None:
        """Finds out which participants perform steps in batches, and which after each step."""
        subjects = [group.subjects for group in self.groups]
        self._batched = BatchedExecution(self.level, subjects, self._conclude, self._hold_batched, self._count)
        self._beside = [(subject, number) for number, group in enumerate(self.groups) for subject in group.beside]

    # -- the participants --------------------------------------------------------------------------------------

    @property
    def primary(self) -> Group[Seen, Files]:
        """The group that strategies look at: the newest dialect."""
        return self.groups[-1]

    @property
    def at(self) -> Participant | None:
        """The participant that performs a step in Python right now; another thread may ask."""
        return self._held or self._references.at

    def step_of(self, participant: Participant) -> int:
        """The number of the step that a participant performs right now; another thread may ask."""
        step = self._batched.step_of(participant) if participant.batched else None
        return len(self.operations) - 1 if step is None else step.number

    @property
    def participants(self) -> Sequence[Participant]:
        """The subjects, and the references behind them."""
        return (*self._subjects, *self._references.all)

    @property
    def subjects(self) -> list[Implementation]:
        """The implementations under test that have not been retired."""
        return [participant.implementation for group in self.groups for participant in group.subjects]

    def retire(self, name: str) -> bool:
        """Takes an implementation out for good, after it has diverged.

        Returns:
            False if no subject has that name: a reference cannot be taken out.
        """
        for group in self.groups:
            for participant in [each for each in group.subjects if each.implementation.name == name]:
                participant.end()
                group.remove(participant)
                self._subjects.remove(participant)
                self._batch()
                return True
        return False

    def leave(self, name: str) -> None:
        """Lets a participant leave the example that has just begun."""
        for participant in self._subjects:
            if participant.implementation.name == name:
                participant.active = False

    def supports(self, operation: str) -> bool:
        """Whether the harness performs an operation of that name, or every participant has it."""
        return operation in self.level.damaging or all(p.implementation.supports(operation) for p in self.participants)

    def takes(self, operation: Operation) -> bool:
        """Whether every participant knows arguments of this kind (:mod:`conformance.implementations.sizes`)."""
        return all(takes(p.implementation, operation) for p in self.participants)

    def can_execute(self, operations: Iterable[Operation]) -> bool:
        """Return whether every participant has what all steps of a trace need, as far as it is declared."""
        return all(map(self.takes, operations))

    def count_at(self, level: str) -> None:
        """Set the level of the verdict at which divergences count; before the first operation."""
        del level

    @property
    def is_modelled(self) -> bool:
        """Whether a reference is held to an abstract model."""
        return any(group.model is not None for group in self.groups)

    def drop_models(self) -> None:
        """Holds the references to no model from now on: it has a table of releases of its own."""
        for group in self.groups:
            group.model = None

    def refer_to(self, implementation: Implementation, directory: Path) -> None:
        """Lets an implementation stand in for kidx, and for the model, in the only group."""
        (group,) = self.groups
        group.reference, group.model = self.level.participant(implementation, directory), None
        self._share()
        self._batch()

    # -- an example --------------------------------------------------------------------------------------------

    def begin(self) -> None:
        """Starts an example: every participant in its empty directory."""
        self.operations = []
        self.journal(None)
        self._name = self.level.unnamed
        self._failed = False
        self.statistics.examples += 1
        for participant in self._subjects:
            participant.begin()
        self._batched.begin()
        for group in self.groups:
            group.begin()
        self._references.begin()
        self._look()

    def end(self) -> None:
        """Ends the example and removes its files. After a failed step, nothing more is compared.

        Raises:
            DivergenceError: a batched participant differs, or an implementation has failed to close what was open.
        """
        try:
            if not self._failed:
                self.settle()
        finally:
            self._batched.drop()
            for participant in self._subjects:
                participant.end()
            self._references.end()
        for participant in self.participants:
            text = participant.failure_between_examples()
            if text is not None and not self._failed:
                # As a step of its own it comes again in a replay.
                self.operations.append(self.level.closing)
                self._diverged(participant, "kidx", {"outcome": (OK[:2], Outcome(FAILURE, None, text))}, ())

    def settle(self) -> None:
        """Returns when every participant has performed every step.

        Raises:
            DivergenceError: a batched participant differs, and it counts; its step may be any since the last time.
        """
        self._batched.settle()

    def perform(self, operation: Operation) -> Seen:
        """One step of every participant.

        Returns:
            The observation of the newest dialect's reference.

        Raises:
            DivergenceError: a participant differs, and it counts. Of a batched one it may tell of an earlier step, and
                its differences may be told later: :meth:`settle` makes sure.
        """
        try:
            return self._perform(operation)
        except BaseException:
            self._failed = True
            raise

    def _perform(self, operation: Operation) -> Seen:
        self.operations.append(operation)
        self.journal(operation)
        self.statistics.steps += 1
        if operation.name in self.level.naming:
            name = self.level.named(operation, self._name)
            self._watch(name, reread=name != self._name and operation.effect is Effect.OPENS)
        before = self._seen
        damages = operation.name in self.level.damaging
        if damages:
            for group in self.groups:
                self.level.damage(group, operation, self._name)
            self._references.spread()
        else:
            self._refer(operation)
        self._look()
        step = Step(len(self.operations) - 1, operation, self._name, before, self._seen, damages=damages)
        if self._batched.kinds:
            self._batched.add(step)
        else:
            self._conclude(step)
            self._count((step,))
        if not damages:
            for subject, number in self._beside:
                if subject.active:
                    self._hold(subject, number, step)
        return self.groups[-1].observation

    def _refer(self, operation: Operation) -> None:
        """The references perform an operation."""
        self._references.perform(operation, self.operations)

    def _look(self) -> None:
        """Notes what the references show now: what the next step finds."""
        self._seen = [(group.observation, group.files) for group in self.groups]

    def _watch(self, name: Any, *, reread: bool) -> None:
        """Looks at other files from now on; of those that are opened, the content before is not known yet."""
        self._name = name
        for participant in self.participants:
            if not participant.batched:
                participant.watch(name)
        if reread:
            self._references.reread()
            self._look()

    # -- the references ----------------------------------------------------------------------------------------

    def _conclude(self, step: Step) -> None:
        """Holds the references to their models, and finds the clauses that the step exercises."""
        if step.clauses is not None:
            return
        level, operation, last = self.level, step.operation, self.groups[-1]
        known: dict[Any, Any] = {}
        found, promised = list[tuple[str, ...]](), list[bool]()
        for group, before, after in zip(self.groups, step.before, step.expected, strict=True):
            prediction = None if group.model is None else group.model.perform(operation, file_bytes=before[1])
            clauses: tuple[str, ...] = ()
            if self.attribute:
                if not step.damages:
                    clauses = level.clauses_of(operation, group.dialect, group.tracked, before, after, known)
                    if group is last:
                        self.statistics.kinds[operation.name, after[0].outcome.error, clauses] += 1
                    promised.append(level.is_reachable_by_broker(operation, group.tracked, after))
                level.track(group.tracked, operation, after[0])
            found.append(clauses)
            if prediction is not None and not step.damages:
                pairs = pairs_of_model(prediction, after)
                if pairs:
                    self._diverged(group.reference, "model", pairs, clauses, step.number)
        step.clauses, step.promised = found, promised

    def require(self, condition: bool, invariant: str, state: Any) -> None:
        """An invariant of the reference itself, in words.

        Raises:
            DivergenceError: it does not hold.
        """
        if not condition:
            self._diverged(self.primary.reference, "model", {"state": (invariant, state)}, ())

    def _count(self, steps: Sequence[Step]) -> None:
        """Every participant has performed these steps, so that they are evidence for their clauses."""
        if self.attribute:
            for number, group in enumerate(self.groups):
                group.exercised.update(chain.from_iterable(step.clauses[number] for step in steps if step.clauses))

    # -- the subjects ------------------------------------------------------------------------------------------

    def _hold_batched(self, participant: Participant, group: int, step: Step) -> None:
        """Looks at a batched participant that has stopped behind a step."""
        participant.watch(step.name)
        if step.listings:
            pairs = {"bytes": (step.listings[group], participant.listing())}
            self._diverged(participant, "kidx", pairs, (), step.number)
        else:
            self._hold(participant, group, step)

    def _hold(self, participant: Participant, group: int, step: Step) -> None:
        """Compares a subject with the reference of its group."""
        self._held = participant
        try:
            actual = participant.perform(step.operation)
        finally:
            self._held = None
        expected, reference = step.expected[group], self.groups[group].reference
        expected, found = participant.fairly(step.operation, expected, (actual, participant.read()), reference)
        if step.clauses:
            participant.discredit(step.clauses[group])
        if expected == found:
            return
        who = participant.implementation
        if self.statistics.note_left(who.name, step.operation.name, found[0].outcome.error):
            participant.active = False
            return
        differing = pairs_of_subject(expected, found, speaks_kafka=who.speaks_kafka)
        if not participant.batched:
            self.settle()  # by then the step is concluded, and differences of batched participants before it are told
        pairs = {aspect: differing[aspect] for aspect in self.level.aspects}
        clauses, seen = step.clauses[group] if step.clauses else (), (step.before[group], step.expected[group])
        if clauses:
            clauses = self.level.at_stake(clauses, step.operation, self.groups[group].dialect, seen, expected, found)
        promised = step.is_promised(group) and participant.is_promised()
        more = {"named": partial(self.level.by_name, name=step.name), "promised": promised}
        self._diverged(participant, "kidx", pairs, participant.at_stake(clauses), step.number, **more)

    def compare_directories(self) -> None:
        """Every participant has the same files, and no others.

        Raises:
            DivergenceError: a participant has left something behind, or lost something.
        """
        listings = self._references.listings()
        for group, expected in zip(self.groups, listings, strict=True):
            for participant in group.beside:
                if participant.active and (actual := participant.listing_for(expected)) != expected:
                    self._diverged(participant, "kidx", {"bytes": (expected, actual)}, ())
        if self._batched.kinds:
            last = len(self.operations) - 1
            self._batched.add(Step(last, self.operations[last], self._name, (), (), listings, clauses=()))

    def _diverged(
        self,
        participant: Participant,
        against: str,
        pairs: dict[str, tuple[Any, Any]],
        clauses: tuple[str, ...],
        number: int | None = None,
        **more: Any,
    ) -> None:
        """Tells which aspects differ in the step of that number, the last one by default; nothing if none does."""
        number = len(self.operations) - 1 if number is None else number
        who = (participant.implementation.name, participant.implementation.release)
        divergence = difference(number, self.operations[number], who, pairs, clauses, against=against, **more)
        if divergence is None:
            return
        if not participant.batched:
            self.settle()  # differences of batched participants in earlier steps come first
        if against == "kidx" and (decided := self.excuse(divergence)):
            participant.active = decided == Ruling.STAYS
            for clause in clauses:
                self.statistics.dropped[divergence.participant, clause] += 1
            return
        self.failure = DivergenceError(divergence, self.operations[: number + 1])
        self._failed = True
        raise self.failure
