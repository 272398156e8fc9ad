"""Search for differences between two Kafka releases by one Hypothesis state machine, in rounds of examples.

The old and the new side of the comparison are releases, or builds of Kafka.
"""

from __future__ import annotations

import time
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from hypothesis.errors import Flaky

from conformance.clauses import family
from conformance.errors import ToolError
from conformance.events import Progressed
from conformance.expectations import ExpectationTracker, load_expectations
from conformance.experiments.release_diff.difference import Difference, place_of
from conformance.experiments.release_diff.error_texts import TextCollector
from conformance.experiments.release_diff.execution import ReleaseRunner, can_execute
from conformance.experiments.release_diff.implicated import last_implicated, separating
from conformance.experiments.release_diff.recording_proxy import RecordingProxy
from conformance.experiments.release_diff.sides import PROFILE
from conformance.lockstep import DivergenceError
from conformance.lockstep.decision import Decision, can_continue
from conformance.lockstep.divergence import failure_json
from conformance.machines import MACHINES
from conformance.operations.state_diff import differing_fields
from conformance.runs.chunks import SEED_OF_ROUND, run_chunk
from conformance.runs.divergence_event import new_trace
from conformance.runs.profiles import Profile, round_of
from conformance.runs.regression_traces import load_regression_traces
from conformance.runs.replay import replay_operations
from conformance.runs.sameness import Sameness
from conformance.runs.shrinking import shrink

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from conformance.events import Sink
    from conformance.experiments.release_diff.difference import Place
    from conformance.experiments.release_diff.sides import Plan
    from conformance.kafka.jar_fetch import Progress
    from conformance.lockstep import Divergence
    from conformance.operations import Json, Operation

STEPS_PER_EXAMPLE: Final = (5, 10, *(PROFILE.steps,) * 4)
"""Numbers of steps in an example. After a round without a new difference, the search continues with the next number;
after the last number, it ends, unless more examples are requested. Examples of five steps find most differences and
shrink fastest. A difference that occurs in one of a hundred long examples is found in 49 of 50 searches.
"""


class Search:
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
        self._perform, self.lockstep.perform = self.lockstep.perform, self._execute_while_compared
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

    def _execute_while_compared(self, operation: Operation) -> Any:
        """Execute a step, unless the new side has dropped out of the example: then there is nothing to compare."""
        if self._dropped_out == self.lockstep.statistics.examples:
            return self.lockstep.primary.observation
        return self._perform(operation)

    def _key(self, divergence: Divergence, operations: Sequence[Operation]) -> Sameness:
        """Return the key of equal differences: the separating clauses, or the operation, the aspects and outcomes."""
        clauses = separating(divergence.clauses, self.new)
        if not clauses:
            steps = self.runners[1].perform(operations).clauses
            if len(steps) == len(operations):
                clauses = separating(steps[-1], self.old)
        if clauses:
            return Sameness(self.subject.name, " ".join(sorted(set(map(family, clauses)))))
        is_outcome, sides = divergence.aspects[0] == "outcome", (divergence.expected, divergence.actual)
        aspect = " ".join((*divergence.aspects, *(str(side[0]) for side in sides if is_outcome)))
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
        found = self._replay_regression_traces(seed, is_late) if self.plan.kept else []
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
            while True:
                self.lockstep.failure = None
                try:
                    replay_operations(self.lockstep, trace.operations)
                except DivergenceError as failure:
                    found.append(self._new(failure, seed))
                else:
                    break
        if self.not_replayed:
            counts = f"{self.not_replayed} of {len(traces)}"
            self.missing.append(f"{counts} regression traces of the {self.name} machine not run (--max-time)")
        return found

    def _round(self, profile: Profile, examples: int, seed: int) -> Difference | None:
        """Run Hypothesis once; return a new difference, or None."""
        self.lockstep.failure = None
        self._first_new = None
        try:
            run_chunk(self.bound, profile.settings(examples), seed, examples)
        except (DivergenceError, Flaky) as error:
            failure = self.lockstep.failure or error
            if not isinstance(failure, DivergenceError):
                raise
            return self._new(failure, seed)
        return None

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
        short = shrink(operations, lambda candidate: self._reproduce(candidate, key))
        if short is not None:
            operations, divergence = short.operations, short.result
        self.known.setdefault(key, {})[place_of(self.name, divergence)] = None
        unobserved: tuple[str, ...] = ()
        if divergence.aspects == ("state",):
            fields = differing_fields(divergence.expected, divergence.actual)
            unobserved = tuple(name for name, _, _ in fields if name)
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

    def _reproduce(self, operations: Sequence[Operation], key: Sameness) -> Divergence | None:
        """Return the difference if the last of the operations, and no earlier one, differs with the same key."""
        self._raises_all = True
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
