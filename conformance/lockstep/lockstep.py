"""Lockstep: every participant executes the same operations in the same order, and all are compared after each.

The participants are the *subjects* (implementations under test), a *reference* (kidx) for each group of subjects whose
releases behave alike, and an abstract *model* for each reference if the scope has models. After every operation,
outcome, state and bytes on disk of subject and reference must be equal, and the reference must be as the model
predicts. Batched participants execute steps later (:mod:`conformance.lockstep.batched_execution`). A ``Scope`` defines
the object under test and the comparison.
"""

from __future__ import annotations

from contextlib import contextmanager
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, Any, Generic

from hypothesis.errors import Flaky

from conformance.implementations.protocol import takes
from conformance.lockstep.batched_execution import BatchedExecution, Step
from conformance.lockstep.comparison import build_divergence, compare_with_model, compare_with_reference
from conformance.lockstep.divergence import Decision, Divergence, DivergenceError, Statistics
from conformance.lockstep.scope import Files, Group, ObservationT, Scope, grouped
from conformance.lockstep.shared_references import SharedReferences
from conformance.lockstep.watchdog import ACTIVE_RUNS
from conformance.operations import OK, UNSUPPORTED, Operation, Outcome
from conformance.operations.op import Effect
from conformance.operations.outcomes import FAILURE

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from conformance.implementations.protocol import Implementation
    from conformance.lockstep.participant import Participant
    from conformance.operations.op import Op


class Observer:
    """Observer of the examples of a lockstep, which can keep participants and steps out of them; it does nothing."""

    def begins(self) -> Collection[str]:
        """Return the participants that skip the example that begins; the lockstep still has the last one's steps."""
        return ()

    def performs(self, operation: Operation) -> bool:
        """Return True if a step is to be executed; otherwise the observation of the last step is repeated."""
        del operation
        return True

    def ends(self) -> None:
        """Note that an example has ended without an error."""


