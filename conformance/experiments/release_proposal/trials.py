"""A release's own classes beside the reference in a dialect that it might have: which traces come out otherwise."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import fields
from typing import TYPE_CHECKING, NamedTuple

from conformance.lockstep import DivergenceError
from conformance.machines import MACHINES
from conformance.runs.regression_traces import kept_traces
from conformance.runs.replay import perform_all
from conformance.scratch import scratch_directory
from kidx.dialect import BEHAVIOURS, Dialect, assumed

if TYPE_CHECKING:
    from conformance.implementations.protocol import Implementation
    from conformance.kafka.fetch import Progress
    from conformance.lockstep import Divergence
    from conformance.operations.trace import Trace


class Failing(NamedTuple):
    """A trace in which the classes differ from a dialect.

    Attributes:
        trace: the recorded steps.
        divergence: the first difference.
    """

    trace: Trace
    divergence: Divergence


class Result(NamedTuple):
    """What a release's classes make of all traces in one dialect.

    Attributes:
        failing: by id, the traces in which they differ.
        exercised: in how many steps each clause was exercised.
    """

    failing: Mapping[str, Failing]
    exercised: Mapping[str, int]


class Trials:
    """The classes of one release, to be held to any dialect.

    Args:
        release: whose classes.
        machines: whose kept traces are performed.
        progress: called while jars are fetched.

    Raises:
        ToolError: the classes cannot be had here.
    """

    def __init__(self, release: str, machines: Iterable[str], progress: Progress | None = None) -> None:
        self.release = release
        self._traces: dict[str, dict[str, Trace]] = {}
        self._subjects: dict[str, Implementation] = {}
        self._results: dict[Hashable, Result] = {}
        for machine in machines:
            self._subjects[machine] = MACHINES[machine].subject("jvm", release, progress)
            self._traces[machine] = {trace.id: trace for trace in kept_traces(machine)}

    @property
    def count(self) -> int:
        """How many traces there are."""
        return sum(map(len, self._traces.values()))

    def add(self, traces: Iterable[Trace]) -> bool:
        """More traces to perform; whether any is new."""
        before = self.count
        for trace in traces:
            if trace.machine in self._traces:
                self._traces[trace.machine][trace.id] = trace
        return self.count > before

    def result(self, dialect: Dialect) -> Result:
        """Performs every trace in a dialect."""
        key = (self.count, *(getattr(dialect, name) for name in _names()))
        if key not in self._results:
            with assumed(dialect):
                self._results[key] = self._performed()
        return self._results[key]

    def _performed(self) -> Result:
        failing: dict[str, Failing] = {}
        exercised: Counter[str] = Counter()
        for machine, traces in self._traces.items():
            subject = self._subjects[machine]
            with scratch_directory() as scratch:
                lockstep = MACHINES[machine].new_lockstep([subject], scratch, releases=[self.release])
                lockstep.drop_models()
                for trace in traces.values():
                    try:
                        perform_all(lockstep, trace.operations)
                    except DivergenceError as error:
                        failing[trace.id] = Failing(trace, error.divergence)
                for clauses in lockstep.statistics.clauses.values():
                    exercised += clauses
        return Result(failing, exercised)


def _names() -> tuple[str, ...]:
    return (*(column.name for column in fields(Dialect)), *BEHAVIOURS)
