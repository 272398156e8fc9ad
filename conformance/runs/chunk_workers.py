"""Pool of worker processes that share the chunks (groups of examples) of a run.

Each worker has its own Java virtual machine and participants. Workers are spawned, because a process with a running
Java cannot be forked. Each free worker gets the next chunk. Results are returned in the order of the chunks, so that
the totals do not depend on the number of workers. A worker that is still starting delays nothing, because chunks go to
the workers that are ready. If no chunks of a machine are left, a worker continues with the next machine, so that no
worker waits for the others.
"""

from __future__ import annotations

import multiprocessing
import tempfile
import threading
import time
from collections import deque
from concurrent.futures import Future
from concurrent.futures.process import BrokenProcessPool
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Final

from conformance.clauses.editions import use_edition
from conformance.errors import ToolError
from conformance.kafka.releases import register_releases
from conformance.lockstep.watchdog import Hang, exit_process, watch_steps
from conformance.runs.chunks import ChunkResult, chunks_of
from conformance.runs.crashes import find_crash
from conformance.runs.hangs import WorkerHangError, load_hang, save_hang, step_limit
from conformance.runs.machine_run import MachineRun, machine_run
from conformance.scratch import scratch_directory
from kidx.signals import held_signals
from kidx.workers import WorkerPool

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from conformance.expectations import ExpectationTracker
    from conformance.runs.chunks import Chunk
    from conformance.runs.plan import Plan


class ChunkQueue:
    """Queue of the chunks of one machine, with the results of finished ones.

    Attributes:
        chunks: All chunks of the machine, in order.
        deadline: The time on the monotonic clock at which the machine's run ends; None for no limit.
        done: The results of chunks that this process ran, by chunk number.
    """

    def __init__(self, machine: str, chunks: list[Chunk], deadline: float | None) -> None:
        self.machine = machine
        self.chunks = chunks
        self.deadline = deadline
        self.done: dict[int, ChunkResult] = {}
        self._assigned: dict[int, Future[ChunkResult]] = {}
        self._left = iter(chunks)
        self._lock = threading.Lock()
        self._changed = threading.Condition(self._lock)
        self._is_closed = False

    def is_late(self) -> bool:
        """Return True if the deadline has passed."""
        return self.deadline is not None and time.monotonic() >= self.deadline

    def take(self) -> Chunk | None:
        """Return the next chunk; None if all have been taken, or if the run has continued with another machine."""
        with self._lock:
            return None if self._is_closed else next(self._left, None)

    def put(self, chunk: Chunk, evidence: ChunkResult) -> None:
        """Store the result of a chunk that this process ran."""
        self.done[chunk.number] = evidence

    def assign(self, chunk: Chunk, future: Future[ChunkResult]) -> None:
        """Store the future of a chunk that a worker runs."""
        with self._changed:
            self._assigned[chunk.number] = future
            self._changed.notify_all()

    def is_done(self, chunk: Chunk) -> bool:
        """Return True if the result of a chunk is available."""
        with self._lock:
            promised = self._assigned.get(chunk.number)
            return chunk.number in self.done or (promised is not None and promised.done())

    def wait(self, chunk: Chunk) -> ChunkResult:
        """Wait for the result of a chunk, and return it."""
        if chunk.number in self.done:
            return self.done.pop(chunk.number)
        with self._changed:
            while chunk.number not in self._assigned:
                self._changed.wait()
        return self._assigned.pop(chunk.number).result()

    def lost(self) -> list[Chunk]:
        """Return the chunks whose worker has ended without a result."""
        with self._lock:
            failed = {number for number, future in self._assigned.items() if future.done() and future.exception()}
        return [chunk for chunk in self.chunks if chunk.number in failed]

    def close(self) -> None:
        """Stop handing out chunks."""
        with self._lock:
            self._is_closed = True