class Lockstep(Generic[ObservationT, Files]):
    """Participants that execute operations together.

    Args:
        subjects: The implementations under test; each is compared with the dialect of its release.
        scratch: An empty directory for the participants' files, ideally in memory.
        releases: Releases for which a reference runs even without a subject.
        on_divergence: A callback that receives each divergence and returns a
            :class:`~conformance.lockstep.divergence.Decision`. By default, each divergence raises an error.
        attribute: True to count the clauses that the steps exercise.
        model: True to compare the reference with the abstract model, if the scope has one.

    Attributes:
        observers: The observers of all examples.
        failure: The divergence that ended the last example, until the next call of :meth:`first_failure`.
        watched: The name of the compared files after the last step (:meth:`Scope.named`).
        omitted: The names of operations that are not executed, as if no participant had them.
    """

    scope: Scope[Any, Any]

    def __init__(
        self,
        subjects: Iterable[Any],
        scratch: Path,
        *,
        releases: Iterable[str] = (),
        on_divergence: Callable[[Divergence], Decision | bool] = lambda _: Decision.RAISE,
        attribute: bool = True,
        model: bool = True,
    ) -> None:
        scope = self.scope
        self.on_divergence = on_divergence
        self.attribute = attribute
        self.statistics = Statistics(scope.key)
        self.operations: list[Operation] = []
        self.observers: list[Observer] = []
        self.omitted: frozenset[str] = frozenset()
        self._comparing: Participant | None = None
        self.failure: DivergenceError | None = None
        self._failed, self.watched = False, scope.no_file_name
        self._seen: list[tuple[ObservationT, Files]] = []  # of each group after the last step
        participants = [scope.participant(subject, scratch / str(number)) for number, subject in enumerate(subjects)]
        self.groups: list[Group[ObservationT, Files]] = grouped(scope, participants, releases, scratch, model=model)
        self._subjects = participants
        self._share()
        self._batch()
        for group in self.groups:
            self.statistics.clauses[scope.key(group.dialect.release)] = group.exercised
        ACTIVE_RUNS.add(self)

    def _share(self) -> None:
        """Determine which groups can share a reference."""
        self._references: SharedReferences[ObservationT, Files] = SharedReferences(self.scope, self.groups)

    def _batch(self) -> None:
        """Determine which participants execute steps in batches, and which after each step."""
        subjects = [group.subjects for group in self.groups]
        self._batched = BatchedExecution(self.scope, subjects, self._attribute_step, self._compare_batched, self._count)
        self._unbatched = [(subject, number) for number, group in enumerate(self.groups) for subject in group.unbatched]

    # -- the participants --------------------------------------------------------------------------------------

    @property
    def primary(self) -> Group[ObservationT, Files]:
        """The group that strategies use: the newest dialect."""
        return self.groups[-1]

    @property
    def executing(self) -> Participant | None:
        """The participant that is executing a step in Python; may be read from another thread."""
        return self._comparing or self._references.executing

    def step_of(self, participant: Participant) -> int:
        """Return the number of the step that a participant is executing; may be called from another thread."""
        step = self._batched.step_of(participant) if participant.batched else None
        return len(self.operations) - 1 if step is None else step.number

    @property
    def participants(self) -> Sequence[Participant]:
        """The subjects and the references."""
        return (*self._subjects, *self._references.all)

    @property
    def subjects(self) -> list[Implementation]:
        """The implementations under test that have not been removed."""
        return [participant.implementation for group in self.groups for participant in group.subjects]

    @property
    def subjects_compared(self) -> Sequence[Participant]:
        """The participants of all subjects, in the order in which they were given."""
        return self._subjects

    def participant(self, name: str) -> Participant:
        """Return the participant of a subject."""
        return next(each for each in self._subjects if each.implementation.name == name)

    def skip_example(self, name: str) -> None:
        """Exclude a participant from the example that has just begun."""
        participant = self.participant(name)
        participant.active = False
        participant.leave()

    def supports(self, operation: str) -> bool:
        """Return True if every participant has an operation, or if the harness executes it itself."""
        if operation in self.omitted:
            return False
        by_harness = operation in self.scope.corrupting_operations
        return by_harness or all(p.implementation.supports(operation) for p in self.participants)

    def accepts(self, operation: Operation) -> bool:
        """Return True if every participant accepts the arguments (:func:`takes`)."""
        return operation.name not in self.omitted and all(takes(p.implementation, operation) for p in self.participants)

    def can_execute(self, operations: Iterable[Operation]) -> bool:
        """Return True if every participant can execute all steps of a trace, according to its capabilities."""
        return all(map(self.accepts, operations))

    def count_at(self, level: str) -> None:
        """Set the level of the verdict at which divergences count; call it before the first operation."""
        del level

    @property
    def is_modelled(self) -> bool:
        """True if a reference is compared with an abstract model."""
        return any(group.model is not None for group in self.groups)

    def drop_models(self) -> None:
        """Stop comparing the references with models."""
        for group in self.groups:
            group.model = None

    def replace_reference(self, implementation: Implementation, directory: Path) -> None:
        """Replace the reference of the only group by an implementation, without a model."""
        (group,) = self.groups
        group.reference, group.model = self.scope.participant(implementation, directory), None
        self._share()
        self._batch()

    # -- an example --------------------------------------------------------------------------------------------

    def begin(self) -> None:
        """Begin an example, with every participant in an empty directory."""
        absent = [name for observer in self.observers for name in observer.begins()]
        self.operations = []
        self._failed, self.watched = False, self.scope.no_file_name
        self.statistics.examples += 1
        for participant in self._subjects:
            participant.begin()
        self._batched.begin()
        for group in self.groups:
            group.begin()
        self._references.begin()
        self._snapshot()
        for name in absent:
            self.skip_example(name)

    def end(self) -> None:
        """End the example and remove its files; after a failed step, nothing more is compared.

        Raises:
            DivergenceError: A batched participant diverges, or an implementation has failed to close its files.
        """
        try:
            if not self._failed:
                self.flush()
        finally:
            self._batched.discard_pending()
            for participant in self._subjects:
                participant.end(failed=self._failed)
            self._references.end()
        for participant in self.participants:
            text = participant.failure_between_examples()
            if text is not None and not self._failed:
                # With an additional operation, a replay reproduces the failure.
                self.operations.append(self.scope.close_operation)
                self._diverged(participant, "kidx", {"outcome": (OK[:2], Outcome(FAILURE, None, text))}, ())
        for observer in self.observers:
            observer.ends()

    def first_failure(self, perform: Callable[[], None]) -> DivergenceError | None:
        """Execute examples; return the divergence that ended them, even if it did not occur again, or None."""
        self.failure = None
        try:
            perform()
        except (DivergenceError, Flaky) as error:
            failure = self.failure or error
            if not isinstance(failure, DivergenceError):
                raise
            return failure
        return None

    @contextmanager
    def example(self) -> Iterator[None]:
        """Begin an example, and end it after the block; see :meth:`end`."""
        self.begin()
        try:
            yield
        finally:
            self.end()

    def flush(self) -> None:
        """Wait until every participant has executed every step.

        Raises:
            DivergenceError: A batched participant diverges, in any step since the last call, and the divergence counts.
        """
        self._batched.flush()

    def perform(self, operation: Operation) -> ObservationT:
        """Execute one step with every participant, and return the observation of the newest dialect's reference.

        An operation that is omitted has the outcome ``unsupported``.

        Raises:
            DivergenceError: A participant diverges, and the divergence counts. A batched participant may have diverged
                in an earlier step. After :meth:`flush`, no divergence is pending.
        """
        if not all(observer.performs(operation) for observer in self.observers):
            return self.groups[-1].observation
        if operation.name in self.omitted:
            seen: ObservationT = self.groups[-1].observation._replace(outcome=UNSUPPORTED)  # type: ignore[attr-defined]
            return seen
        try:
            return self._perform(operation)
        except BaseException:
            self._failed = True
            raise

    def _perform(self, operation: Operation) -> ObservationT:
        self.operations.append(operation)
        self.statistics.steps += 1
        if operation.name in self.scope.file_selecting_operations:
            name = self.scope.named(operation, self.watched)
            self._watch(name, reread=name != self.watched and operation.effect is Effect.OPENS)
        before = self._seen
        is_corruption = operation.name in self.scope.corrupting_operations
        if is_corruption:
            for group in self.groups:
                self.scope.corrupt(group, operation, self.watched)
            self._references.propagate_files()
        else:
            self._run_references(operation)
        self._snapshot()
        step = Step(len(self.operations) - 1, operation, self.watched, before, self._seen, is_corruption=is_corruption)
        if self._batched.kinds:
            self._batched.add(step)
        else:
            self._attribute_step(step)
            self._count((step,))
        if not is_corruption:
            for subject, number in self._unbatched:
                if subject.active:
                    self._compare_subject(subject, number, step)
        return self.groups[-1].observation

    def _run_references(self, operation: Operation) -> None:
        """Execute an operation with the references."""
        self._references.perform(operation, self.operations)

    def _snapshot(self) -> None:
        """Store the current observations and files of the references for the next step."""
        self._seen = [(group.observation, group.files) for group in self.groups]

    def _watch(self, name: Any, *, reread: bool) -> None:
        """Compare the files of another name from now on; read them again if the operation opens existing files."""
        self.watched = name
        for participant in self.participants:
            if not participant.batched:
                participant.watch(name)
        if reread:
            self._references.reread()
            self._snapshot()

    # -- the references ----------------------------------------------------------------------------------------

    def _attribute_step(self, step: Step) -> None:
        """Determine the clauses that a step exercises, and compare the references with their models."""
        if step.clauses is not None:
            return
        scope, operation, last = self.scope, step.operation, self.groups[-1]
        known: dict[Any, Any] = {}
        found, promised, hidden = list[tuple[str, ...]](), list[bool](), list[tuple[str, ...]]()
        for group, before, after in zip(self.groups, step.before, step.expected, strict=True):
            prediction = None if group.model is None else group.model.perform(operation, file_bytes=before[1])
            clauses: tuple[str, ...] = ()
            if self.attribute:
                if not step.is_corruption:
                    clauses = scope.clauses_of(operation, group.dialect, group.tracked, before, after, known)
                    if group is last:
                        self.statistics.kinds[operation.name, after[0].outcome.error, clauses] += 1
                    promised.append(scope.is_reachable_by_broker(operation, group.tracked, after))
                    hidden.append(scope.hidden(group.tracked, operation))
                scope.track(group.tracked, operation, after[0])
            found.append(clauses)
            if prediction is not None and not step.is_corruption:
                pairs = compare_with_model(prediction, after)
                if pairs:
                    self._diverged(group.reference, "model", pairs, clauses, step.number)
        step.clauses, step.promised, step.hidden = found, promised, hidden

    def check_invariant(self, condition: bool, invariant: str, state: Any) -> None:
        """Check an invariant of the reference itself.

        Raises:
            DivergenceError: The invariant is violated.
        """
        if not condition:
            self._diverged(self.primary.reference, "model", {"state": (invariant, state)}, ())

    def _count(self, steps: Sequence[Step]) -> None:
        """Count the operations and the clauses of steps that every participant has executed."""
        if self.attribute:
            executed = [each.operation.name for each in steps if each.expected and not each.is_corruption]
            for number, group in enumerate(self.groups):
                group.executed.update(executed)
                group.exercised.update(chain.from_iterable(step.clauses[number] for step in steps if step.clauses))

    # -- the subjects ------------------------------------------------------------------------------------------

    def _compare_batched(self, participant: Participant, group: int, step: Step) -> None:
        """Compare a batched participant that has stopped after a step."""
        participant.watch(step.name)
        if step.listings:
            pairs = {"bytes": (step.listings[group], participant.listing())}
            self._diverged(participant, "kidx", pairs, (), step.number)
        else:
            self._compare_subject(participant, group, step)

    def _compare_subject(self, participant: Participant, group: int, step: Step) -> None:
        """Compare a subject with the reference of its group."""
        if participant.crashed and _has_crashed(
            participant.crashed, participant.survived, step, group, self.scope.operations
        ):
            participant.skipped.add(step.number)
            participant.exclude_step(step.clauses[group] if step.clauses else ())
            participant.operations.exclude((step.operation.name,))
            return
        self._comparing = participant
        try:
            actual = participant.perform(step.operation)
        finally:
            self._comparing = None
        if participant.crashed is not None and actual.outcome.error == FAILURE:
            participant.crashed.add(_kind_of(step, group))
        elif participant.crashed:
            participant.survived.add(_kind_of(step, group)[:2])
        expected, reference = step.expected[group], self.groups[group].reference
        expected, found = participant.normalize(step.operation, expected, (actual, participant.read()), reference)
        if participant.history and not participant.batched:
            self.flush()
            self.scope.follow(participant.history, step.operation, expected[0], self.groups[group].tracked)
        if step.clauses and (foreign := participant.foreign_clauses(step.clauses[group])):
            participant.exclude_step(foreign)
        if expected == found:
            participant.history.clear()  # the state and the files are as promised again
            return
        who = participant.implementation
        error = found[0].outcome.error
        if self.statistics.record_dropout(who.name, step.operation.name, error):
            participant.drop_out(step.operation.name if error == "unsupported" else "")
            return
        differing = compare_with_reference(expected, found, speaks_kafka=who.speaks_kafka)
        if not participant.batched:
            self.flush()  # this attributes the step, and reports earlier divergences of batched participants first
        pairs = {aspect: differing[aspect] for aspect in self.scope.aspects}
        clauses, seen = step.clauses[group] if step.clauses else (), (step.before[group], step.expected[group])
        if clauses:
            dialect = self.groups[group].dialect
            clauses = self.scope.implicated_clauses(clauses, step.operation, dialect, seen, expected, found)
        promised = step.is_promised(group) and participant.is_promised()
        promised = promised and self.scope.is_of_a_broker(step.operation, clauses, seen, found)
        hidden = step.hidden[group] if step.hidden else ()
        rests_on = partial(self.scope.rests_on, participant.history, hidden, expected=expected[0], actual=found[0])
        more = {"named": partial(self.scope.by_name, name=step.name), "promised": promised, "rests_on": rests_on}
        more["carried"] = partial(self.scope.carried, participant.history)
        more["reports_state"] = found[0].state is not None
        more["known"] = [self.scope.entries_of(each[0]) for each in (expected, found)]
        self._diverged(participant, "kidx", pairs, participant.implicated_clauses(clauses), step.number, **more)

    def compare_directories(self) -> None:
        """Check that every participant has the same files, and no others.

        Raises:
            DivergenceError: A participant has an extra file, or lacks one.
        """
        listings = self._references.listings()
        for group, expected in zip(self.groups, listings, strict=True):
            for participant in group.unbatched:
                if participant.active and (actual := participant.comparable_listing(expected)) != expected:
                    self._diverged(participant, "kidx", {"bytes": (expected, actual)}, ())
        if self._batched.kinds:
            last = len(self.operations) - 1
            self._batched.add(Step(last, self.operations[last], self.watched, (), (), listings, clauses=()))

    def _diverged(
        self,
        participant: Participant,
        against: str,
        pairs: dict[str, tuple[Any, Any]],
        clauses: tuple[str, ...],
        number: int | None = None,
        **more: Any,
    ) -> None:
        """Report a divergence if an aspect differs in a step, by default the last one; raise it if it counts."""
        number = len(self.operations) - 1 if number is None else number
        who = (participant.implementation.name, participant.implementation.release)
        divergence = build_divergence(number, self.operations[number], who, pairs, clauses, against=against, **more)
        if divergence is None:
            return
        if not participant.batched:
            self.flush()  # divergences of batched participants in earlier steps come first
        if against == "kidx" and (decided := self.on_divergence(divergence)):
            participant.active = decided == Decision.CONTINUE
            if not divergence.counts("must"):
                self.scope.remember(participant.history, divergence)
            for clause in clauses:
                self.statistics.dropped[divergence.participant, clause] += 1
            return
        self.failure = DivergenceError(divergence, self.operations[: number + 1])
        self._failed = True
        raise self.failure


