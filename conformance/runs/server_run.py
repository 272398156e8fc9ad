"""Run of a machine that tests one server, compared with one release after the other.

Each topic and each stop of a broker takes seconds. A profile therefore has separate numbers of examples for these
machines, and its own way of running. Hypothesis only generates operations; the recorded operations are shrunk.
"""

from __future__ import annotations

import time
from dataclasses import replace
from pkgutil import resolve_name
from typing import TYPE_CHECKING, Any, ClassVar, Final, NamedTuple

from conformance.attribution.tables import clauses_for
from conformance.clauses.editions import counted_clauses
from conformance.clauses.machines import SERVER_MACHINES
from conformance.events import Progressed, Result
from conformance.implementations.forms import machine_of
from conformance.runs import broker_table
from conformance.runs.chunks import run_chunk
from conformance.runs.divergence_event import divergence_event
from conformance.runs.shrinking import shrink
from conformance.runs.shrinking.divergence import with_shrink_status
from conformance.runs.verdicts import verdict_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from conformance.events import Diverged, Sink
    from conformance.expectations import ExpectationTracker
    from conformance.kafka.jar_fetch import Progress
    from conformance.lockstep import Divergence, DivergenceError
    from conformance.operations import Operation
    from conformance.runs.plan import Plan
    from conformance.runs.profiles import ServerBudget

CHUNK: Final = 8
"""Examples of one run of Hypothesis; from the tenth on, most examples are small changes of the preceding one."""


class ServerRunContext(NamedTuple):
    """Context of a run of servers, in addition to the plan.

    Attributes:
        seed: The seed of all random choices.
        seconds_left: A function that returns the remaining time in seconds, or None if there is no limit.
        sink: A callback that receives every event.
        progress: A callback that receives the progress of downloads.
        announce: A callback that receives a description of changes to servers that the harness did not start.
    """

    seed: int
    seconds_left: Callable[[], float | None]
    sink: Sink
    ledger: ExpectationTracker
    progress: Progress | None = None
    announce: Callable[[str], None] = lambda _: None


