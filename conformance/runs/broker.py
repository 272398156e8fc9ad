"""``-i broker``: the broker machine against a real broker of each release, one after the other."""

from __future__ import annotations

import shlex
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from hypothesis.errors import Flaky

from conformance.events import Diverged, Progressed, Result
from conformance.implementations.broker.reference import ReferencePartition
from conformance.implementations.broker.topic import RunningBroker
from conformance.implementations.forms import directory_of
from conformance.implementations.spec import build_of
from conformance.kafka.broker import BrokerError, choose, new_broker
from conformance.lockstep import DivergenceError
from conformance.lockstep.scopes.broker import BrokerLockstep, ExpectedStartFailureError
from conformance.lockstep.scopes.topic import BrokerStatistics
from conformance.machines.broker import MACHINE, BrokerMachine, finish
from conformance.runs.broker_shrinking import shrink_on_broker
from conformance.runs.broker_table import measured
from conformance.runs.divergence_event import divergence_event
from conformance.runs.kill_cycles import kill_cycles
from conformance.runs.server_examples import Amount, run_examples, verdicts_of
from conformance.runs.shrinking import SHRINK_SECONDS
from conformance.scratch import scratch_directory

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from conformance.events import Sink
    from conformance.expectations import ExpectationTracker
    from conformance.kafka.broker import Broker, Choice
    from conformance.kafka.jar_fetch import Progress
    from conformance.lockstep import Divergence

IMPLEMENTATION: Final = "broker"

# Every broker takes seconds to start and to stop: a profile's hundreds of examples would take hours.
_AMOUNTS: Final = {"dev": Amount(4, 15, 1), "ci": Amount(6, 25, 2), "nightly": Amount(40, 50, 10)}


@dataclass(frozen=True, slots=True)
class Budget:
    """Amount of work for one broker.

    Attributes:
        amount: The topics, their steps, and the stops, in addition to the two stops at the end of every broker.
        cycles: The number of times ``kill -9`` and start are executed instead of examples.
        seconds: The time after which no further example begins; None for no limit.
        patience: The maximum time for shrinking a trace, in seconds.
    """

    amount: Amount
    cycles: int = 0
    seconds: float | None = None
    patience: float = SHRINK_SECONDS

    @classmethod
    def of_profile(
        cls,
        profile: str,
        *,
        examples: int | None = None,
        cycles: int = 0,
        seconds: float | None = None,
        patience: float = SHRINK_SECONDS,
    ) -> Budget:
        """Return the budget of ``dev``, ``ci`` or ``nightly``."""
        amount = _AMOUNTS[profile]
        return cls(amount if examples is None else amount._replace(examples=examples), cycles, seconds, patience)


@dataclass(frozen=True, slots=True)
class Run:
    """Properties that all brokers of a run share.

    Attributes:
        seed: The seed of all random choices.
        budget: The amount of work.
        traces: The directory for traces of divergences.
        sink: A callback that receives every event.
        ledger: The expectations.
        choice: Whether brokers run in containers or as local processes.
        implementation: The ``-i`` argument.
        reference: The class of the reference; a defective one in a test.
    """

    seed: int
    budget: Budget
    traces: Path
    sink: Sink
    ledger: ExpectationTracker
    choice: Choice = "auto"
    implementation: str = IMPLEMENTATION
    reference: type[ReferencePartition] = ReferencePartition


def run_brokers(releases: Sequence[str], run: Run, progress: Progress | None = None) -> list[Result]:
    """Run one broker of each release after the other; each is always stopped.

    A broker that does not start, dies, or fails to execute a request is a result, which names its log.

    Raises:
        NoEngineError: Containers are requested, and no engine responds.
        NoImageError: Containers are requested, and the engine has no image of a release.
        ToolError: Java, the jars or kafka-python are missing.
    """
    results: list[Result] = []
    build = build_of(directory_of(run.implementation) or "")
    for number, release in enumerate(releases):
        started = time.monotonic()
        chosen = choose(release, run.choice, build)
        broker = new_broker(release, chosen.backend, progress=progress, build=build)
        life = _BrokerSession(run, broker, chosen.reason)
        try:
            with broker:
                life.live()
        except BrokerError as error:
            life.report_crash(error)
        result = life.result(time.monotonic() - started)
        done = [*results, result]
        share = len(done) / len(releases)
        run.sink(Progressed(MACHINE, sum(r.examples for r in done), sum(r.steps for r in done), share))
        run.sink(result)
        run.sink(measured(result))
        results.append(result)
        if number + 1 < len(releases) and run.budget.seconds is not None:
            run = _with_less_time(run, time.monotonic() - started)
    return results


