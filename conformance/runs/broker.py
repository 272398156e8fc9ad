"""``-i broker``: the broker machine against a real broker of each release.

Many cycles of ``kill -9``: acknowledged batches remain, and every other batch of the log was sent.

In every cycle, each topic receives batches that all replicas acknowledge. One topic also receives a series of batches
that are sent without waiting, and the broker is killed while it appends them. The log must then contain a prefix of the
series, in order, which includes at least the acknowledged batches. The reference appends the same prefix.
"""

from __future__ import annotations

import itertools
import random
import shlex
from typing import TYPE_CHECKING, Any, ClassVar, Final

from hypothesis.errors import Flaky

from conformance.events import Diverged, Result
from conformance.implementations.broker.reference import ReferencePartition
from conformance.implementations.forms import directory_of
from conformance.implementations.spec import build_of
from conformance.kafka.broker import BrokerError, choose, new_broker
from conformance.kafka.broker.workload import EPOCH_MS
from conformance.lockstep import DivergenceError
from conformance.lockstep.scopes.broker import BrokerLockstep, ExpectedStartFailureError
from conformance.lockstep.scopes.topic import BrokerStatistics
from conformance.machines.broker import MACHINE, BrokerMachine, finish
from conformance.operations import Operation
from conformance.operations.broker import PRODUCERS
from conformance.runs.replay import broker_lockstep
from conformance.runs.sameness import Sameness
from conformance.runs.server_run import ServerRun
from kidx.dialect import dialect_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

_HOUR_MS: Final = 3_600_000
_MINUTE_MS: Final = 60_000
IN_FLIGHT: Final = 40
"""The number of batches in flight when the broker is killed."""


def kill_cycles(lockstep: BrokerLockstep, cycles: int, seed: int) -> None:
    """Create topics with different settings, and run a number of kill cycles.

    Raises:
        DivergenceError: Acknowledged batches are lost or moved, or there is another divergence.
        BrokerError: The broker does not start.
    """
    random_ = random.Random(seed)  # noqa: S311 -- repeatable on purpose
    for settings in _topics(lockstep.release):
        lockstep.perform(Operation("create_topic", (settings,)))
    clock = EPOCH_MS
    for cycle in range(cycles):
        clock += _HOUR_MS if cycle % 2 else 0
        for topic in lockstep.topics:
            for _ in range(random_.randint(1, 4)):
                clock += random_.randrange(100)
                lockstep.perform_on(topic, Operation("append_batch", (_rows(random_, clock), "none", None)))
        transactional = lockstep.topics[0]
        producer = random_.choice(PRODUCERS)
        lockstep.perform_on(transactional, Operation("append_batch", (_rows(random_, clock), "none", producer)))
        if random_.random() < 0.6:
            ending = Operation("end_transaction", (random_.choice(PRODUCERS), random_.random() < 0.5))
            lockstep.perform_on(transactional, ending)
        busy = random_.choice(lockstep.topics)
        rows = [_rows(random_, clock + number) for number in range(IN_FLIGHT)]
        lockstep.kill_while_appending(busy, rows, acknowledged=random_.randrange(IN_FLIGHT))


def _topics(release: str) -> list[dict[str, Any]]:
    """Return the settings of three topics: with defaults, with LogAppendTime, and compressed."""
    common: dict[str, Any] = {
        "segment.bytes": max(4000, dialect_of(release).smallest_segment),
        # An index needs more space than a segment uses, because a log with full indexes cannot be recovered (LG-19).
        "segment.index.bytes": 4800,
        "segment.ms": _HOUR_MS,
        "index.interval.bytes": 150,
        "retention.ms": -1,
        # the data would otherwise be in the page cache, which survives the kill of a process
        "flush.messages": 1,
    }
    stamped = {**common, "message.timestamp.type": "LogAppendTime", "segment.ms": _MINUTE_MS}
    return [common, stamped, {**common, "compression.type": "gzip"}]


def _rows(random_: random.Random, clock: int) -> list[list[Any]]:
    """Return the records of a batch: timestamp, key, size of the value."""
    return [
        [clock + random_.randrange(-300, 50), None, random_.randrange(10, 80)] for _ in range(random_.randint(1, 4))
    ]


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
