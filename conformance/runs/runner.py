"""Run of machines × implementations × releases, until the examples or the time are used up.

All releases of a run take part in one lockstep, so that every step is compared with all of them. A divergence is
recorded and the run continues. At the end, each unique divergence is shrunk and reported once, with all its releases
and machines. The loop over all examples of a machine replays the regression traces, and then runs chunks, whose results
are added in order.
"""

from __future__ import annotations

import time
from dataclasses import replace
from datetime import UTC, datetime
from importlib.metadata import version as version_of_package
from typing import TYPE_CHECKING

from conformance.attribution.tables import clauses_for
from conformance.clauses.editions import load_edition, use_edition
from conformance.clauses.machines import FILE_MACHINES
from conformance.errors import CoverageError, ToolError
from conformance.events import Diverged, Progressed, Replayed, Result, RunFinished, RunStarted
from conformance.expectations import ExpectationTracker, StaleExpectationError, load_expectations
from conformance.implementations.forms import is_server
from conformance.lockstep.watchdog import exit_process, watch_steps
from conformance.runs.chunk_workers import chunk_workers
from conformance.runs.chunks import ChunkResult, chunks_of, is_over
from conformance.runs.completeness import compared_in
from conformance.runs.divergence_reporter import DivergenceReporter
from conformance.runs.hangs import WorkerHangError, events_of, step_limit
from conformance.runs.machine_run import machine_run
from conformance.runs.plan import Plan, extra_workers_for
from conformance.runs.profiles import resolve_seed
from conformance.runs.server_run import ServerRunContext, run_servers
from conformance.runs.shrinking.hang import shrink_hang
from conformance.runs.verdicts import coverage_of, missing_coverage, results_of, tolerance_rows
from conformance.scratch import scratch_directory
from conformance.subjects import load_subjects

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from conformance.errors import NotDrivenError
    from conformance.events import Event, Sink
    from conformance.kafka.jar_fetch import Progress
    from conformance.lockstep.watchdog import Hang
    from conformance.runs.chunk_workers import ChunkWorkers
    from conformance.runs.chunks import Chunk
    from conformance.runs.machine_run import MachineRun


def run_examples(
    run: MachineRun,
    seed: int,
    limit: float | None,
    sink: Sink,
    workers: ChunkWorkers | None = None,
    on_dropout: Callable[[ChunkResult], None] = lambda _: None,
) -> ChunkResult:
    """Replay the regression traces, then run chunks of examples, until the time is up; at least one of each.

    If the plan has a trace, execute it instead.

    Args:
        run: The machine run of this process.
        limit: The maximum time in seconds; None for no limit.
        sink: A callback that receives progress events.
        workers: The worker pool; None to use only this process.
        on_dropout: A callback that receives the total after every chunk, in which a participant may have dropped out.
    """
    started = time.monotonic()
    deadline = None if limit is None else started + limit

    def is_late() -> bool:
        return deadline is not None and time.monotonic() >= deadline

    wanted = run.plan.examples_of(run.name)
    names = [subject.name for _, subject in run.subjects]
    total = run.total = ChunkResult()
    if not names and run.unsupported:
        return total
    if run.plan.trace is not None:
        total.add(run.replay_trace(run.plan.trace), run.max_failures)
        return total
    if run.plan.replays:
        result, traces, diverged = run.replay_regression_traces(is_late)
        total.add(result, run.max_failures)
        on_dropout(total)
        if traces:
            sink(Replayed(run.name, traces, diverged))
    before = total.examples
    for chunk, evidence in _chunk_results(run, seed, wanted, workers, deadline, total):
        total.add(evidence, run.max_failures)
        on_dropout(total)
        total.cut = (total.cut or is_late()) and total.examples - before < wanted
        over = is_over(total, names, run.max_failures)
        if chunk.ends_round or over:
            used = (time.monotonic() - started) / limit if limit else 0.0
            finished = 1.0 if total.cut else max(chunk.done / wanted, min(1.0, used))
            sink(Progressed(run.name, total.examples, total.steps, finished))
        if over:
            break
    return total


def _chunk_results(
    run: MachineRun, seed: int, wanted: int, workers: ChunkWorkers | None, deadline: float | None, total: ChunkResult
) -> Iterator[tuple[Chunk, ChunkResult]]:
    """Yield the chunks of a seed with their results, in order; stop early if the run must stop."""
    if is_over(total, [subject.name for _, subject in run.subjects], run.max_failures):
        return
    chunks = chunks_of(run.name, wanted, seed)
    if workers is not None:
        yield from workers.perform(run, chunks, deadline)
        return
    for chunk in chunks:
        yield chunk, run.run_chunk(chunk, lambda: deadline is not None and time.monotonic() >= deadline)


__all__ = ["Plan", "run"]