class ServerRun:
    """Run of one server that is compared with one release.

    Args:
        name: The ``-i`` argument.

    Attributes:
        amount: The number of examples, steps and restarts.
        expected: The ids of clauses with an expected divergence.
        omitted: The names of operations that are not executed.
    """

    machine: ClassVar[str]
    """The name of the machine."""

    def __init__(self, plan: Plan, name: str, release: str, context: ServerRunContext) -> None:
        self.plan = plan
        self.name = name
        self.release = release
        self.context = context
        self.amount: ServerBudget = getattr(plan.profile, self.machine)
        if plan.max_examples is not None:
            self.amount = self.amount._replace(examples=plan.max_examples)
        self.expected: set[str] = set()
        self.omitted = plan.omitted(self.machine)
        self.started = self._begun = time.monotonic()
        self._seconds = context.seconds_left()
        self._was_late = False

    @property
    def level(self) -> str:
        """The level of the comparison, which traces and replay commands contain."""
        return "observed"

    def carry_out(self) -> Result:
        """Run the examples, emit their divergences, and return the result."""
        raise NotImplementedError

    def is_late(self) -> bool:
        """Return True if the time for examples is up."""
        late = self._seconds is not None and time.monotonic() - self._begun > self._seconds
        self._was_late |= late
        return late

    def run_examples(self, bound: type[Any], is_over: Callable[[], bool]) -> None:
        """Run the examples of a bound machine in chunks, each with its own seed, or the trace of the plan instead.

        Args:
            bound: The machine, bound to a lockstep.
            is_over: A callback before each chunk except the first; it returns True to end the run.

        Raises:
            DivergenceError: A participant diverges.
            ClientError, BrokerError: The server does not respond any more.
        """
        self._begun = time.monotonic()
        if self.plan.trace is not None:
            example = bound()
            for operation in self.plan.trace.operations:
                example.lockstep.perform(operation)
            example.teardown()
            return
        how = replace(self.plan.profile, steps=self.amount.steps).settings(CHUNK)
        for done in range(0, self.amount.examples, CHUNK):
            if done and is_over():
                break
            run_chunk(bound, how, self.context.seed + done, min(CHUNK, self.amount.examples - done))

    def is_expected(self, divergence: Divergence, shape: str = "") -> bool:
        """Return True if a divergence is expected, by its clauses or its signature, or not of the edition."""
        if counted_clauses(divergence.clauses, self.level) is None:
            return True
        ledger, clauses = self.context.ledger, divergence.clauses
        number = ledger.find(clauses, shape, self.machine, self.name, self.release)
        if number is None:
            return False
        known = ledger.expectations[number]
        self.expected.update(clause for clause in clauses if known.signature or known.covers_clause(clause))
        return True

    def shrunk(
        self, failure: DivergenceError, attempt: Callable[[Sequence[Operation]], DivergenceError | None]
    ) -> DivergenceError:
        """Return the same divergence with fewer operations, or the divergence itself if time does not allow.

        Args:
            attempt: A function that executes operations, and returns the divergence if it is the same, or None.
        """
        seconds = self.plan.shrink_time
        return with_shrink_status(failure, shrink(failure.operations, attempt, seconds=seconds), seconds)

    def event(self, failure: DivergenceError) -> Diverged:
        """Save the trace of a divergence, and return its event."""
        return divergence_event(
            self.machine,
            failure.divergence,
            failure.operations,
            self.plan.traces,
            implementation=self.name,
            seed=self.context.seed,
            shrinking=failure.shrinking,
            level=self.level,
            edition=self.plan.edition,
        )

    def result(self, statistics: Any, diverging: Iterable[str], divergences: int, details: dict[str, Any]) -> Result:
        """Return the result of this release.

        Args:
            diverging: The ids of the clauses in which a divergence was found.
            divergences: The number of divergences that count.
        """
        counts = {each.id: statistics.clauses.get(each.id, 0) for each in clauses_for(self.machine, self.release)}
        wrong = set(diverging)
        if self._was_late:
            missing = [max(0, self.amount.examples - statistics.topics), self.amount.examples]
            details = details | {"cut_by_time": True, "not_executed": {"examples": missing}}
        if self.omitted:
            details = details | {"operations not run": sorted(self.omitted)}
        return Result(
            self.machine,
            self.name,
            self.release,
            statistics.topics,
            statistics.steps,
            time.monotonic() - self.started,
            divergences,
            counts,
            {clause: verdict_of(clause, count, wrong, self.expected) for clause, count in counts.items()},
            details,
            {"list_offsets": statistics.answers},
        )


def run_server(kind: type[ServerRun], plan: Plan, name: str, context: ServerRunContext) -> list[Result]:
    """Compare one server with each release of a plan, one after the other.

    Args:
        name: The ``-i`` argument.

    Raises:
        ToolError: The server cannot be started or reached; divergences found before have been emitted.
    """
    results: list[Result] = []
    for release in plan.releases:
        result = kind(plan, name, release, context).carry_out()
        results.append(result)
        examples, steps = sum(each.examples for each in results), sum(each.steps for each in results)
        context.sink(Progressed(kind.machine, examples, steps, len(results) / len(plan.releases)))
        context.sink(result)
        for row in broker_table.measured(result):
            context.sink(row)
    return results


_RUNS: Final = {"broker": "conformance.runs.broker:BrokerRun", "wire": "conformance.runs.wire:WireRun"}
"""The run of each machine, by its path: its module needs an extra."""


def run_servers(plan: Plan, context: ServerRunContext) -> list[Result]:
    """Run the servers among the implementations of a plan, machine by machine."""
    if plan.attachment is not None:
        from conformance.runs.external_broker import check_external_broker  # noqa: PLC0415 -- part of an extra

        return [check_external_broker(plan.attachment, plan.releases[-1], context.sink, context.progress)]
    results: list[Result] = []
    for machine in SERVER_MACHINES:
        names = [name for name in plan.implementations if machine_of(name) == machine]
        if names and machine in plan.machines:
            kind = resolve_name(_RUNS[machine])
            results += (result for name in names for result in run_server(kind, plan, name, context))
    return results
