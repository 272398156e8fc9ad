"""One machine against all implementations of a plan, in one process: performs chunks of examples, notes evidence.

A difference does not end anything: it is noted, and the participant goes on with the next example, or with the next
step if its state and its files are right. So the examples of a seed are the same whatever implementations do, and one
difference does not hide the others.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from hypothesis.errors import Flaky

from conformance.clauses import load_clauses
from conformance.errors import NotDrivenError
from conformance.implementations.forms import is_server
from conformance.lockstep.divergence import DivergenceError
from conformance.machines import MACHINES
from conformance.runs.chunks import CHUNK, Chunk, perform_chunk
from conformance.runs.collecting import rare_collections
from conformance.runs.differences.shapes import detail_of, error_of, shape_of
from conformance.runs.evidence import FAILURES, KEPT, Evidence
from conformance.runs.participation import Participation
from conformance.runs.regression_traces import kept_traces
from conformance.runs.repeatable import without_local_constants
from conformance.runs.replay import perform_all

if TYPE_CHECKING:
    from conformance.expectations import Ledger
    from conformance.kafka.fetch import Progress
    from conformance.lockstep import Lockstep
    from conformance.lockstep.divergence import Divergence
    from conformance.runs.plan import Plan


@contextmanager
def machine_run(
    plan: Plan, machine: str, scratch: Path, ledger: Ledger, progress: Progress | None = None
) -> Iterator[MachineRun]:
    """A run of one machine, without what makes it slow or different elsewhere."""
    with without_local_constants(), rare_collections():
        yield MachineRun(plan, machine, scratch, ledger, progress)


class MachineRun:
    """One machine against all implementations of a plan.

    Args:
        plan: what to do.
        machine: its name.
        scratch: an empty directory.
        ledger: the known differences.
        progress: told while jars are being fetched.

    Attributes:
        subjects: specification and participant, in the order of the plan.
        unsupported: specifications that this machine cannot drive, with the reason.
        total: the results of all chunks so far.
        started: when it was made, on the monotonic clock.
        patience: a participant that has left so many chunks early has left the run.
    """

    def __init__(
        self, plan: Plan, machine: str, scratch: Path, ledger: Ledger, progress: Progress | None = None
    ) -> None:
        self.plan = plan
        self.name = machine
        self.scratch = scratch
        self.ledger = ledger
        self.machine = MACHINES[machine]
        self.subjects: list[tuple[str, Participation]] = []
        self.unsupported: dict[str, NotDrivenError] = {}
        for specification in plan.implementations:
            if not is_server(specification):
                self._enrol(specification, progress)
        self.lockstep: Lockstep = self.machine.new_lockstep(
            [subject for _, subject in self.subjects], scratch / "run", releases=plan.releases, excuse=self._noted
        )
        if not plan.model:
            self.lockstep.drop_models()
        self.lockstep.stays = self._stays
        for _, subject in self.subjects:
            subject.watch(self.lockstep)
        self._by_name = {subject.name: (specification, subject) for specification, subject in self.subjects}
        self._begin, self.lockstep.begin = self.lockstep.begin, self._begin_example
        # Bound once: what a participant turns out not to have must not change the examples of a later chunk.
        self._bound = self.machine.bind(self.lockstep)
        self._settings = plan.profile.settings(CHUNK)
        self.patience = 1 if plan.stop_at_first else FAILURES
        self._left_early: Counter[str] = Counter()
        self._muted: set[str] = set()
        self._evidence = Evidence()
        self.total = Evidence()
        self.started = time.monotonic()

    def _enrol(self, specification: str, progress: Progress | None) -> None:
        """Every release of an implementation takes part; one that has nothing that this machine drives is not asked."""
        try:
            for release in self.plan.releases:
                subject = self.machine.subject(specification, release, progress)
                self.subjects.append((specification, Participation(subject)))
        except NotDrivenError as error:
            self.unsupported[specification] = error

    def specification(self, participant: str) -> str:
        """How a participant was asked for; the reference itself was not."""
        return self._by_name[participant][0] if participant in self._by_name else "jvm"

    # -- chunks -------------------------------------------------------------------------------------------------

    def perform_chunk(self, chunk: Chunk, is_time_up: Callable[[], bool] = lambda: False) -> Evidence:
        """Performs the examples of a chunk; at least one."""

        def is_over() -> bool:
            return is_time_up() and self.lockstep.failure is None

        def perform() -> None:
            self._evidence.cut = not perform_chunk(self._bound, self._settings, chunk.seed, chunk.examples, is_over)

        return self._noting(chunk.number, perform)

    def perform_kept(self) -> tuple[Evidence, tuple[str, ...], tuple[str, ...]]:
        """Performs the traces that the package keeps: the evidence, their ids, and those of them that diverged."""
        performed: list[str] = []
        differing: list[str] = []

        def perform() -> None:
            for trace in kept_traces(self.name):
                if not all(map(self.lockstep.takes, trace.operations)):
                    continue
                before = self._seen
                performed.append(trace.id)
                try:
                    perform_all(self.lockstep, trace.operations)
                finally:
                    if self._seen > before or self.lockstep.failure is not None:
                        differing.append(trace.id)

        evidence = self._noting(KEPT, perform)
        return evidence, tuple(performed), tuple(differing)

    @property
    def _seen(self) -> int:
        return sum(sighting.count for sighting in self._evidence.sightings.values())

    def _noting(self, number: int, perform: Callable[[], None]) -> Evidence:
        """Performs something and returns its evidence, without what was noted before."""
        statistics = self.lockstep.statistics
        examples, steps, cells = statistics.examples, statistics.steps, Counter(statistics.cells)
        credited = {name: subject.exercised() for name, (_, subject) in self._by_name.items()}
        for _, subject in self.subjects:
            subject.lacking.clear()
            subject.excused.clear()
        self._evidence = evidence = Evidence(number)
        self._muted = {name for name, times in self._left_early.items() if times >= self.patience}
        self.lockstep.failure = None
        try:
            perform()
        except (DivergenceError, Flaky) as error:
            failure = self.lockstep.failure or error
            if not isinstance(failure, DivergenceError):
                raise
            evidence.broken = failure.divergence, failure.operations
        self._left_early.update(evidence.departed)
        evidence.examples, evidence.steps = statistics.examples - examples, statistics.steps - steps
        evidence.cells = Counter(statistics.cells) - cells
        if number != KEPT:
            evidence.drawn, evidence.drawn_cells = evidence.examples, evidence.cells.copy()
        for name, (_, subject) in self._by_name.items():
            evidence.credited[name] = subject.exercised() - credited[name]
            evidence.lacking[name] = set(subject.lacking)
            evidence.excused[name] = Counter(subject.excused)
        return evidence

    def _begin_example(self) -> None:
        self._begin()
        for name in self._muted:
            self.lockstep.leave(name)
            self._by_name[name][1].excuse(())

    # -- differences -------------------------------------------------------------------------------------------

    def _noted(self, divergence: Divergence) -> bool:
        """Notes a difference; only one of the reference itself is more than that."""
        specification, subject = self._by_name[divergence.participant]
        evidence, clauses = self._evidence, divergence.clauses
        known = None if divergence.is_failure else self._known(divergence, specification)
        if known is not None:
            evidence.expected.setdefault(divergence.participant, set()).update(known)
        else:
            evidence.sightings.see(divergence, self.lockstep.operations[: divergence.step + 1])
            if divergence.is_failure or self.plan.stop_at_first:
                evidence.departed[divergence.participant] = 1
                self._muted.add(divergence.participant)
        if self._stays(divergence):
            subject.discredit(clauses)
        else:
            subject.excuse(clauses)
        return True

    def _stays(self, divergence: Divergence) -> bool:
        return divergence.participant not in self._muted and can_stay(divergence)

    def _known(self, divergence: Divergence, specification: str) -> set[str] | None:
        """The clauses in which a difference is known, or only about what need not be copied; None if it counts."""
        about = divergence.clauses, shape_of(divergence), self.name, specification, divergence.release
        numbers = self.ledger.find_all(*about, detail_of(divergence))
        if numbers:
            self._evidence.met.update(numbers)
            known = [self.ledger.expectations[number] for number in numbers]
            return {clause for clause in divergence.clauses if any(each.names(clause) for each in known)}
        if self.plan.level == "must" and divergence.observed_only:
            catalogue = load_clauses()
            return {clause for clause in divergence.clauses if catalogue[clause].level == "OBSERVED"}
        return None


def can_stay(divergence: Divergence) -> bool:
    """Whether a participant can go on with an example after a difference: its state and its files are right.

    What it has opened or released while the reference refused to, or the other way round, is not the same any more; the
    state does not tell, because a closed index need not have any.
    """
    if divergence.is_failure or {"state", "bytes"} & set(divergence.aspects):
        return False
    if divergence.operation.effect is None or divergence.aspects[0] != "outcome":
        return True
    return bool(error_of(divergence.expected)) == bool(error_of(divergence.actual))