def run(
    plan: Plan,
    sink: Sink,
    progress: Progress | None = None,
    announce: Callable[[str], None] = lambda _: None,
    leave: Callable[[], None] = lambda: exit_process(1),
) -> bool:
    """Execute a plan.

    Args:
        sink: A callback that receives every event.
        progress: A callback that receives the progress of downloads.
        announce: A callback that receives a description of changes to brokers that the harness did not start.
        leave: A function that ends the process with exit code 1; called after a hang has been reported.

    Returns:
        True if the verdict is ``conforms``.

    Raises:
        StaleExpectationError: An expectation is stale; all events have been emitted.
        CoverageError: The plan demands coverage, and rows were missed; all events have been emitted.
        ToolError: The plan cannot be executed: Java is missing, an adapter does not start, or no machine tests any of
            the implementations.
    """
    its = _Runner(plan, sink, progress, announce)

    def give_up(hang: Hang) -> None:
        its.give_up(hang)
        leave()

    with use_edition(plan.edition), watch_steps(step_limit(plan.step_timeout, plan.max_time), give_up):
        return its.carry_out()


def divergences_of(plan: Plan) -> list[Diverged]:
    """Execute a plan, and return its divergences whatever is expected, shrunk and saved.

    Raises:
        ToolError: The plan cannot be executed, or nothing diverges.
    """
    events: list[Event] = []
    with scratch_directory() as nothing_expected:
        run(replace(plan, expectations=nothing_expected), events.append)
    if found := [event for event in events if isinstance(event, Diverged)]:
        return found
    raise ToolError("the divergence did not come again, so its trace was not shrunk")