class ChunkQueues:
    """Chunk queues of a run's machines, in the order of the machines.

    Args:
        coming: The queues of the machines that workers may begin early. An iterator, which creates a queue when it is
            needed.
    """

    def __init__(self, coming: Iterable[ChunkQueue]) -> None:
        self._upcoming_machines = iter(coming)
        self._open: deque[ChunkQueue] = deque()

    def advance_to(self, machine: str, chunks: Iterable[Chunk], deadline: float | None) -> ChunkQueue:
        """Return the queue of the machine that the run has reached; drop the chunks of earlier machines."""
        while (queue := self._first()) is not None:
            if queue.machine == machine:
                return queue
            self._open.popleft().close()
        queue = ChunkQueue(machine, list(chunks), deadline)
        self._open.append(queue)
        return queue

    def lost(self) -> list[tuple[str, list[Chunk]]]:
        """Return the lost chunks of each machine."""
        return [(queue.machine, queue.lost()) for queue in self._open]

    def _first(self) -> ChunkQueue | None:
        return self._open[0] if self._open else self._open_next()

    def _open_next(self) -> ChunkQueue | None:
        queue = next(self._upcoming_machines, None)
        if queue is not None:
            self._open.append(queue)
        return queue

    def take(self) -> tuple[ChunkQueue, Chunk] | None:
        """Return the next chunk of the current machine, or else of the first later machine that has one."""
        for queue in self._open:
            if (chunk := queue.take()) is not None:
                return queue, chunk
        while (later := self._open_next()) is not None:
            if (chunk := later.take()) is not None:
                return later, chunk
        return None


_HANG: Final = "hang"
"""The name of the directory in which a worker saves a hang."""


class ChunkWorkers:
    """Worker processes of a run. Each runs one chunk at a time.

    Args:
        helpers: The number of workers in addition to this process.
        scratch: A directory for the files of the workers, which is removed at the end.
    """

    def __init__(self, plan: Plan, ledger: ExpectationTracker, helpers: int, seed: int, scratch: Path) -> None:
        spawn = multiprocessing.get_context("spawn")
        self._pool = WorkerPool(helpers, spawn, _Worker.start, (replace(plan, attachment=None), ledger, scratch))
        self._plan, self._ledger, self._scratch = plan, ledger, scratch
        self._lock = threading.Lock()
        self._idle = 0
        self._queues = ChunkQueues(_upcoming_machines(plan, seed))
        for _ in range(helpers):
            self._pool.submit(_Worker.prepare, plan.machines[0]).add_done_callback(self._started)

    def close(self) -> None:
        """End the processes, including busy ones."""
        self._pool.end(patience=5)
        # The management thread is joined, because it would otherwise report a closed pipe when Python exits.
        self._pool.shutdown(wait=True, cancel_futures=True)

    def perform(
        self, run: MachineRun, chunks: Iterable[Chunk], deadline: float | None
    ) -> Iterator[tuple[Chunk, ChunkResult]]:
        """Yield the chunks with their results, in order.

        Args:
            run: The machine run of this process, which executes chunks as well.
            chunks: All chunks of the machine.
            deadline: The time on the monotonic clock, which all processes share, at which the run ends.

        Raises:
            WorkerHangError: A step of a worker hangs, or has killed the worker.
            ToolError: A worker has ended for another reason.
        """
        with self._lock:
            queue = self._queues.advance_to(run.name, chunks, deadline)
            idle, self._idle = self._idle, 0
        for _ in range(idle):
            self._assign_next()
        try:
            for chunk in queue.chunks:
                while not queue.is_done(chunk) and (own := queue.take()) is not None:
                    queue.put(own, run.run_chunk(own, queue.is_late))
                try:
                    yield chunk, queue.wait(chunk)
                except BrokenProcessPool as error:
                    hang = load_hang(self._scratch / _HANG)
                    if hang is not None:
                        raise WorkerHangError(*hang) from None
                    raise self._find_crash(run, chunk) or ToolError(
                        "a worker process ended unexpectedly (out of memory?); retry with --jobs 1"
                    ) from error
        finally:
            queue.close()

    def _find_crash(self, run: MachineRun, waited_for: Chunk) -> WorkerHangError | None:
        """Return the step that has killed a worker, or None if no step kills a process when the chunks run again."""
        with self._lock:
            lost = self._queues.lost()
        subjects = [(specification, subject.name, subject.release) for specification, subject in run.subjects]
        for machine, chunks in lost:
            own = [waited_for, *chunks] if machine == run.name else chunks
            if (hang := find_crash(self._plan, self._ledger, machine, own, subjects)) is not None:
                return WorkerHangError(machine, hang)
        return None

    def _started(self, future: Future[str]) -> None:
        """Mark a worker as ready. A worker that fails to start, for example without memory, is not used."""
        if not future.cancelled() and future.exception() is None:
            self._assign_next()

    def _assign_next(self) -> None:
        """Assign the next chunk to a worker that has become free; without a chunk, count the worker as idle."""
        with self._lock:
            taken = self._queues.take()
            if taken is None:
                self._idle += 1
                return
        queue, chunk = taken
        try:
            future = self._pool.submit(_perform, queue.machine, chunk, queue.deadline)
        except RuntimeError as error:  # a worker has ended, or the run has ended
            broken: Future[ChunkResult] = Future()
            broken.set_exception(error)
            queue.assign(chunk, broken)
            return
        queue.assign(chunk, future)
        future.add_done_callback(lambda _: self._assign_next())


