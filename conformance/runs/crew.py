"""Several processes that share the chunks of a run.

Each has a virtual machine and participants of its own; they are spawned, because a process with a running Java cannot
be forked. Chunks are given out as processes become free and given back in their order, so what is added up does not
depend on how many there are. A process that is still starting costs nothing but its start: chunks go to those that are
ready. A helper that finds no chunk of a machine left goes on with the next machine, so that at the end of each no
process waits for the others.
"""

from __future__ import annotations

import multiprocessing
import tempfile
import threading
import time
from collections.abc import Iterable, Iterator
from concurrent.futures import Future
from concurrent.futures.process import BrokenProcessPool
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Final

from conformance.errors import ToolError
from conformance.kafka.releases import know_releases
from conformance.lockstep.watchdog import Hang, exit_process, watch_steps
from conformance.runs.chunks import chunks_of
from conformance.runs.deaths import death_of
from conformance.runs.evidence import Evidence
from conformance.runs.machine_run import MachineRun, machine_run
from conformance.runs.stuck import StuckError, limit_of, read_stuck, write_stuck
from conformance.runs.tables import Table, Tables
from conformance.scratch import scratch_directory
from kidx.signals import held_signals
from kidx.workers import WorkerPool

if TYPE_CHECKING:
    from conformance.expectations import ExpectationTracker
    from conformance.runs.chunks import Chunk
    from conformance.runs.plan import Plan


_STUCK: Final = "stuck"
"""Where a helping process leaves word of a step that has not come back."""


class Crew:
    """The helping processes of a run, one chunk at a time each.

    Args:
        plan: of the run.
        ledger: the known differences.
        helpers: how many processes besides this one.
        seed: of the run.
        scratch: a directory for their files; what they leave when they are ended goes with it.
    """

    def __init__(self, plan: Plan, ledger: ExpectationTracker, helpers: int, seed: int, scratch: Path) -> None:
        spawn = multiprocessing.get_context("spawn")
        self._pool = WorkerPool(helpers, spawn, _Helper.start, (replace(plan, attachment=None), ledger, scratch))
        self._plan, self._ledger, self._scratch = plan, ledger, scratch
        self._lock = threading.Lock()
        self._idle = 0
        self._tables = Tables(_coming(plan, seed))
        for _ in range(helpers):
            self._pool.submit(_Helper.drive, plan.machines[0]).add_done_callback(self._started)

    def close(self) -> None:
        """Ends the processes, also those that are at work."""
        self._pool.end(patience=5)
        # Only then: an executor that is not waited for complains of its closed pipe when Python ends.
        self._pool.shutdown(wait=True, cancel_futures=True)

    def perform(
        self, run: MachineRun, chunks: Iterable[Chunk], deadline: float | None
    ) -> Iterator[tuple[Chunk, Evidence]]:
        """The chunks with their evidence, in order.

        Args:
            run: the machine's, in this process, which takes chunks as well.
            chunks: all that are wanted.
            deadline: on the monotonic clock, which all processes share.

        Raises:
            StuckError: a step of a helping process has not come back, or has killed it.
            ToolError: a helping process has ended.
        """
        with self._lock:
            table = self._tables.come_to(run.name, chunks, deadline)
            idle, self._idle = self._idle, 0
        for _ in range(idle):
            self._free()
        try:
            for chunk in table.chunks:
                while not table.is_done(chunk) and (own := table.take()) is not None:
                    table.put(own, run.perform_chunk(own, table.is_late))
                try:
                    yield chunk, table.wait(chunk)
                except BrokenProcessPool as error:
                    stuck = read_stuck(self._scratch / _STUCK)
                    if stuck is not None:
                        raise StuckError(*stuck) from None
                    raise self._death(run, chunk) or ToolError(
                        "a process that shared the examples has ended; --jobs 1 does without"
                    ) from error
        finally:
            table.close()

    def _death(self, run: MachineRun, waited_for: Chunk) -> StuckError | None:
        """Return the step that has killed a helping process; None if none does so again."""
        with self._lock:
            lost = self._tables.lost()
        subjects = [(specification, subject.name, subject.release) for specification, subject in run.subjects]
        for machine, chunks in lost:
            own = [waited_for, *chunks] if machine == run.name else chunks
            if (stuck := death_of(self._plan, self._ledger, machine, own, subjects)) is not None:
                return StuckError(machine, stuck)
        return None

    def _started(self, future: Future[str]) -> None:
        """A helper is ready. One that is not, for want of memory for instance, is done without."""
        if not future.cancelled() and future.exception() is None:
            self._free()

    def _free(self) -> None:
        """A helper is free: it gets the next chunk, now or when there is one again."""
        with self._lock:
            taken = self._tables.take()
            if taken is None:
                self._idle += 1
                return
        table, chunk = taken
        try:
            future = self._pool.submit(_perform, table.machine, chunk, table.deadline)
        except RuntimeError as error:  # a process has ended, or the run is over
            broken: Future[Evidence] = Future()
            broken.set_exception(error)
            table.promise(chunk, broken)
            return
        table.promise(chunk, future)
        future.add_done_callback(lambda _: self._free())


