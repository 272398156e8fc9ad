"""Replay of traces with a new release's own classes, in lockstep with kidx, which tries different dialects.

A dialect has the value of every behaviour that differs between releases. A trace fails if the classes differ from kidx.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Hashable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from conformance.lockstep import DivergenceError
from conformance.machines import MACHINES
from conformance.runs.regression_traces import load_regression_traces
from conformance.runs.replay import replay_operations
from conformance.scratch import scratch_directory
from kidx.dialect import ROWS, Dialect, override_dialect

if TYPE_CHECKING:
    from conformance.implementations.protocol import Implementation
    from conformance.kafka.jar_fetch import Progress
    from conformance.lockstep import Divergence
    from conformance.operations.trace import Trace


class Failing(NamedTuple):
    """Trace in which a release's classes differ from a dialect.

    Attributes:
        trace: The recorded steps.
        divergence: The first divergence.
    """

    trace: Trace
    divergence: Divergence


class Result(NamedTuple):
    """Result of all traces in one dialect, executed by a release's classes.

    Attributes:
        failing: The traces in which the classes differ from the dialect, by id.
        exercised: The number of steps that exercised each clause.
    """

    failing: Mapping[str, Failing]
    exercised: Mapping[str, int]


class Trials:
    """Traces, and the classes of one release, which replay them in comparison with any dialect.

    Args:
        release: The release.
        machines: The state machines whose regression traces are replayed.
        progress: A callback that is called while jars are downloaded.

    Raises:
        ToolError: The classes are not available here.
    """

    def __init__(self, release: str, machines: Iterable[str], progress: Progress | None = None) -> None:
        self.release = release
        self._traces: dict[str, dict[str, Trace]] = {}
        self._subjects: dict[str, Implementation] = {}
        self._results: dict[Hashable, Result] = {}
        for machine in machines:
            self._subjects[machine] = MACHINES[machine].subject("jvm", release, progress)
            self._traces[machine] = {trace.id: trace for trace in load_regression_traces(machine)}

    @property
    def count(self) -> int:
        """Number of traces."""
        return sum(map(len, self._traces.values()))

    def add(self, traces: Iterable[Trace]) -> bool:
        """Add traces; return True if any of them is new."""
        before = self.count
        for trace in traces:
            if trace.machine in self._traces:
                self._traces[trace.machine][trace.id] = trace
        return self.count > before

    def result(self, dialect: Dialect) -> Result:
        """Return the result of replaying every trace in a dialect."""
        key = (self.count, dialect.rules())
        if key not in self._results:
            with override_dialect(dialect):
                self._results[key] = self._replayed(self._traces)
        return self._results[key]

    def failing(self, dialect: Dialect, ids: Collection[str]) -> Mapping[str, Failing]:
        """Replay some traces, and return those in which the classes differ."""
        chosen = {
            machine: {id_: trace for id_, trace in traces.items() if id_ in ids}
            for machine, traces in self._traces.items()
        }
        with override_dialect(dialect):
            return self._replayed({machine: traces for machine, traces in chosen.items() if traces}).failing

    def never_read(self, dialect: Dialect) -> frozenset[str]:
        """Return the behaviours whose values kidx does not need in any trace."""
        recording = _RecordingDialect(dialect)
        with override_dialect(recording):
            self._replayed(self._traces)
        return frozenset(ROWS) - recording.read

    def _replayed(self, of_machines: Mapping[str, Mapping[str, Trace]]) -> Result:
        failing: dict[str, Failing] = {}
        exercised: Counter[str] = Counter()
        for machine, traces in of_machines.items():
            subject = self._subjects[machine]
            with scratch_directory() as scratch:
                lockstep = MACHINES[machine].new_lockstep([subject], scratch, releases=[self.release])
                lockstep.drop_models()
                for trace in traces.values():
                    try:
                        replay_operations(lockstep, trace.operations)
                    except DivergenceError as error:
                        failing[trace.id] = Failing(trace, error.divergence)
                for clauses in lockstep.statistics.clauses.values():
                    exercised += clauses
        return Result(failing, exercised)


class _RecordingDialect(Dialect):
    """Dialect that records which of its behaviours are read."""

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
        """Return the rules without recording the behaviours, because rules only group releases."""
        return self.plain.rules(*sections)  # type: ignore[no-any-return]