def _with_less_time(run: Run, seconds: float) -> Run:
    left = max(0.0, (run.budget.seconds or 0.0) - seconds)
    return replace(run, budget=replace(run.budget, seconds=left))


class _BrokerSession:
    """Session of one broker, from its start to the comparison of its files."""

    def __init__(self, run: Run, broker: Broker, why_not_a_container: str) -> None:
        self.run = run
        self.why = why_not_a_container
        self.broker = broker
        self.ready_seconds = 0.0
        self.divergences: list[Divergence] = []
        self.error = ""
        self.refused = ""
        self.lockstep: BrokerLockstep | None = None
        self.expected: set[str] = set()

    def live(self) -> None:
        """Execute the budget; the first divergence ends it.

        Raises:
            BrokerError: The broker died or failed.
        """
        self.ready_seconds = self.broker.ready_seconds
        with scratch_directory() as scratch, self._connected() as participant:
            lockstep = BrokerLockstep(participant, scratch, reference=self.run.reference, on_divergence=self._excused)
            self.lockstep = lockstep
            try:
                self._examples(lockstep)
                finish(lockstep)
            except ExpectedStartFailureError as error:
                self.refused = str(error)
            except (DivergenceError, Flaky):
                if lockstep.failure is None:
                    raise
                self._report(shrink_on_broker(lockstep, lockstep.failure, seconds=self.run.budget.patience))

    @contextmanager
    def _connected(self) -> Iterator[RunningBroker]:
        participant = RunningBroker(self.broker)
        try:
            yield participant
        finally:
            participant.disconnect()

    def _examples(self, lockstep: BrokerLockstep) -> None:
        budget, started = self.run.budget, time.monotonic()
        if budget.cycles:
            kill_cycles(lockstep, budget.cycles, self.run.seed)
            return
        run_examples(
            BrokerMachine.bind(lockstep, restarts=budget.amount.restarts),
            self.run.seed,
            budget.amount,
            lambda: budget.seconds is not None and time.monotonic() - started > budget.seconds,
        )

    def _excused(self, divergence: Divergence) -> bool:
        """Return True if a divergence is expected."""
        found = self.run.ledger.match(divergence.clauses, MACHINE, self.run.implementation, divergence.release)
        if found is None:
            return False
        self.expected.update(filter(found.covers_clause, divergence.clauses))
        return True

    def _report(self, failure: DivergenceError) -> None:
        self.divergences.append(failure.divergence)
        self.run.sink(
            divergence_event(
                MACHINE,
                failure.divergence,
                failure.operations,
                self.run.traces,
                implementation=self.run.implementation,
                seed=self.run.seed,
                shrinking=failure.shrinking,
            )
        )

    def report_crash(self, error: BrokerError) -> None:
        """Report the crash of the broker as a divergence: kidx continues to work."""
        self.error = str(error)
        operations = self.lockstep.topics[-1].operations if self.lockstep and self.lockstep.topics else []
        failure = {
            "step": len(operations) - 1,
            "participant": f"{self.run.implementation} {self.broker.release}",
            "release": self.broker.release,
            "against": "kidx",
            "aspects": ["outcome"],
            "expected": "a broker that executes every request",
            "actual": f"{error}\n{error.tail}",
            "clauses": [],
        }
        command = ["conformance", "run", "-i", self.run.implementation, "--kafka", self.broker.release]
        again = shlex.join([*command, "--seed", str(self.run.seed)])
        steps = tuple(map(str, operations))
        self.run.sink(Diverged(MACHINE, failure, (), steps, str(error.log), again, self.run.implementation))

    def result(self, seconds: float) -> Result:
        """Return the result of this release."""
        statistics = self.lockstep.statistics if self.lockstep is not None else BrokerStatistics()
        diverging = {clause for divergence in self.divergences for clause in divergence.clauses}
        clauses, verdicts = verdicts_of(MACHINE, self.broker.release, statistics.clauses, diverging, self.expected)
        unexplained = len(self.divergences) + bool(self.error)
        details: dict[str, Any] = {
            "backend": self.broker.backend,
            "why_not_a_container": self.why or None,
            "mode": self.broker.mode,
            "ready_seconds": round(self.ready_seconds, 2),
            "answers": statistics.answers,
            "files": statistics.files,
            "segments": statistics.segments,
            "restarts": statistics.restarts,
            "kills": statistics.kills,
            "acknowledged": statistics.acknowledged,
            "expected": statistics.expected,
            "unexplained": unexplained,
            "refused_starts": statistics.refused_starts,
            "why_refused": self.refused or None,
            "error": self.error or None,
        }
        return Result(
            MACHINE,
            self.run.implementation,
            self.broker.release,
            statistics.topics,
            statistics.steps,
            seconds,
            unexplained,
            clauses,
            verdicts,
            details,
        )
