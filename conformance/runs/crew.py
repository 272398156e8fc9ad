"""Several processes that share the hands of a run.

Each has a virtual machine and participants of its own; they are spawned, because a process with a running Java cannot
be forked. Hands are handed out as processes become free and given back in their order, so what is added up does not
depend on how many there are. A process that is still starting costs nothing but its start: hands go to those that are
ready.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import tempfile
import threading
import time
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Final

from conformance.errors import ToolError
from conformance.lockstep.step_watch import Stuck, end_process, watched_steps
from conformance.runs.machine_run import MachineRun, machine_run
from conformance.runs.stuck import StuckError, limit_of, read_stuck, write_stuck
from conformance.scratch import scratch_directory

if TYPE_CHECKING:
    from conformance.expectations import Ledger
    from conformance.runs.dealt import Dealt
    from conformance.runs.hands import Hand
    from conformance.runs.plan import Plan


_STUCK: Final = "stuck"
"""Where a helping process leaves word of a step that has not come back."""


class Crew:
    """The helping processes of a run, one hand at a time each.

    Args:
        plan: of the run.
        ledger: the known differences.
        helpers: how many processes besides this one.
        scratch: a directory for their files; what they leave when they are ended goes with it.
    """

    def __init__(self, plan: Plan, ledger: Ledger, helpers: int, scratch: Path) -> None:
        spawn = multiprocessing.get_context("spawn")
        self._pool = ProcessPoolExecutor(
            helpers, spawn, _Helper.start, (replace(plan, attachment=None), ledger, scratch)
        )
        self._scratch = scratch
        self._lock = threading.Lock()
        self._idle = 0
        self._table: _Table | None = None
        for _ in range(helpers):
            self._pool.submit(_Helper.drive, plan.machines[0]).add_done_callback(self._started)

    def close(self) -> None:
        """Ends the processes, also those that are at work."""
        processes = list((self._pool._processes or {}).values())  # noqa: SLF001 -- public from Python 3.14 on
        for process in processes:
            process.terminate()
        for process in processes:
            process.join(5)
            if process.exitcode is None:
                process.kill()
        # Only then: an executor that is not waited for complains of its closed pipe when Python ends.
        self._pool.shutdown(wait=True, cancel_futures=True)

    def dealt(self, run: MachineRun, hands: Iterable[Hand], deadline: float | None) -> Iterator[tuple[Hand, Dealt]]:
        """The hands with what came of each, in order.

        Args:
            run: the machine's, in this process, which takes hands as well.
            hands: all that are wanted.
            deadline: on the monotonic clock, which all processes share.

        Raises:
            StuckError: a step of a helping process has not come back.
            ToolError: a helping process has ended.
        """
        table = _Table(run.name, list(hands), deadline)
        with self._lock:
            self._table = table
            idle, self._idle = self._idle, 0
        for _ in range(idle):
            self._free()
        try:
            for hand in table.hands:
                while not table.is_dealt(hand) and (own := table.take()) is not None:
                    table.put(own, run.deal(own, table.is_late))
                try:
                    yield hand, table.wait(hand)
                except BrokenProcessPool as error:
                    stuck = read_stuck(self._scratch / _STUCK)
                    if stuck is not None:
                        raise StuckError(stuck) from None
                    raise ToolError("a process that shared the examples has ended; --jobs 1 does without") from error
        finally:
            table.close()

    def _started(self, future: Future[str]) -> None:
        """A helper is ready. One that is not, for want of memory for instance, is done without."""
        if not future.cancelled() and future.exception() is None:
            self._free()

    def _free(self) -> None:
        """A helper is free: it gets the next hand, now or when there is one again."""
        with self._lock:
            table = self._table
            hand = None if table is None else table.take()
            if table is None or hand is None:
                self._idle += 1
                return
        try:
            future = self._pool.submit(_deal, table.machine, hand, table.deadline)
        except RuntimeError as error:  # a process has ended, or the run is over
            future = Future()
            future.set_exception(error)
        table.promise(hand, future)
        if not future.done():
            future.add_done_callback(lambda _: self._free())


class _Table:
    """The hands of one machine: which are still to be dealt, and what came of the others."""

    def __init__(self, machine: str, hands: list[Hand], deadline: float | None) -> None:
        self.machine = machine
        self.hands = hands
        self.deadline = deadline
        self.done: dict[int, Dealt] = {}
        self._promised: dict[int, Future[Dealt]] = {}
        self._left = iter(hands)
        self._lock = threading.Lock()
        self._changed = threading.Condition(self._lock)
        self._is_closed = False

    def is_late(self) -> bool:
        return self.deadline is not None and time.monotonic() >= self.deadline

    def take(self) -> Hand | None:
        with self._lock:
            return None if self._is_closed else next(self._left, None)

    def put(self, hand: Hand, dealt: Dealt) -> None:
        self.done[hand.number] = dealt

    def promise(self, hand: Hand, future: Future[Dealt]) -> None:
        with self._changed:
            self._promised[hand.number] = future
            self._changed.notify_all()

    def is_dealt(self, hand: Hand) -> bool:
        with self._lock:
            promised = self._promised.get(hand.number)
            return hand.number in self.done or (promised is not None and promised.done())

    def wait(self, hand: Hand) -> Dealt:
        if hand.number in self.done:
            return self.done.pop(hand.number)
        with self._changed:
            while hand.number not in self._promised:
                self._changed.wait()
        return self._promised.pop(hand.number).result()

    def close(self) -> None:
        with self._lock:
            self._is_closed = True


class _Helper:
    """What a helping process keeps: the machine that it drives now."""

    plan: ClassVar[Plan]
    ledger: ClassVar[Ledger]
    scratch: ClassVar[Path]
    run: ClassVar[MachineRun | None] = None
    stack: ClassVar = ExitStack()
    machine_stack: ClassVar = ExitStack()

    @classmethod
    def start(cls, plan: Plan, ledger: Ledger, scratch: Path) -> None:
        """In the new process: an interrupt is for the one who started it."""
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        cls.plan, cls.ledger, cls.scratch = plan, ledger, scratch
        limit = limit_of(plan.step_timeout, plan.max_time)
        cls.stack.enter_context(watched_steps(limit, cls.give_up))
        threading.Thread(target=_end_with_parent, daemon=True).start()

    @classmethod
    def give_up(cls, stuck: Stuck) -> None:
        """A step has not come back: says so to the process that has started this one, and ends."""
        if cls.run is not None:
            write_stuck(stuck, cls.run.name, cls.scratch / _STUCK)
        end_process(1)

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


def _end_with_parent() -> None:
    """A process whose parent was killed would wait for work for ever."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
    os._exit(1)


def _deal(machine: str, hand: Hand, deadline: float | None) -> Dealt:
    _Helper.drive(machine)
    assert _Helper.run is not None
    return _Helper.run.deal(hand, lambda: deadline is not None and time.monotonic() >= deadline)


@contextmanager
def crew_of(plan: Plan, ledger: Ledger, helpers: int) -> Iterator[Crew | None]:
    """A crew while the block runs; None if no helper is worth its start."""
    if helpers < 1:
        yield None
        return
    with scratch_directory() as scratch:
        crew = Crew(plan, ledger, helpers, scratch)
        try:
            yield crew
        finally:
            crew.close()
