"""A release's own classes beside the reference in a dialect that it might have: which traces come out otherwise."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Hashable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from conformance.lockstep import DivergenceError
from conformance.machines import MACHINES
from conformance.runs.regression_traces import kept_traces
from conformance.runs.replay import perform_all
from conformance.scratch import scratch_directory
from kidx.dialect import ROWS, Dialect, override_dialect

if TYPE_CHECKING:
    from conformance.implementations.protocol import Implementation
    from conformance.kafka.jar_fetch import Progress
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
        """Perform every trace in a dialect."""
        key = (self.count, dialect.rules())
        if key not in self._results:
            with override_dialect(dialect):
                self._results[key] = self._performed(self._traces)
        return self._results[key]

    def failing(self, dialect: Dialect, ids: Collection[str]) -> Mapping[str, Failing]:
        """Perform some traces only, and return those that come out otherwise."""
        chosen = {
            machine: {id_: trace for id_, trace in traces.items() if id_ in ids}
            for machine, traces in self._traces.items()
        }
        with override_dialect(dialect):
            return self._performed({machine: traces for machine, traces in chosen.items() if traces}).failing

    def unread(self, dialect: Dialect) -> frozenset[str]:
        """Return the behaviours that the reference never asks for in any trace."""
        noticing = _Noticing(dialect)
        with override_dialect(noticing):
            self._performed(self._traces)
        return frozenset(ROWS) - noticing.read

    def _performed(self, of_machines: Mapping[str, Mapping[str, Trace]]) -> Result:
        failing: dict[str, Failing] = {}
        exercised: Counter[str] = Counter()
        for machine, traces in of_machines.items():
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


class _Noticing(Dialect):
    """A dialect that notes which of its behaviours are asked for."""

    read: set[str]

    def __init__(self, dialect: Dialect) -> None:
        super().__init__(dialect.release, dialect.like)
        vars(self).update(vars(dialect), read=set(), plain=dialect)

    def __getattribute__(self, name: str) -> Any:
        if name in ROWS:
            vars(self)["read"].add(name)
            return getattr(vars(self)["plain"], name)
        return super().__getattribute__(name)

    def rules(self, *sections: str) -> tuple[object, ...]:
        """Return the rules without noting them: they only group releases."""
        return self.plain.rules(*sections)  # type: ignore[no-any-return]
