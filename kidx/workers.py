"""Worker processes that ignore interrupts, and that end with the process that started them.

An interrupt from the terminal goes to the whole group of processes. A worker ignores it: the process that started the
worker ends it immediately, even if it holds a lock.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from collections.abc import Callable
from concurrent.futures import Future, ProcessPoolExecutor
from types import TracebackType
from typing import Any, ParamSpec, TypeVar

from kidx.signals import SIGNALS, held_signals

P = ParamSpec("P")
T = TypeVar("T")


class WorkerPool(ProcessPoolExecutor):
    """Executor whose workers are killed if an exception ends its block.

    Args:
        workers: number of processes.
        context: start method of the processes.
        initializer: function that each process calls first, or None.
        arguments: arguments of the initializer.
    """

    def __init__(
        self,
        workers: int,
        context: multiprocessing.context.BaseContext,
        initializer: Callable[..., object] | None = None,
        arguments: tuple[Any, ...] = (),
    ) -> None:
        super().__init__(workers, context, _start, (initializer, arguments))

    def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        """Schedule a call; signals are held back between the start of a process and its registration."""
        with held_signals():
            return super().submit(fn, *args, **kwargs)

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, where: TracebackType | None
    ) -> None:
        if kind is not None:
            self.end()
        super().__exit__(kind, value, where)

    def end(self, patience: float = 0) -> None:
        """End the workers, even if they are busy.

        Args:
            patience: seconds from SIGTERM to SIGKILL; 0 sends SIGKILL only.
        """
        processes = list((self._processes or {}).values())
        if patience:
            for process in processes:
                process.terminate()
            for process in processes:
                process.join(patience)
        for process in processes:
            process.kill()


def start_quietly(process: multiprocessing.process.BaseProcess) -> None:
    """Start a process whose target calls :func:`begin_worker` first; until then, its signals are blocked."""
    with held_signals():
        process.start()


def begin_worker() -> None:
    """Prepare a worker process: ignore interrupts, and end when the process that started the worker ends."""
    for number in SIGNALS:
        signal.signal(number, signal.SIG_IGN if number == signal.SIGINT else signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, SIGNALS)
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _start(initializer: Callable[..., object] | None, arguments: tuple[Any, ...]) -> None:
    begin_worker()
    if initializer is not None:
        initializer(*arguments)


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
    os._exit(1)
