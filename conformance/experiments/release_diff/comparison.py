"""Comparison of the behaviour of two Kafka releases, or builds of Kafka, by all state machines.

Each machine searches in rounds of examples (:class:`Search`), and what it finds is a :class:`Difference` with its
trace.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from conformance.clauses import family
from conformance.errors import ToolError
from conformance.events import Progressed
from conformance.expectations import ExpectationTracker, load_expectations
from conformance.experiments.release_diff.error_texts import (
    TextChange,
    TextCollector,
    last_implicated,
    separating,
    shortened,
)
from conformance.experiments.release_diff.execution import RecordingProxy, ReleaseRunner, can_execute
from conformance.experiments.release_diff.sides import PROFILE
from conformance.lockstep import DivergenceError
from conformance.lockstep.divergence import Decision, can_continue, failure_json
from conformance.lockstep.lockstep import Observer
from conformance.machines import MACHINES
from conformance.runs.chunks import SEED_OF_ROUND, run_chunk
from conformance.runs.divergence_event import new_trace
from conformance.runs.profiles import Profile, round_of
from conformance.runs.replay import load_regression_traces, replay_operations
from conformance.runs.sameness import Sameness
from conformance.runs.shrinking import shrink
from conformance.scratch import scratch_directory
from conformance.verdict import Comparison as Compared

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from conformance.events import Event, Sink
    from conformance.experiments.release_diff.error_texts import ImplicatedClauses, Pattern, Wording
    from conformance.experiments.release_diff.execution import ExecutionRecord
    from conformance.experiments.release_diff.sides import Plan
    from conformance.kafka.jar_fetch import Progress
    from conformance.lockstep import Divergence
    from conformance.operations import Json, Operation

STEPS_PER_EXAMPLE: Final = (5, 10, *(PROFILE.steps,) * 4)
"""Numbers of steps in an example. After a round without a new difference, the search continues with the next number;
after the last number, it ends, unless more examples are requested. Examples of five steps find most differences and
shrink fastest. A difference that occurs in one of a hundred long examples is found in 49 of 50 searches.
"""


class Search(Observer):
    """Search by one state machine for differences between two sides.

    Args:
        machine: The name of the state machine.
        plan: The plan. The new side's classes are compared with the reference in the old side's dialect. If the old
            side is a build, its classes are the reference instead, because they may differ from kidx.
        known: The places of all differences that machines have found so far; the search adds new ones.
        scratch: An empty directory.
        sink: A callback that receives progress events.
        progress: A callback that is called while jars are downloaded.

    Attributes:
        subject: The new side's classes, which are compared with the reference in the old side's dialect.
        control: The old side's classes. If they diverge from the same reference, the rest of the example does not
            count.
        runners: Runners of each side alone, for the descriptions of differences.
        not_replayed: The number of regression traces that were not replayed before the time limit.
        missing: What was not executed before the time limit.
    """

    def __init__(
        self,
        machine: str,
        plan: Plan,
        known: dict[Sameness, dict[Place, None]],
        scratch: Path,
        sink: Sink,
        progress: Progress | None = None,
    ) -> None:
        old, new = plan.sides
        self.name, self.plan, self.old, self.new = machine, plan, old.release, new.release
        self.known = known
        self.sink = sink
        kind = MACHINES[machine]
        self.control = RecordingProxy(kind.subject(old.specification, old.release, progress))
        self.texts = TextCollector(self.control, lambda: self.lockstep.operations)
        self.subject = self.texts.newer = RecordingProxy(
            kind.subject(new.specification, new.release, progress), old.release, self.texts
        )
        self.subject.control = self.control
        self.runners = (
            ReleaseRunner(machine, old, scratch / "old", progress),
            ReleaseRunner(machine, new, scratch / "new", progress),
        )
        self.lockstep = kind.new_lockstep(
            [self.subject] if old.is_build else [self.control, self.subject],
            scratch / "both",
            releases=[old.release],
            on_divergence=self._decide,
        )
        if old.is_build:
            self.lockstep.replace_reference(self.control, scratch / "old-build")
        self.lockstep.observers.append(self)
        self.bound: Any = kind.bind(self.lockstep)
        self._ledger = ExpectationTracker(load_expectations())
        self._raises_all = False  # True while a difference is shrunk: every divergence then ends the example
        # Numbers of examples.
        self._control_diverged = -1  # the last in which the control diverged
        self._dropped_out = -1  # the last whose remaining steps are not compared
        self._first_new: int | None = None  # the first of the round with a new difference
        self.not_replayed = 0
        self.missing: list[str] = []

    # -- known differences -------------------------------------------------------------------------------------

    def _is_known(self, divergence: Divergence) -> bool:
        """Return True if a difference is known, or if it does not count because the control has diverged."""
        if self._raises_all:
            return False
        example = self.lockstep.statistics.examples
        if divergence.participant == self.control.name:
            self._control_diverged = example
            return self._ledger.match(divergence.clauses, self.name, "jvm", self.old) is not None
        if self._control_diverged == example:
            self._dropped_out = example
            return True
        places = self.known.get(self._key(divergence, self.lockstep.operations))
        if places is None:
            self._first_new = self._first_new or example
            return False
        places[place_of(self.name, divergence)] = None
        return True

    def _decide(self, divergence: Divergence) -> Decision:
        """Return the decision on a difference: raise it, continue, or drop the new side from the example."""
        if not self._is_known(divergence):
            return Decision.RAISE
        return Decision.CONTINUE if self._can_continue(divergence) else Decision.SKIP_EXAMPLE

    def _can_continue(self, divergence: Divergence) -> bool:
        """Return True if the new side can continue after a known difference."""
        if divergence.participant == self.control.name or self._dropped_out == self.lockstep.statistics.examples:
            return False
        if not can_continue(divergence):
            self._dropped_out = self.lockstep.statistics.examples
            return False
        return True

    def performs(self, operation: Operation) -> bool:
        """Return False if the new side has dropped out of the example: then there is nothing to compare."""
        del operation
        return bool(self._dropped_out != self.lockstep.statistics.examples)

    def _key(self, divergence: Divergence, operations: Sequence[Operation]) -> Sameness:
        """Return the key of equal differences: the separating clauses, or the operation, the aspects and outcomes."""
        clauses = separating(divergence.clauses, self.new)
        steps = self.runners[1].perform(operations).clauses
        if len(steps) == len(operations):
            clauses = (*clauses, *separating(steps[-1], self.old))
        if clauses:
            return Sameness(self.subject.name, " ".join(sorted(set(map(family, clauses)))))
        aspect = " ".join((*divergence.aspects, *(str(side.error) for side in divergence.outcomes or ())))
        return Sameness(self.subject.name, "", divergence.operation.name, aspect, frozenset({self.name}))

    # -- rounds ------------------------------------------------------------------------------------------------

    def run(self, limit: float | None) -> list[Difference]:
        """Replay the regression traces, then run rounds, and return the new differences.

        Args:
            limit: The time limit in seconds, or None. At least one regression trace and one round are executed.

        Raises:
            ToolError: The old release's own classes differ from their reference, so that no comparison is possible.
        """
        started = time.monotonic()

        def is_late() -> bool:
            return limit is not None and time.monotonic() - started >= limit

        seed, wanted = self.plan.seed, self.plan.max_examples
        found = self._replay_regression_traces(seed, is_late) if self.plan.replays else []
        has_fixed_number, wanted = wanted is not None, PROFILE.examples if wanted is None else wanted
        done = level = rounds = 0
        while done < wanted and (has_fixed_number or level < len(STEPS_PER_EXAMPLE)):
            if rounds and is_late():
                self.missing.append(f"the search of the {self.name} machine was cut short (--max-time)")
                break
            planned = min(round_of(self.name), wanted - done)
            before = self.lockstep.statistics.examples
            steps = STEPS_PER_EXAMPLE[min(level, len(STEPS_PER_EXAMPLE) - 1)]
            new = self._round(replace(PROFILE, steps=steps), planned, seed + rounds * SEED_OF_ROUND)
            rounds += 1
            if new is None:
                done, level = done + planned, level + 1
            else:
                found.append(new)
                done += max(1, min(planned, (self._first_new or 0) - before))
            share = done / wanted if has_fixed_number else max(done / wanted, level / len(STEPS_PER_EXAMPLE))
            self.sink(Progressed(self.name, self.lockstep.statistics.examples, self.lockstep.statistics.steps, share))
        return found

    def _replay_regression_traces(self, seed: int, is_late: Callable[[], bool]) -> list[Difference]:
        """Replay the regression traces; one trace may find several differences."""
        found: list[Difference] = []
        traces = list(load_regression_traces(self.name))
        for number, trace in enumerate(traces):
            if number and is_late():
                self.not_replayed += 1
                continue
            replay = partial(replay_operations, self.lockstep, trace.operations)
            while (failure := self.lockstep.first_failure(replay)) is not None:
                found.append(self._new(failure, seed))
        if self.not_replayed:
            counts = f"{self.not_replayed} of {len(traces)}"
            self.missing.append(f"{counts} regression traces of the {self.name} machine not run (--max-time)")
        return found

    def _round(self, profile: Profile, examples: int, seed: int) -> Difference | None:
        """Run Hypothesis once; return a new difference, or None."""
        self._first_new = None
        failure = self.lockstep.first_failure(lambda: run_chunk(self.bound, profile.settings(examples), seed, examples))
        return None if failure is None else self._new(failure, seed)

    def _new(self, failure: DivergenceError, seed: int) -> Difference:
        """Shrink a new difference, save its trace, and add it to the known differences."""
        divergence = failure.divergence
        if divergence.participant != self.subject.name:
            against = "the abstract model" if divergence.against == "model" else "kidx"
            raise ToolError(
                f"{divergence.participant} itself diverges from {against} at {divergence.operation}: nothing can be "
                f"compared with {self.old}; find the divergence with conformance run --kafka {self.old}"
                f" --machine {self.name}"
            )
        key = self._key(divergence, failure.operations)
        operations = failure.operations
        alone, among_known = (partial(self._reproduce, key=key, alone=each) for each in (True, False))
        short = shrink(operations, alone) or shrink(operations, among_known)
        if short is not None:
            operations, divergence = short.operations, short.result
        self.known.setdefault(key, {})[place_of(self.name, divergence)] = None
        unobserved: tuple[str, ...] = ()
        if divergence.aspects == ("state",):
            unobserved = tuple(filter(None, divergence.fields))
            self.subject.unobserved.update(unobserved)
        old, new = (performer.perform(operations) for performer in self.runners)
        implicated = last_implicated(self.old, self.new, old.clauses, new.clauses)
        title = f"differ in {divergence.operation.name} ({', '.join(divergence.aspects)})"
        trace = self.save(operations, title, seed, failure_json(divergence))
        return Difference(self.name, divergence, operations, implicated, old, new, trace, unobserved, key)

    def save(self, operations: Sequence[Operation], title: str, seed: int, failure: Json | None = None) -> Path:
        """Save a trace of both sides, and return its path."""
        title = f"{self.plan.old} and {self.plan.new} {title}"
        trace = new_trace(self.name, self.old, operations, failure, title, seed=seed, profile=PROFILE.name)
        return trace.save(self.plan.traces)

    def _reproduce(self, operations: Sequence[Operation], key: Sameness, *, alone: bool) -> Divergence | None:
        """Return the difference if the last of the operations differs with the same key.

        Args:
            alone: True if no earlier operation may differ; else earlier ones may have known differences.
        """
        self._raises_all = alone
        try:
            with self.lockstep.example():
                for operation in operations:
                    if not can_execute(self.lockstep, operation):
                        return None
                    self.lockstep.perform(operation)
        except DivergenceError as error:
            divergence = error.divergence
            is_own = divergence.participant == self.subject.name and divergence.step == len(operations) - 1
            return divergence if is_own and self._key(divergence, operations) == key else None
        finally:
            self._raises_all = False
        return None


@dataclass(frozen=True)
class Comparison:
    """Result of a comparison.

    Attributes:
        differences: The differences, in the order in which they were found.
        texts: The errors whose texts differ.
        steps: The number of operations.
        seconds: The duration.
        not_replayed: The number of regression traces that were not replayed before the time limit.
        missing: Descriptions of what was not executed before the time limit.
    """

    plan: Plan
    differences: tuple[Difference, ...]
    texts: tuple[TextChange, ...]
    examples: int
    steps: int
    seconds: float
    not_replayed: int = 0
    missing: tuple[str, ...] = ()

    def compared(self, differences: int) -> Compared:
        """Return what was compared, for the verdict; ``differences`` is the number of those that count."""
        return Compared(self.steps, differences, self.missing)

    @property
    def all(self) -> tuple[Difference | TextChange, ...]:
        """All differences, then all changed texts."""
        return (*self.differences, *self.texts)

    @property
    def differs(self) -> bool:
        """True if anything differs."""
        return bool(self.differences or self.texts)


def _ignore(_: Event) -> None:
    pass


def compare(plan: Plan, sink: Sink = _ignore, progress: Progress | None = None) -> Comparison:
    """Find the differences between the classes of two releases.

    Args:
        sink: A callback that receives progress events.
        progress: A callback that is called while jars are downloaded.

    Raises:
        ToolError: Java or jars are missing, or the old release diverges from its own reference.
    """
    started = time.monotonic()
    known: dict[Sameness, dict[Place, None]] = {}
    differences: list[Difference] = []
    texts: dict[Pattern, TextChange] = {}
    examples = steps = not_replayed = 0
    missing: list[str] = []
    for number, machine in enumerate(plan.machines):
        limit = None
        if plan.max_time is not None:
            left = plan.max_time - (time.monotonic() - started)
            limit = max(left, 0.0) / (len(plan.machines) - number)
        with scratch_directory() as scratch:
            search = Search(machine, plan, known, scratch, sink, progress)
            differences += search.run(limit)
            for pattern, example in search.texts.found.items():
                change = None if pattern in texts else _text_change(search, pattern, example)
                if change is not None:
                    texts[pattern] = change
            examples += search.lockstep.statistics.examples
            steps += search.lockstep.statistics.steps
            not_replayed += search.not_replayed
            missing += search.missing
    seconds = time.monotonic() - started
    found = _merged(differences, known), tuple(texts.values())
    return Comparison(plan, *found, examples, steps, seconds, not_replayed, tuple(missing))


def _merged(differences: list[Difference], known: dict[Sameness, dict[Place, None]]) -> tuple[Difference, ...]:
    """Merge differences with the same clauses, because one change of Kafka may have effects in several operations.

    Args:
        differences: The differences in the order in which they were found.
        known: The machine, operation and aspects of all steps with a difference, by the difference's identity.
    """
    merged: list[Difference] = []
    for one in differences:
        families, places = one.implicated.families, known[one.identity]
        same = next((i for i, other in enumerate(merged) if families and other.implicated.families == families), None)
        if same is None:
            merged.append(replace(one, also=tuple(place for place in places if place != one.place)))
        else:
            first = merged[same]
            also = {place: None for place in (*first.also, *places) if place != first.place}
            merged[same] = replace(first, also=tuple(also), more=(*first.more, one.trace))
    return tuple(merged)


def _text_change(search: Search, pattern: Pattern, example: tuple[Wording, tuple[Operation, ...]]) -> TextChange | None:
    """Return a change of an error text with a shrunk example; None if it does not occur again."""
    short = shortened(*search.runners, example[1], pattern)
    if short is None:
        return None
    operations, (wording, implicated) = short
    title = f"have different error texts of {operations[-1].name}"
    return TextChange(search.name, wording, operations, implicated, search.save(operations, title, search.plan.seed))


Place = tuple[str, str, tuple[str, ...]]
"""Place of a difference: state machine, operation and aspects (``outcome``, ``state`` or ``bytes``)."""


def place_of(machine: str, divergence: Divergence) -> Place:
    """Return the place of a difference."""
    return machine, divergence.operation.name, divergence.aspects


@dataclass(frozen=True)
class Difference:
    """One behaviour in which two releases differ.

    Attributes:
        machine: The state machine that found the difference.
        divergence: The divergence of the new release from the old release's reference, in the last operation.
        operations: The shrunk trace.
        implicated: The clauses that separate the releases at this step; without any, the difference is a finding.
        old: The execution of the trace by the old release.
        new: The execution of the trace by the new release.
        unobserved: Fields of the state that the rest of the search does not compare. Otherwise, a difference that is
            only in the state would end every example in which it occurs.
        identity: The key of equal differences: the families of the clauses that separate the releases at this step;
            without such clauses the operation, the aspects and the kinds of outcome.
        also: Machine, operation and aspects of other steps with the same difference.
        more: Other traces with this difference, in steps that its clauses do not cover.
    """

    machine: str
    divergence: Divergence
    operations: tuple[Operation, ...]
    implicated: ImplicatedClauses
    old: ExecutionRecord
    new: ExecutionRecord
    trace: Path
    unobserved: tuple[str, ...]
    identity: Sameness
    also: tuple[Place, ...] = ()
    more: tuple[Path, ...] = ()

    @property
    def place(self) -> Place:
        """Machine, operation and aspects of the step that differs."""
        return place_of(self.machine, self.divergence)