def _has_crashed(crashed: set[Any], survived: set[Any], step: Step, group: int, operations: Mapping[str, Op]) -> bool:
    """Return True if a step has no effect, and an implementation has crashed after one of its kind.

    A crash concerns every class of arguments, except for classes with which the operation has succeeded since.
    An unchanged state does not show that, as after a close: the operation has to be a read, or to be rejected.
    """
    kind = _kind_of(step, group)
    if kind not in crashed and (kind[:2] in survived or all(each[1:] != kind[1:] for each in crashed)):
        return False
    (before, files), (after, files_after) = step.before[group], step.expected[group]
    operation = operations.get(step.operation.name)
    has_no_effect = after.outcome.error is not None or (operation is not None and operation.looks)
    return has_no_effect and before.state == after.state and files == files_after


def _kind_of(step: Step, group: int) -> tuple[Any, ...]:
    """Return what steps with similar arguments share: class of each argument, operation, the error, and the clauses.

    The clauses say how the arguments are related to the state, such as a target before the first entry. They do not say
    that a number is negative or large, at which programs crash as well.
    """
    (name, args), outcome = step.operation, step.expected[group][0].outcome
    return tuple(map(_class_of, args)), name, outcome.error, step.clauses[group] if step.clauses else ()


def _class_of(argument: Any) -> Any:
    """Return the class of an argument: of a number its sign and whether it needs more than 31 bits."""
    if isinstance(argument, int):
        return (argument > 0) - (argument < 0), abs(argument) >> 31 > 0
    return bool(argument)