class _Runner:
    """State of one run.

    Attributes:
        results: The results so far.
        executed: The operations that each machine executed.
        not_driven: The errors of implementations that a machine cannot test.
        uncovered: Messages about rows of the attribution tables that no generated example matched.
        machine: The machine run in progress, or None before the first.
    """

    def __init__(self, plan: Plan, sink: Sink, progress: Progress | None, announce: Callable[[str], None]) -> None:
        self.plan = plan
        self.announce = announce
        self.sink = sink
        self.progress = progress
        self.started = time.monotonic()
        self.seed, self.source = resolve_seed(plan.seed, plan.profile.seed)
        self.ledger = ExpectationTracker(
            load_expectations() if plan.expectations is None else load_expectations(plan.expectations)
        )
        self.results: list[Result] = []
        self.executed: dict[str, set[str]] = {}
        self.not_driven: list[NotDrivenError] = []
        self.uncovered: list[str] = []
        self.reporter = DivergenceReporter(plan, self.seed, sink)
        self.machine: MachineRun | None = None

    def carry_out(self) -> bool:
        """Execute the plan; see :func:`run`."""
        plan = self.plan
        for machine in plan.machines if plan.edition else ():
            self._require_clauses(machine)
        self.sink(
            RunStarted(
                plan.releases,
                plan.implementations,
                plan.machines,
                plan.profile.name,
                plan.level,
                self.seed,
                {"kidx": version_of_package("kidx"), "hypothesis": version_of_package("hypothesis")} | _versions(plan),
                datetime.now(UTC).isoformat(timespec="seconds"),
                seed_source=self.source,
                command=plan.command(self.seed),
                edition=load_edition(plan.edition).edition if plan.edition else "",
            )
        )
        driven = tuple(name for name in plan.implementations if not is_server(name))
        machines = tuple(name for name in plan.machines if name in FILE_MACHINES) if driven else ()
        try:
            with chunk_workers(
                replace(plan, machines=machines), self.ledger, extra_workers_for(plan, machines), self.seed
            ) as workers:
                for number, machine in enumerate(machines):
                    self._drive(machine, len(machines) - number, workers)
        except WorkerHangError as error:
            self.give_up(error.hang, error.task)
            return False
        finally:
            self.reporter.finish()
        if self.not_driven and len(self.not_driven) == len(self.results):
            raise self.not_driven[0]
        servers = self._drive_servers()
        return self._finish(servers and not self.reporter.count)

    def _drive(self, machine: str, machines_left: int, workers: ChunkWorkers | None) -> None:
        """Run one machine for its share of the remaining time."""
        left = self._seconds_left()
        started = time.monotonic()
        with (
            scratch_directory() as scratch,
            machine_run(self.plan, machine, scratch, self.ledger, self.progress) as its,
        ):
            self.machine = its
            limit = None if left is None else left / machines_left
            evidence = run_examples(
                its,
                self.seed,
                limit,
                self.sink,
                workers,
                lambda total: self.reporter.report_first_failures(its, total),
            )
            self.ledger.mark_matched(evidence.matched_expectations)
            self.executed[machine] = {operation for operation, _, _ in evidence.kinds}
            self.not_driven += its.unsupported.values()
            seconds = time.monotonic() - started
            found = self.reporter.found(its, evidence)
            for row in (*coverage_of(its, evidence), *tolerance_rows(its, evidence)):
                self.sink(row)
            self.uncovered += filter(None, (missing_coverage(its, evidence),))
            for result in results_of(its, evidence, found, seconds):
                self.results.append(result)
                self.sink(result)

    def give_up(self, hang: Hang, machine: str = "") -> None:
        """Report a hang, all divergences found before, and the results of each participant."""
        self.reporter.finish()
        if self.machine is not None:
            hang = self._shrunk(self.machine, hang, machine)
            for event in events_of(self.machine, hang, self.machine.total, self.seed, machine):
                if isinstance(event, Result):
                    self.results.append(event)
                self.sink(event)
        self.sink(RunFinished("diverges", self._steps(), time.monotonic() - self.started, {"stuck": True}))

    def _shrunk(self, run: MachineRun, hang: Hang, machine: str) -> Hang:
        """Return the hang with fewer steps before it."""
        participant, limit = hang.divergence.participant, step_limit(self.plan.step_timeout, self.plan.max_time)
        reference = participant not in {subject.name for _, subject in run.subjects}
        specification = "" if reference else run.specification(participant)
        longest = (
            self.plan.shrink_time if self.plan.max_time is None else min(self.plan.shrink_time, self.plan.max_time)
        )
        return shrink_hang(hang, machine or run.name, specification, limit, longest)

    def _drive_servers(self) -> bool:
        """Run the servers of the plan, if any; return True if they conform."""
        circumstances = ServerRunContext(
            self.seed, self._seconds_left, self.sink, self.ledger, self.progress, self.announce
        )
        results = run_servers(self.plan, circumstances)
        self.results += results
        for result in results:
            self.executed.setdefault(result.machine, set()).update(result.details.get("performed", ()))
        return not any(result.divergences for result in results)

    def _steps(self) -> int:
        """Return the number of steps of all machines; a step that several participants execute counts once."""
        steps: dict[tuple[str, str], int] = {}
        for result in self.results:
            key = result.machine, result.release if is_server(result.implementation) else ""
            steps[key] = max(steps.get(key, 0), result.steps)
        return sum(steps.values())

    def _seconds_left(self) -> float | None:
        limit = self.plan.max_time
        return None if limit is None else max(0.0, limit - (time.monotonic() - self.started))

    def _finish(self, conforms: bool) -> bool:
        """Emit the last event.

        Raises:
            StaleExpectationError: A stale expectation exists that the user has to remove.
            CoverageError: The plan demands coverage, and rows were missed.
        """
        exercised = {
            (result.machine, result.implementation, result.release): [id_ for id_, n in result.clauses.items() if n]
            for result in self.results
        }
        unmet = self.ledger.stale(exercised, self.executed)
        own = self.plan.expectations is not None
        # The operation that diverges may be one that was not executed.
        stale = tuple(each for each in unmet if not self.plan.operations and each.must_not_be_stale(own=own))
        unsure = [str(each) for each in unmet if each not in stale]
        compared = compared_in(self.results, 0 if conforms else 1)
        self.sink(
            RunFinished(
                "stale" if stale and conforms else compared.conclusion,
                self._steps(),
                time.monotonic() - self.started,
                ({"stale": list(map(str, stale))} if stale else {})
                | ({"not seen": unsure} if unsure else {})
                | ({"expected": list(map(str, self.ledger.matched))} if self.ledger.matched else {})
                | ({"missing": list(compared.reasons)} if compared.reasons else {})
                | ({"edition": self._since_edition()} if self.plan.edition else {})
                | ({"uncovered": self.uncovered} if self.uncovered else {}),
            )
        )
        if stale:
            raise StaleExpectationError(stale)
        if self.uncovered:
            raise CoverageError("; ".join(self.uncovered))
        return compared.conclusion == "conforms"

    def _require_clauses(self, machine: str) -> None:
        """Check that the edition has a clause that counts for a machine.

        Raises:
            ToolError: The edition has none, so that the machine would conform whatever it finds.
        """
        plan, edition = self.plan, load_edition(self.plan.edition)
        with use_edition(""):
            every = (clause for release in plan.releases for clause in clauses_for(machine, release))
            able = [clause.id for clause in every if clause.counts(plan.level)]
        if able and not any(edition.counts(clause, plan.level) for clause in able):
            raise ToolError(
                f"the edition {edition.edition} has no clause of the {machine} machine; choose others with --machine"
            )

    def _since_edition(self) -> dict[str, list[str]]:
        """Return how the clauses that could have counted differ from the edition of the plan."""
        places = {(result.machine, result.release) for result in self.results}
        with use_edition(""):
            able = {clause.id: clause for place in sorted(places) for clause in clauses_for(*place)}
        counted = [id_ for id_, clause in able.items() if clause.counts(self.plan.level)]
        return load_edition(self.plan.edition).changes(counted)


def _versions(plan: Plan) -> dict[str, str]:
    """Return the versions of third-party implementations, by their ``-i`` arguments."""
    known = load_subjects()
    names = (name for name in plan.implementations if name.startswith("subject:"))
    return {name: known[subject].version for name in names if (subject := name.partition(":")[2]) in known}
