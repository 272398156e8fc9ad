"""A run: machines × implementations × releases, in rounds, until the examples or the time are used up.

All releases of a run take part in one lockstep, so that every step is held against all of them. An implementation that
diverges is reported and leaves; the others go on.
"""

from __future__ import annotations

import shlex
import sys
import time
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import version as version_of_package
from typing import TYPE_CHECKING, Any, Final, Literal

from hypothesis import seed as seeded
from hypothesis import settings
from hypothesis.errors import Flaky
from hypothesis.stateful import run_state_machine_as_test

from conformance import attribution
from conformance.clauses import clauses_for, load_clauses
from conformance.errors import NotDrivenError, ToolError
from conformance.events import Diverged, Progressed, Replayed, Result, RunFinished, RunStarted
from conformance.expectations import Ledger, StaleExpectationError, load_expectations
from conformance.kafka.releases import newest
from conformance.lockstep import DivergenceError
from conformance.lockstep.divergence import failure_json
from conformance.lockstep.generator_coverage import cells_of, demanded_examples, empty_cells, impossible_cells, measured
from conformance.machines import MACHINES, Machine
from conformance.operations import every_signature
from conformance.operations.trace import Trace
from conformance.runs.collecting import rare_collections
from conformance.runs.participation import Attendance
from conformance.runs.profiles import round_of
from conformance.runs.regression_traces import replay_kept
from conformance.runs.repeatable import without_local_constants
from conformance.runs.seeds import chosen_seed
from conformance.runs.shrinking import SECONDS
from conformance.runs.shrunk_failure import shrunk
from conformance.scratch import scratch_directory

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from conformance.events import Sink, Verdict
    from conformance.expectations import Expectation
    from conformance.kafka.broker.backend import Choice
    from conformance.kafka.fetch import Progress
    from conformance.lockstep import Divergence, Lockstep
    from conformance.runs.attached import Attachment
    from conformance.runs.profiles import Profile
    from conformance.runs.seeds import Wish

SEED_OF_ROUND: Final = 1_000_003
_SEED_OF_HAND = 7_919
HAND: Final = 10
"""Examples in one run of Hypothesis.

After its tenth example Hypothesis makes five of six by changing a little in the one before, which suits values and not
state machines: of 100 examples some 80 repeat the same steps. Ten of each seed are all different.
"""


@dataclass(frozen=True)
class Plan:
    """What a run is to do.

    Attributes:
        releases: Kafka releases, oldest first.
        implementations: specifications such as ``"jvm"`` or ``"exec:./my-index"``.
        machines: names of :data:`conformance.machines.MACHINES`.
        profile: how much.
        seed: overrides the profile's; ``"random"`` draws one.
        max_examples: overrides the profile's, for each machine.
        max_time: seconds for the whole run; None for no limit.
        kill_cycles: what a broker does instead of examples: so many times it is killed and started.
        level: ``"observed"`` counts everything, ``"must"`` leaves OBSERVED clauses out of the verdict.
        traces: where shrunk traces are written.
        broker: ``"auto"``, ``"container"`` or ``"local"``: where ``-i broker`` runs.
        expectations: a directory of known divergences; None for the package's own, which are about Kafka's classes.
        kept: whether the traces that the package keeps are performed first.
        attachment: a broker that is running already, instead.
        shrink_time: seconds for shrinking one difference.
    """

    releases: tuple[str, ...]
    implementations: tuple[str, ...]
    machines: tuple[str, ...]
    profile: Profile
    traces: Path
    seed: Wish = None
    max_examples: int | None = None
    max_time: float | None = None
    level: Literal["must", "observed"] = "observed"
    broker: Choice = "auto"
    kill_cycles: int = 0
    expectations: Path | None = None
    kept: bool = True
    attachment: Attachment | None = None
    shrink_time: float = SECONDS


