"""Run of one machine with all implementations of a plan, in one process.

A divergence does not end the run: it is recorded, and the participant continues with the next step if its state and its
files are right, and otherwise with the next example. The examples of a seed are therefore the same for all
implementations, and one divergence does not hide the others.

Programs for releases with the same rules take turns in executing examples. A program that is connected by a pipe runs
once per release, and pipes take nearly all of a run's time. The expected behaviour of a program depends only on the
rules of its release. A generated example is therefore executed by one of the programs with the same rules, and the next
example by the next program. All programs execute regression traces.
"""

from __future__ import annotations

import time
from collections import Counter
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

from conformance.clauses import load_clauses
from conformance.clauses.machines import driven_releases
from conformance.errors import NotDrivenError
from conformance.implementations.forms import is_program, is_server
from conformance.lockstep.divergence import Decision, can_continue
from conformance.lockstep.lockstep import Observer
from conformance.machines import MACHINES
from conformance.runs.chunks import CHUNK, FAILURES, REGRESSION_TRACES, Chunk, ChunkResult, run_chunk
from conformance.runs.divergences.signatures import signature_detail, signature_of
from conformance.runs.gc_tuning import infrequent_gc
from conformance.runs.replay import load_regression_traces, replay_operations

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Sequence
    from pathlib import Path

    from conformance.expectations import ExpectationTracker
    from conformance.implementations.protocol import Implementation
    from conformance.kafka.jar_fetch import Progress
    from conformance.lockstep import Lockstep
    from conformance.lockstep.divergence import Divergence
    from conformance.lockstep.participant import Participant
    from conformance.operations import Operation
    from conformance.operations.trace import Trace
    from conformance.runs.plan import Plan


class TurnOrder:
    """Order in which programs take turns to execute examples.

    Args:
        subjects: The ``-i`` argument and the participant of each.
        rules: A function that returns equal keys for releases that behave alike.
    """

    def __init__(self, subjects: Iterable[tuple[str, Implementation]], rules: Callable[[str], Hashable]) -> None:
        alike: dict[Hashable, list[str]] = {}
        for specification, subject in subjects:
            if is_program(specification):
                alike.setdefault((specification, rules(subject.release)), []).append(subject.name)
        self._alike = [names for names in alike.values() if len(names) > 1]
        self._partners = {name: len(names) for names in self._alike for name in names}

    def waiting(self, number: int) -> set[str]:
        """Return the names of the programs that do not execute the example with this number."""
        return {name for names in self._alike for place, name in enumerate(names) if place != number % len(names)}

    def partners(self, name: str) -> int:
        """Return the number of programs that take turns with a participant, including itself."""
        return self._partners.get(name, 1)


@contextmanager
def machine_run(
    plan: Plan, machine: str, scratch: Path, ledger: ExpectationTracker, progress: Progress | None = None
) -> Iterator[MachineRun]:
    """Provide a run of one machine, with rare garbage collections."""
    with infrequent_gc():
        yield MachineRun(plan, machine, scratch, ledger, progress)