def _coming(plan: Plan, seed: int) -> Iterator[Table]:
    """The machines that helpers may begin; none where the time or a difference decides how far a machine gets."""
    if plan.max_time is None and not plan.stop_at_first:
        for machine in plan.machines:
            yield Table(machine, list(chunks_of(machine, plan.examples_of(machine), seed)), None)


class _Helper:
    """What a helping process keeps: the machine that it drives now."""

    plan: ClassVar[Plan]
    ledger: ClassVar[ExpectationTracker]
    scratch: ClassVar[Path]
    run: ClassVar[MachineRun | None] = None
    stack: ClassVar = ExitStack()
    machine_stack: ClassVar = ExitStack()

    @classmethod
    def start(cls, plan: Plan, ledger: ExpectationTracker, scratch: Path) -> None:
        """In the new process."""
        cls.plan, cls.ledger, cls.scratch = plan, ledger, scratch
        know_releases(plan.releases)
        limit = limit_of(plan.step_timeout, plan.max_time)
        cls.stack.enter_context(watch_steps(limit, cls.give_up))

    @classmethod
    def give_up(cls, stuck: Hang) -> None:
        """A step has not come back: says so to the process that has started this one, and ends."""
        if cls.run is not None:
            write_stuck(stuck, cls.run.name, cls.scratch / _STUCK)
        exit_process(1)

    @classmethod
    def drive(cls, machine: str) -> str:
        """Enrols all participants of a machine in this process; its name."""
        if cls.run is None or cls.run.name != machine:
            cls.run = None
            cls.machine_stack.close()
            own = cls.machine_stack.enter_context(
                tempfile.TemporaryDirectory(dir=cls.scratch, ignore_cleanup_errors=True)
            )
            cls.run = cls.machine_stack.enter_context(machine_run(cls.plan, machine, Path(own), cls.ledger))
        return machine


def _perform(machine: str, chunk: Chunk, deadline: float | None) -> Evidence:
    _Helper.drive(machine)
    assert _Helper.run is not None
    if _Helper.run.unsupported and not _Helper.run.subjects:
        return Evidence(chunk.number)  # the run does not ask for it
    return _Helper.run.perform_chunk(chunk, lambda: deadline is not None and time.monotonic() >= deadline)


@contextmanager
def crew_of(plan: Plan, ledger: ExpectationTracker, helpers: int, seed: int) -> Iterator[Crew | None]:
    """A crew while the block runs; None if no helper is worth its start."""
    if helpers < 1:
        yield None
        return
    with scratch_directory() as scratch:
        crew = None
        try:
            with held_signals():
                crew = Crew(plan, ledger, helpers, seed, scratch)
            yield crew
        finally:
            if crew is not None:
                crew.close()