def run(plan: Plan, sink: Sink, progress: Progress | None = None) -> bool:
    """Carries out a plan.

    Args:
        plan: what to do.
        sink: told of every event.
        progress: told while jars are being fetched.

    Returns:
        Whether everything conforms.

    Raises:
        StaleExpectationError: an expectation's clause was exercised, and nothing has met it; the events are complete.
        ToolError: the work cannot be done: no Java, no jars, an adapter that does not start, machines that drive none
            of the implementations.
    """
    started = time.monotonic()
    seed, source = chosen_seed(plan.seed, plan.profile.seed)
    sink(
        RunStarted(
            plan.releases,
            plan.implementations,
            plan.machines,
            plan.profile.name,
            plan.level,
            seed,
            {"kidx": version_of_package("kidx"), "hypothesis": version_of_package("hypothesis")},
            datetime.now(UTC).isoformat(timespec="seconds"),
            seed_source=source,
        )
    )
    ledger = Ledger(load_expectations() if plan.expectations is None else load_expectations(plan.expectations))
    results: list[Result] = []
    conforms = True
    driven = tuple(name for name in plan.implementations if name != "broker")
    machines = tuple(name for name in plan.machines if name in MACHINES)
    not_driven: list[NotDrivenError] = []
    for number, machine in enumerate(machines if driven else ()):
        remaining = None
        if plan.max_time is not None:
            left = plan.max_time - (time.monotonic() - started)
            remaining = max(left, 0.0) / (len(machines) - number)
        with scratch_directory() as scratch, without_local_constants(), rare_collections():
            machine_run = _MachineRun(plan, machine, seed, sink, scratch, ledger, progress)
            results += machine_run.run(remaining)
            conforms = conforms and not machine_run.divergences
            not_driven += machine_run.not_driven
    if not_driven and all(result.unsupported for result in results):
        raise not_driven[0]
    if "broker" in plan.implementations and plan.attachment is not None:
        from conformance.runs.attached import run_attached  # noqa: PLC0415 -- part of an extra

        attached = run_attached(plan.attachment, plan.releases[-1], sink, progress)
        conforms = conforms and not attached.divergences
        results.append(attached)
    elif "broker" in plan.implementations and "broker" in plan.machines:
        from conformance.runs.broker import Budget, Run, run_brokers  # noqa: PLC0415 -- part of an extra

        seconds = None if plan.max_time is None else max(0.0, plan.max_time - (time.monotonic() - started))
        budget = Budget.of_profile(
            plan.profile.name,
            examples=plan.max_examples,
            cycles=plan.kill_cycles,
            seconds=seconds,
            patience=plan.shrink_time,
        )
        of_brokers = run_brokers(plan.releases, Run(seed, budget, plan.traces, sink, ledger, plan.broker), progress)
        conforms = conforms and not any(result.divergences for result in of_brokers)
        results += of_brokers
    stale = _stale_expectations(ledger, results)
    steps = sum({(r.machine, r.release if r.implementation == "broker" else ""): r.steps for r in results}.values())
    sink(
        RunFinished(
            "conforms" if conforms and not stale else "diverges",
            steps,
            time.monotonic() - started,
            {"stale": list(map(str, stale))} if stale else {},
        )
    )
    if stale:
        raise StaleExpectationError(stale)
    return conforms


def _stale_expectations(ledger: Ledger, results: list[Result]) -> tuple[Expectation, ...]:
    """The expectations whose clause was exercised and that nothing has met."""
    return ledger.stale(
        {
            (result.machine, result.implementation, result.release): [id_ for id_, n in result.clauses.items() if n]
            for result in results
        }
    )


class _TimeIsUp(BaseException):
    """Ends Hypothesis between two examples."""


def examples_of(
    machine: type[Machine],
    lockstep: Any,
    how: settings,
    seed: int,
    examples: int,
    is_time_up: Callable[[], bool] = lambda: False,
) -> None:
    """Drives a lockstep through that many examples, hand by hand.

    Args:
        machine: what is done.
        lockstep: by whom.
        how: in how many steps.
        seed: of the first hand.
        examples: how many.
        is_time_up: asked after each, and ends it; the examples up to there are those that this seed always has.

    Raises:
        DivergenceError: somebody differs.
    """

    def teardown(self: Any) -> None:
        super(type(self), self).teardown()
        if sys.exception() is None and is_time_up():
            raise _TimeIsUp

    for number, done in enumerate(range(0, examples, HAND)):
        # Bound anew, because by now somebody may have turned out not to have an operation.
        bound = machine.bind(lockstep)
        timed = type(bound.__name__, (bound,), {"teardown": teardown, "__module__": bound.__module__})
        try:
            run_state_machine_as_test(
                seeded(seed + number * _SEED_OF_HAND)(timed),
                settings=settings(how, max_examples=min(HAND, examples - done)),
            )
        except _TimeIsUp:
            return