class MachineRun(Observer):
    """One machine with all implementations of a plan.

    Args:
        scratch: An empty directory.
        progress: A callback that receives the progress of downloads.

    Attributes:
        subjects: The ``-i`` argument and the participant of each implementation, in the order of the plan.
        unsupported: The ``-i`` arguments and releases that this machine cannot test, with the reason.
        turn_order: The schedule of the programs that take turns.
        total: The results of all chunks so far.
        started: The time of creation on the monotonic clock.
        max_failures: The score at which a participant drops out, see :attr:`ChunkResult.dropout_scores`.
    """

    def __init__(
        self, plan: Plan, machine: str, scratch: Path, ledger: ExpectationTracker, progress: Progress | None = None
    ) -> None:
        self.plan = plan
        self.name = machine
        self.scratch = scratch
        self.ledger = ledger
        self.machine = MACHINES[machine]
        self.subjects: list[tuple[str, Implementation]] = []
        self.unsupported: dict[tuple[str, str], NotDrivenError] = {}
        for specification in plan.implementations:
            if not is_server(specification):
                self._add_subjects(specification, progress)
        self.lockstep: Lockstep = self.machine.new_lockstep(
            [subject for _, subject in self.subjects],
            scratch / "run",
            releases=driven_releases(machine, plan.releases),
            on_divergence=self._on_divergence,
        )
        if not plan.model:
            self.lockstep.drop_models()
        self.lockstep.count_at(plan.level)
        self.lockstep.omitted = plan.omitted(machine)
        self.turn_order = TurnOrder(self.subjects, self.lockstep.scope.rules)
        self._ends: dict[str, int] = {}  # for each participant that left the example, its number of survived steps
        self._waiting: set[str] = set()  # the programs that skip the current example because it is not their turn
        self._number = self._steps_before = 0  # of the example, and of all steps before it
        self._specifications = {subject.name: specification for specification, subject in self.subjects}
        self._participants = {name: self.lockstep.participant(name) for name in self._specifications}
        self.lockstep.observers.append(self)
        # A machine is bound once, so that the examples do not change if a participant turns out to lack an operation.
        self._bound = self.machine.bind(self.lockstep)
        self._settings = plan.profile.settings(CHUNK)
        self.max_failures = 1 if plan.stop_at_first else FAILURES
        self._dropout_scores: Counter[str] = Counter()
        self._dropped_out: set[str] = set()
        self._evidence = ChunkResult()  # of the current chunk
        self.total = ChunkResult()
        self.started = time.monotonic()

    def _add_subjects(self, specification: str, progress: Progress | None) -> None:
        """Add each release of an implementation that the machine can test."""
        for release in self.plan.releases:
            try:
                self.subjects.append((specification, self.machine.subject(specification, release, progress)))
            except NotDrivenError as error:
                self.unsupported[specification, release] = error

    def specification(self, participant: str) -> str:
        """Return the ``-i`` argument of a participant; ``jvm`` for the reference and the model, which have none."""
        return self._specifications.get(participant, "jvm")

    # -- chunks -------------------------------------------------------------------------------------------------

    def run_chunk(self, chunk: Chunk, is_time_up: Callable[[], bool] = lambda: False) -> ChunkResult:
        """Run the examples of a chunk, at least one."""

        def is_over() -> bool:
            return is_time_up() and self.lockstep.failure is None

        def perform() -> None:
            self._evidence.cut = not run_chunk(self._bound, self._settings, chunk.seed, chunk.examples, is_over)

        return self._collect_result(chunk.number, perform)

    def replay_trace(self, trace: Trace) -> ChunkResult:
        """Execute one trace as an example, which keeps its divergences."""
        return self._collect_result(REGRESSION_TRACES, lambda: replay_operations(self.lockstep, trace.operations))

    def replay_regression_traces(
        self, is_time_up: Callable[[], bool] = lambda: False
    ) -> tuple[ChunkResult, tuple[str, ...], tuple[str, ...]]:
        """Replay the regression traces until the time is up, but at least one.

        Returns:
            The result, the ids of the executed traces, and the ids of the traces that diverged.
        """
        performed: list[str] = []
        differing: list[str] = []

        def perform() -> None:
            for trace in load_regression_traces(self.name):
                if not self.lockstep.can_execute(trace.operations):
                    continue
                if performed and is_time_up():
                    self._evidence.not_replayed += 1
                    continue
                before = self._divergence_count
                performed.append(trace.id)
                try:
                    replay_operations(self.lockstep, trace.operations)
                finally:
                    if self._divergence_count > before or self.lockstep.failure is not None:
                        differing.append(trace.id)

        evidence = self._collect_result(REGRESSION_TRACES, perform)
        return evidence, tuple(performed), tuple(differing)

    @property
    def _divergence_count(self) -> int:
        """The number of divergences in the current chunk."""
        return sum(bucket.count for bucket in self._evidence.buckets.values())

    def _collect_result(self, number: int, perform: Callable[[], None]) -> ChunkResult:
        """Execute a function and return its result, without earlier results."""
        statistics = self.lockstep.statistics
        examples, steps, kinds = statistics.examples, statistics.steps, Counter(statistics.kinds)
        credited = {name: participant.credited for name, participant in self._participants.items()}
        reached = {name: Counter(participant.clauses.counts) for name, participant in self._participants.items()}
        executed = {name: participant.executed for name, participant in self._participants.items()}
        for participant in self._participants.values():
            participant.unsupported.clear()
            participant.crashed = None if participant.batched or number == REGRESSION_TRACES else set()
            participant.survived.clear()
            participant.skipped.clear()
            excused_by(participant).clear()
        self._ends.clear()
        self._evidence = evidence = ChunkResult(number)
        self._dropped_out = {name for name, times in self._dropout_scores.items() if times >= self.max_failures}
        self.lockstep.operations.clear()
        self._number = number * CHUNK
        if (failure := self.lockstep.first_failure(perform)) is not None:
            evidence.broken = failure.divergence, failure.operations
        self._note_waiting()
        self._dropout_scores.update(evidence.dropout_scores)
        evidence.examples, evidence.steps = statistics.examples - examples, statistics.steps - steps
        evidence.kinds = Counter(statistics.kinds) - kinds
        if number != REGRESSION_TRACES:
            evidence.drawn, evidence.drawn_kinds = evidence.examples, evidence.kinds.copy()
        for name, participant in self._participants.items():
            evidence.credited[name] = participant.credited - credited[name]
            evidence.reached[name] = set(participant.clauses.counts - reached[name])
            evidence.executed[name] = participant.executed - executed[name]
            evidence.lacking[name] = set(participant.unsupported)
            evidence.excused[name] = Counter(excused_by(participant))
        return evidence

    def begins(self) -> Collection[str]:
        """Return the programs whose turn it is not, and the participants that have dropped out."""
        self._note_waiting()
        if self._evidence.number != REGRESSION_TRACES:
            self._waiting = self.turn_order.waiting(self._number)
        self._number += 1
        return self._dropped_out | self._waiting

    def _note_waiting(self) -> None:
        """Count the finished example for the participants that did not take part in it.

        For programs that did, note the operations that they have survived, and those that they did not get.
        """
        operations = self.lockstep.operations
        for name, participant in self._participants.items():
            if participant.batched or name in self._waiting or name in self._dropped_out:
                continue
            self._evidence.requested.setdefault(name, set()).update(each.name for each in operations)
            names = [each.name.removeprefix("bulk_") for each in operations[: self._ends.get(name)]]
            avoided = Counter(names[number] for number in participant.skipped if number < len(names))
            self._evidence.avoided.setdefault(name, Counter()).update(avoided)
            done = Counter(names) - avoided
            self._evidence.survived.setdefault(name, set()).update(done)
        self._ends.clear()
        steps = self.lockstep.statistics.steps
        for name in self._waiting:
            waited = self._evidence.waited.setdefault(name, Counter())
            waited.update(examples=1, steps=steps - self._steps_before)
        self._waiting, self._steps_before = set(), steps

    # -- differences -------------------------------------------------------------------------------------------

    def _on_divergence(self, divergence: Divergence) -> Decision:
        """Record a divergence; raise it only if it is a divergence of the reference itself."""
        participant = self._participants[divergence.participant]
        specification = self._specifications[divergence.participant]
        evidence, clauses = self._evidence, divergence.clauses
        name = divergence.participant
        if (known := self._known(divergence, specification)) is not None:
            evidence.expected.setdefault(name, set()).update(known)
        elif not divergence.counts(self.plan.level):
            below = {clause for clause in clauses if load_clauses()[clause].level != "MUST"}
            evidence.tolerated.setdefault(name, set()).update(below)
        else:
            evidence.buckets.record(*self._without_skipped(divergence, participant))
            if divergence.is_failure:
                evidence.note_failure(divergence)
            if self.plan.stop_at_first:
                evidence.dropout_scores[divergence.participant] = 1
            if evidence.dropout_scores.get(divergence.participant, 0) >= self.max_failures:
                self._dropped_out.add(divergence.participant)
        if divergence.participant not in self._dropped_out and can_continue(divergence, self.plan.level):
            participant.exclude_step(self._doubtful(divergence))
            return Decision.CONTINUE
        participant.leave(clauses)
        self._ends[divergence.participant] = divergence.step + (not divergence.is_failure)
        return Decision.SKIP_EXAMPLE

    def _without_skipped(
        self, divergence: Divergence, participant: Participant
    ) -> tuple[Divergence, tuple[Operation, ...]]:
        """Return a divergence and the steps up to it, without those that the participant did not get."""
        steps = self.lockstep.operations[: divergence.step + 1]
        kept = tuple(step for number, step in enumerate(steps) if number not in participant.skipped)
        return replace(divergence, step=len(kept) - 1), kept

    def _doubtful(self, divergence: Divergence) -> Sequence[str]:
        """Return the clauses that a divergent step does not count for, if the participant continues."""
        if self.plan.level == "must" and divergence.is_unnoticed:
            return [clause for clause in divergence.clauses if load_clauses()[clause].level != "MUST"]
        return divergence.clauses

    def _known(self, divergence: Divergence, specification: str) -> set[str] | None:
        """Return the clauses of an expected divergence; None if no expectation matches it."""
        if divergence.is_failure:
            return None
        about = divergence.clauses, signature_of(divergence), self.name, specification, divergence.release
        numbers = self.ledger.match_all(*about, signature_detail(divergence))
        if numbers:
            self._evidence.matched_expectations.update(numbers)
            known = [self.ledger.expectations[number] for number in numbers]
            return {clause for clause in divergence.clauses if any(each.covers_clause(clause) for each in known)}
        return None


def excused_by(participant: Participant) -> Counter[str]:
    """Return the number of steps with a tolerated difference, by the description of the tolerance."""
    excused: Counter[str] = participant.implementation.excused or Counter()
    return excused
