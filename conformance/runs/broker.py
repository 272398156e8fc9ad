"""``-i broker``: the broker machine against a real broker of each release."""

from __future__ import annotations

import itertools
import shlex
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, ClassVar

from hypothesis.errors import Flaky

from conformance.events import Diverged, Result
from conformance.implementations.broker.reference import ReferencePartition
from conformance.implementations.forms import directory_of
from conformance.implementations.spec import build_of
from conformance.kafka.broker import BrokerError, choose, new_broker
from conformance.lockstep import DivergenceError
from conformance.lockstep.scopes.broker import BrokerLockstep, ExpectedStartFailureError
from conformance.lockstep.scopes.topic import BrokerStatistics
from conformance.machines.broker import MACHINE, BrokerMachine, finish
from conformance.runs.kill_cycles import kill_cycles
from conformance.runs.sameness import Sameness
from conformance.runs.server_replays import broker_lockstep
from conformance.runs.server_run import ServerRun

if TYPE_CHECKING:
    from conformance.operations import Operation


class BrokerRun(ServerRun):
    """Run of one broker, from its start to the comparison of its files. The first divergence ends the run.

    A broker that does not start, dies, or fails to execute a request is a divergence, whose event contains the path of
    the broker's log. A ToolError is raised if the plan requests containers, and the container engine does not respond
    or has no image of a release.
    """

    machine = MACHINE
    reference: ClassVar[type[ReferencePartition]] = ReferencePartition
    """The class of the reference; a test replaces it with a defective one."""
    lockstep: BrokerLockstep | None = None
    _why_refused = ""
    """The error of a start that the reference also rejects, which ends the run without a divergence; else empty."""

    def carry_out(self) -> Result:
        """Start the broker, run the examples or kill cycles, and return the result with its counts."""
        build = build_of(directory_of(self.name) or "")
        chosen = choose(self.release, self.plan.broker, build)
        broker = new_broker(self.release, chosen.backend, progress=self.context.progress, build=build)
        failure: DivergenceError | None = None
        error, ready_seconds = "", 0.0
        try:
            with broker_lockstep(broker, reference=self.reference, on_divergence=self.is_expected) as self.lockstep:
                ready_seconds = broker.ready_seconds
                failure = self._drive(self.lockstep)
                if failure is not None:
                    self.context.sink(self.event(failure))
        except BrokerError as crash:
            error = str(crash)
            self._report_crash(crash)
        tally = self.lockstep.statistics if self.lockstep is not None else BrokerStatistics()
        diverging = () if failure is None else failure.divergence.clauses
        unexplained = (failure is not None) + bool(error)
        details = {
            "backend": broker.backend,
            "why_not_a_container": chosen.reason or None,
            "mode": broker.mode,
            "ready_seconds": round(ready_seconds, 2),
            "answers": tally.answers,
            "files": tally.files,
            "segments": tally.segments,
            "restarts": tally.restarts,
            "kills": tally.kills,
            "acknowledged": tally.acknowledged,
            "expected": tally.expected,
            "unexplained": unexplained,
            "refused_starts": tally.refused_starts,
            "why_refused": self._why_refused or None,
            "error": error or None,
        }
        return self.result(tally, diverging, unexplained, details)

    def _drive(self, lockstep: BrokerLockstep) -> DivergenceError | None:
        """Execute the examples or kill cycles, and return the shrunk divergence that ended them, or None.

        Raises:
            BrokerError: The broker died or failed.
        """
        try:
            if self.plan.kill_cycles:
                kill_cycles(lockstep, self.plan.kill_cycles, self.context.seed)
            else:
                bound = BrokerMachine.bind(lockstep, restarts=self.amount.restarts, omitted=self.omitted)
                self.run_examples(bound, self.is_late)
            finish(lockstep)
        except ExpectedStartFailureError as error:
            self._why_refused = str(error)
        except (DivergenceError, Flaky):
            if lockstep.failure is None:
                raise
            return self.shrunk(lockstep.failure, _attempts(lockstep, lockstep.failure))
        return None

    def _report_crash(self, error: BrokerError) -> None:
        """Report the crash of the broker as a divergence, because kidx executes the same steps without one."""
        operations = self.lockstep.topics[-1].operations if self.lockstep and self.lockstep.topics else []
        failure = {
            "step": len(operations) - 1,
            "participant": f"{self.name} {self.release}",
            "release": self.release,
            "against": "kidx",
            "aspects": ["outcome"],
            "expected": "a broker that executes every request",
            "actual": f"{error}\n{error.tail}",
            "clauses": [],
        }
        command = ["conformance", "run", "-i", self.name, "--kafka", self.release, "--seed", str(self.context.seed)]
        steps = tuple(map(str, operations))
        self.context.sink(Diverged(MACHINE, failure, (), steps, str(error.log), shlex.join(command), self.name))


def _attempts(
    lockstep: BrokerLockstep, failure: DivergenceError
) -> Callable[[Sequence[Operation]], DivergenceError | None]:
    """Return a function that executes operations on a new topic, and returns the divergence if it is the same, or None.

    Few candidates are tried, because each needs a topic on a real broker.
    """
    prefixes = (f"attempt-{number}" for number in itertools.count(1))
    is_stop = failure.divergence.operation.name in ("restart_broker", "kill_broker")

    def attempt(operations: Sequence[Operation]) -> DivergenceError | None:
        try:
            lockstep.broker.start_if_stopped()
            fresh = lockstep.anew(next(prefixes))
            for operation in operations:
                fresh.perform(operation)
            if not is_stop:
                fresh.finish()
        except DivergenceError as error:
            return error if _sameness(error) == _sameness(failure) else None
        except (BrokerError, ExpectedStartFailureError):
            return None
        return None

    return attempt


def _sameness(failure: DivergenceError) -> Sameness:
    """Return what another divergence must have in common with this one to be the same."""
    divergence = failure.divergence
    return Sameness(divergence.participant, " ".join(divergence.clauses), "", " ".join(divergence.aspects))