class _MachineRun:
    """One machine against all implementations of a plan."""

    def __init__(
        self,
        plan: Plan,
        machine: str,
        seed: int,
        sink: Sink,
        scratch: Path,
        ledger: Ledger,
        progress: Progress | None,
    ) -> None:
        self.plan = plan
        self.name = machine
        self.seed = seed
        self.sink = sink
        self.ledger = ledger
        self.machine = MACHINES[machine]
        self.subjects: list[tuple[str, Attendance]] = []
        self.unsupported: list[str] = []
        self.not_driven: list[NotDrivenError] = []
        for specification in plan.implementations:
            if specification != "broker":
                self._enrol(specification, progress)
        self.lockstep: Lockstep = self.machine.new_lockstep(
            [subject for _, subject in self.subjects], scratch, releases=plan.releases, excuse=self._excused
        )
        for _, subject in self.subjects:
            subject.watch(self.lockstep)
        self.divergences: dict[str, list[Divergence]] = {}
        self.is_cut = False
        self.expected: dict[str, set[str]] = {}

    def _enrol(self, specification: str, progress: Progress | None) -> None:
        """Every release of an implementation takes part; who has nothing that this machine drives is not asked."""
        try:
            for release in self.plan.releases:
                subject = self.machine.subject(specification, release, progress)
                self.subjects.append((specification, Attendance(subject)))
        except NotDrivenError as error:
            self.unsupported.append(specification)
            self.not_driven.append(error)

    def _excused(self, divergence: Divergence) -> bool:
        """Whether a difference is known, or only about what nobody has to copy."""
        specification = self._specification(divergence)
        expectation = self.ledger.match(divergence.clauses, self.name, specification, divergence.release)
        if expectation is not None:
            known = set(filter(expectation.names, divergence.clauses))
        elif self.plan.level == "must" and divergence.observed_only:
            catalogue = load_clauses()
            known = {clause for clause in divergence.clauses if catalogue[clause].level == "OBSERVED"}
        else:
            return False
        self.expected.setdefault(divergence.party, set()).update(known)
        for _, subject in self.subjects:
            if subject.name == divergence.party:
                subject.excuse(divergence.clauses)
        return True

    def _specification(self, divergence: Divergence) -> str:
        """How the diverging implementation was asked for; the reference itself is nobody's."""
        return next((name for name, subject in self.subjects if subject.name == divergence.party), "jvm")

    def run(self, limit: float | None) -> list[Result]:
        """Rounds until the examples or the seconds are used up, or nobody is left; at least one example."""
        started = time.monotonic()
        profile, given = self.plan.profile, self.plan.max_examples
        wanted = given if given is not None else profile.examples_of(self.name)
        done = rounds = 0
        if self.plan.kept and self._is_anybody_left and not self._replay_kept():
            wanted = 0
        first, tally = self.lockstep.tally.examples, self.lockstep.tally

        def is_time_up() -> bool:
            """Hypothesis repeats an example that has failed; it must not end by the clock then."""
            late = limit is not None and time.monotonic() - started >= limit
            return late and tally.examples > first and self.lockstep.failure is None

        while done < wanted and self._is_anybody_left:
            examples = min(round_of(self.name), wanted - done)
            if not self._round(examples, self.seed + rounds * SEED_OF_ROUND, is_time_up):
                break
            rounds += 1
            done += examples
            self.is_cut = is_time_up() and tally.examples - first < wanted
            share = 1.0 if self.is_cut else done / wanted
            if limit:
                share = max(share, min(1.0, (time.monotonic() - started) / limit))
            self.sink(Progressed(self.name, tally.examples, tally.steps, share))
            if self.is_cut:
                break
        seconds = time.monotonic() - started
        self._tell_coverage()
        return [self._result(specification, subject, seconds) for specification, subject in self.subjects] + [
            self._not_asked(specification, release)
            for specification in self.unsupported
            for release in self.plan.releases
        ]

    def _tell_coverage(self) -> None:
        """The histogram of what was done in which state; the ci profile demands cells of it.

        Raises:
            ToolError: one that has to be reached is empty, after as many examples as that takes, or one was reached
                that cannot be.
        """
        tally = self.lockstep.tally
        cells = cells_of(tally.cells)
        # The cells are those of the newest rules: an older release refuses what that answers, and the other way round.
        demanded = (
            self.plan.profile.name == "ci"
            and newest() in self.plan.releases
            and not self.divergences
            and tally.examples >= demanded_examples(self.name)
        )
        for row in measured(self.name, cells, demanded=demanded):
            self.sink(row)
        if not demanded:
            return
        impossible = impossible_cells(self.name, cells)
        if impossible:
            (operation, state, outcome), reason = impossible[0]
            raise ToolError(f"power/cells.toml is wrong: {operation} on {state} came to {outcome}, although: {reason}")
        supported = {operation for operation in every_signature() if self.lockstep.supports(operation)}
        empty = empty_cells(self.name, cells, supported)
        if empty:
            told = ", ".join(f"{operation} on {state}: {outcome}" for operation, state, outcome in empty[:5])
            raise ToolError(f"the {self.name} machine never reached {len(empty)} cells of power/cells.toml: {told}")

    def _not_asked(self, specification: str, release: str) -> Result:
        """The row of an implementation that has nothing this machine could drive."""
        clauses = [clause.id for clause in clauses_for(self.name, release)]
        verdicts: dict[str, Verdict] = dict.fromkeys(clauses, "unsupported")
        result = Result(self.name, specification, release, 0, 0, 0.0, 0, dict.fromkeys(clauses, 0), verdicts)
        self.sink(result)
        return result

    @property
    def _is_anybody_left(self) -> bool:
        """Whether a round tells anything: somebody can still be held, or the reference alone was asked for."""
        if not (self.subjects or self.unsupported):
            return True
        here = {subject.name for subject in self.lockstep.subjects}
        return any("open" not in subject.lacking for _, subject in self.subjects if subject.name in here)

    def _replay_kept(self) -> bool:
        """The kept traces, before anything new is tried; False if the reference itself is wrong."""

        def diverged(error: DivergenceError) -> bool:
            self._report(error, self.seed)
            return self._retire(error.divergence.party)

        traces, diverging, go_on = replay_kept(self.name, self.lockstep, diverged)
        if traces:
            self.sink(Replayed(self.name, traces, diverging))
        return go_on

    def _round(self, examples: int, seed: int, is_time_up: Callable[[], bool]) -> bool:
        """Runs of Hypothesis; False if the reference itself is wrong, so that going on makes no sense."""
        try:
            self.lockstep.failure = None
            examples_of(self.machine, self.lockstep, self.plan.profile.settings(HAND), seed, examples, is_time_up)
        except (DivergenceError, Flaky) as error:
            failure = self.lockstep.failure or error
            if not isinstance(failure, DivergenceError):
                raise
            self._report(shrunk(self.lockstep, failure, seconds=self.plan.shrink_time), seed)
            return self._retire(failure.divergence.party)
        return True

    def _retire(self, party: str) -> bool:
        """Takes a party out; False if it is the reference."""
        for _, subject in self.subjects:
            if subject.name == party:
                subject.retire()
        return self.lockstep.retire(party)

    def _report(self, failure: DivergenceError, seed: int) -> None:
        divergence = failure.divergence
        self.divergences.setdefault(divergence.party, []).append(divergence)
        made_by = {
            "kidx": version_of_package("kidx"),
            "hypothesis": version_of_package("hypothesis"),
            "seed": seed,
            "profile": self.plan.profile.name,
            **({"shrinking": failure.shrinking} if failure.shrinking else {}),
        }
        trace = Trace(self.name, divergence.release, failure.operations, failure_json(divergence), made_by=made_by)
        path = trace.save(self.plan.traces)
        catalogue = load_clauses()
        requirements = tuple((i, catalogue[i].level, catalogue[i].statement) for i in divergence.clauses)
        specification = self._specification(divergence)
        command = ["conformance", "replay", str(path), "--kafka", divergence.release]
        if specification != "jvm":
            command += ["-i", specification]
        self.sink(
            Diverged(
                self.name,
                failure_json(divergence),
                requirements,
                tuple(str(operation) for operation in failure.operations),
                str(path),
                shlex.join(command),
                next((name for name, subject in self.subjects if subject.name == divergence.party), ""),
                failure.shrinking,
            )
        )

    def _result(self, specification: str, subject: Attendance, seconds: float) -> Result:
        tally = self.lockstep.tally
        counts = subject.exercised()
        divergences = self.divergences.get(subject.name, [])
        expected = self.expected.get(subject.name, set())
        clauses = {clause.id: counts.get(clause.id, 0) for clause in clauses_for(self.name, subject.release)}
        verdicts: dict[str, Verdict] = {}
        for clause, count in clauses.items():
            if any(clause in divergence.clauses for divergence in divergences):
                verdicts[clause] = "diverges"
            elif clause in expected:
                verdicts[clause] = "expected-divergence"
            elif count:
                verdicts[clause] = "conforms"
            elif self._lacks(subject, clause):
                verdicts[clause] = "unsupported"
            else:
                verdicts[clause] = "not-run"
        result = Result(
            self.name,
            specification,
            subject.release,
            tally.examples,
            tally.steps,
            seconds,
            len(divergences),
            clauses,
            verdicts,
            {"cut_by_time": True} if self.is_cut else {},
        )
        self.sink(result)
        return result

    def _lacks(self, subject: Attendance, clause: str) -> bool:
        """Whether an implementation has none of the operations that can show a clause."""
        if "open" in subject.lacking:
            return True
        rows = attribution.ROWS.get(self.name, ())
        operations = {name for row in rows if row.clause == clause for name in row.operations.split()}
        return bool(operations) and not any(
            subject.supports(name) and name not in subject.lacking for name in operations
        )