def _upcoming_machines(plan: Plan, seed: int) -> Iterator[ChunkQueue]:
    """Yield the machines that workers may begin early; none if the time or the first divergence limits the examples."""
    if plan.max_time is None and not plan.stop_at_first:
        for machine in plan.machines:
            yield ChunkQueue(machine, list(chunks_of(machine, plan.examples_of(machine), seed)), None)


class _Worker:
    """State of a worker process: the arguments of its start, and the machine whose participants it has created."""

    plan: ClassVar[Plan]
    ledger: ClassVar[ExpectationTracker]
    scratch: ClassVar[Path]
    run: ClassVar[MachineRun | None] = None
    stack: ClassVar = ExitStack()
    machine_stack: ClassVar = ExitStack()

    @classmethod
    def start(cls, plan: Plan, ledger: ExpectationTracker, scratch: Path) -> None:
        """Initialize the new process."""
        cls.plan, cls.ledger, cls.scratch = plan, ledger, scratch
        register_releases(plan.releases)
        cls.stack.enter_context(use_edition(plan.edition))
        limit = step_limit(plan.step_timeout, plan.max_time)
        cls.stack.enter_context(watch_steps(limit, cls.give_up))

    @classmethod
    def give_up(cls, hang: Hang) -> None:
        """Save a hang for the parent process, and exit."""
        if cls.run is not None:
            save_hang(hang, cls.run.name, cls.scratch / _HANG)
        exit_process(1)

    @classmethod
    def prepare(cls, machine: str) -> str:
        """Create all participants of a machine in this process, and return the machine's name."""
        if cls.run is None or cls.run.name != machine:
            cls.run = None
            cls.machine_stack.close()
            own = cls.machine_stack.enter_context(
                tempfile.TemporaryDirectory(dir=cls.scratch, ignore_cleanup_errors=True)
            )
            cls.run = cls.machine_stack.enter_context(machine_run(cls.plan, machine, Path(own), cls.ledger))
        return machine


def _perform(machine: str, chunk: Chunk, deadline: float | None) -> ChunkResult:
    """Run a chunk in the worker process."""
    _Worker.prepare(machine)
    assert _Worker.run is not None
    if _Worker.run.unsupported and not _Worker.run.subjects:
        return ChunkResult(chunk.number)  # the run does not use its result
    return _Worker.run.run_chunk(chunk, lambda: deadline is not None and time.monotonic() >= deadline)


@contextmanager
def chunk_workers(plan: Plan, ledger: ExpectationTracker, helpers: int, seed: int) -> Iterator[ChunkWorkers | None]:
    """Provide a worker pool in the block; None if the run is too small for workers."""
    if helpers < 1:
        yield None
        return
    with scratch_directory() as scratch:
        workers = None
        try:
            with held_signals():
                workers = ChunkWorkers(plan, ledger, helpers, seed, scratch)
            yield workers
        finally:
            if workers is not None:
                workers.close()
