"""Behaviours of a new release, inferred by trying every known value of every row of the table of behaviours.

A dialect has the value of every behaviour that differs between releases. State machines search for differences between
the release's own classes and a dialect of kidx, and save them as traces. A trace *fails* with a dialect if the classes
differ from kidx when it is replayed.

The search starts with the dialect of a known release. Again and again, it changes one value, so that most failing
traces no longer fail. If no single change explains a trace, it tries two changes together. The traces that still fail
show new behaviour.

If no known value explains a trace, the release breaks a clause. The clause that most failing traces implicate is chosen
first. Of equally frequent clauses, the clause that is exercised least in other steps is chosen. The traces that
implicate a chosen clause are not counted for other clauses.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from conformance.clauses import family
from conformance.events import Diverged
from conformance.lockstep import DivergenceError
from conformance.machines import MACHINES
from conformance.operations.trace import Trace
from conformance.runs.profiles import PROFILES
from conformance.runs.replay import load_regression_traces, replay_operations
from conformance.runs.runner import Plan, run
from conformance.scratch import scratch_directory
from kidx.dialect import ROWS, Dialect, override_dialect, with_overrides

if TYPE_CHECKING:
    from collections.abc import Sequence

    from conformance.events import Event
    from conformance.implementations.protocol import Implementation
    from conformance.kafka.jar_fetch import Progress
    from conformance.lockstep import Divergence


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


def broken_clauses(result: Result) -> dict[str, str]:
    """Return the clauses that failing traces implicate, each with the id of the shortest such trace.

    Args:
        result: The result of the release's classes, compared with the behaviours that are closest to them.
    """
    broken: dict[str, str] = {}
    left = dict(sorted(result.failing.items(), key=lambda item: len(item[1].trace.operations)))
    while differing := Counter(clause for one in left.values() for clause in one.divergence.clauses):
        suspect = max(
            differing,
            key=lambda clause: (differing[clause], differing[clause] / max(result.exercised.get(clause, 0), 1)),
        )
        explained = [id_ for id_, one in left.items() if suspect in one.divergence.clauses]
        broken[suspect] = explained[0]
        for id_ in explained:
            del left[id_]
    return broken


def search_divergences(
    dialect: Dialect,
    machines: Sequence[str],
    traces: Path,
    examples: int | None,
    *,
    first: bool = False,
    progress: Progress | None = None,
) -> list[Trace]:
    """Compare a release's classes with a dialect, and return a trace of each difference.

    Args:
        dialect: The dialect, with the name of the release.
        machines: The names of the state machines.
        traces: The directory of the traces.
        examples: The number of examples for each machine; by default the profile's number.
        first: True to stop at the first difference.
        progress: A callback that is called while jars are downloaded.
    """
    found: list[Trace] = []

    def note(event: Event) -> None:
        if isinstance(event, Diverged) and event.implementation:
            found.append(Trace.load(Path(event.trace)))

    plan = Plan(
        (dialect.release,),
        ("jvm",),
        tuple(machines),
        PROFILES["dev"],
        traces,
        max_examples=examples,
        replays=False,
        stop_at_first=first,
        model=False,
    )
    with override_dialect(dialect):
        run(plan, note, progress)
    return found


Change = Mapping[str, Any]
"""Changed behaviours, each with its new value."""
_TOGETHER: Final = 12
"""Maximum number of changes that are tried in pairs."""


@dataclass(frozen=True)
class Probed:
    """Result of probing a release.

    Attributes:
        dialect: The inferred dialect.
        changed: The behaviours that differ from the known release, each with its value.
        because: For each changed behaviour, the ids of the traces that differ without the change.
        failing: The traces that differ in the inferred dialect, too, because no known behaviour explains them.
        unknown: The behaviours whose values are unknown, because no trace depends on them.
    """

    dialect: Dialect
    changed: Change
    because: Mapping[str, tuple[str, ...]]
    failing: Mapping[str, Failing]
    unknown: frozenset[str]

    @property
    def untested(self) -> frozenset[str]:
        """The unknown behaviours without those that are read from the release's own classes."""
        return self.unknown - self.changed.keys()


def probe(trials: Trials, start: Dialect, changed: Change | None = None) -> Probed:
    """Find the known behaviours that explain the traces.

    Args:
        trials: The release's classes.
        start: The dialect with the release's name and the behaviours of a known release.
        changed: The behaviours that are already known to differ.
    """
    found, because = dict(changed or {}), dict[str, tuple[str, ...]]()
    failing = trials.result(with_overrides(start, **found)).failing
    while failing and (best := _best(trials, with_overrides(start, **found), failing)):
        change, left = best
        because |= dict.fromkeys(change, tuple(id_ for id_ in failing if id_ not in left))
        found |= change
        failing = left
    dialect = with_overrides(start, **found)
    return Probed(dialect, found, because, failing, trials.never_read(dialect))


def _best(
    trials: Trials, dialect: Dialect, failing: Mapping[str, Failing]
) -> tuple[Change, Mapping[str, Failing]] | None:
    """Return the change that explains most traces, and the traces that still fail; None if no change explains a trace.

    Of changes that explain equally many traces, a change of a row that names a clause of a difference is preferred,
    then the first in the table. A change that makes another trace fail is not considered.
    """
    implicated = {family(clause) for each in failing.values() for clause in each.divergence.clauses}
    ranked: list[tuple[int, bool, int, Change]] = []
    without_success: list[Change] = []  # changes after which a trace still fails, but with another divergence
    for number, change in enumerate(_changes(dialect)):
        left = trials.failing(with_overrides(dialect, **change), failing)
        if len(left) < len(failing):
            (name,) = change
            ranked.append((len(left), implicated.isdisjoint(ROWS[name].clauses), number, change))
        elif any(left[id_].divergence != failing[id_].divergence for id_ in left):
            without_success.append(change)
    if not ranked:
        for number, (one, other) in enumerate(combinations(without_success[:_TOGETHER], 2)):
            change = {**one, **other}
            left = trials.failing(with_overrides(dialect, **change), failing)
            if len(change) == 2 and len(left) < len(failing):
                ranked.append((len(left), True, number, change))
    for *_, change in sorted(ranked, key=lambda each: each[:3]):
        left = trials.result(with_overrides(dialect, **change)).failing
        if left.keys() < failing.keys():
            return change, left
    return None


def _changes(dialect: Dialect) -> Iterator[Change]:
    """Yield each other value of each row."""
    for name, row in ROWS.items():
        for value in row.values:
            if value != getattr(dialect, name):
                yield {name: value}
