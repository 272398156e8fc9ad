"""Watchdog for steps that implementations execute in this process: a step that hangs is a divergence.

A loop in Java or Python can only be stopped by ending the process. So a thread polls all locksteps. If a step is in
progress for too long, the thread reports the participant, the step, and the stack of the executing thread to a
callback. The callback saves the results and ends the process (:func:`exit_process`).

The watchdog counts polls, not seconds, so that a process that was suspended for a minute is not reported as hanging.
The objects that it polls execute steps in this process.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import sys
import threading
import traceback
import weakref
from dataclasses import dataclass
from itertools import takewhile
from multiprocessing import util
from typing import TYPE_CHECKING, Any, Final, Protocol

from conformance.lockstep.divergence import Divergence, DivergenceError
from conformance.scratch import remove_all

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterator, Sequence

    from conformance.operations import Json, Operation


class Executor(Protocol):
    """Executor of steps: a participant of a lockstep, or an implementation in a fuzzer."""

    @property
    def implementation(self) -> Any:
        """The implementation that executes the steps."""


class ObservableRun(Protocol):
    """Run that executes steps: a lockstep, or a fuzzer."""

    @property
    def executing(self) -> Executor | None:
        """The participant that is executing a step in Python, or None."""

    @property
    def statistics(self) -> Any:
        """The statistics with the number of examples and steps; read only together with ``executing``."""

    @property
    def participants(self) -> Sequence[Executor]:
        """All executors."""

    @property
    def operations(self) -> Sequence[Operation]:
        """The operations of the example in progress."""

    def step_of(self, participant: Any) -> int:
        """Return the number of the step that a participant is executing; may be called from another thread."""


ACTIVE_RUNS: Final[weakref.WeakSet[ObservableRun]] = weakref.WeakSet()
"""All runs in this process."""


STEP_TIMEOUT_S: Final = 30.0
"""The default maximum duration of a step in seconds. The slowest steps take milliseconds on an idle machine."""
_POLLS_BEFORE_HANG: Final = 20
"""The number of polls after which a step counts as hanging."""
_FRAMES: Final = 12
"""The maximum number of frames of a hanging thread that a report contains."""
_PATIENCE: Final = 5.0
"""The number of seconds that the end of the process may take."""
_PACKAGE_DIRECTORY: Final = os.path.dirname(__file__)  # noqa: PTH120 -- compared with the file names of frames


@dataclass(frozen=True)
class Hang:
    """Step that did not return.

    Attributes:
        divergence: The participant and the step; ``actual`` is the stack of the thread.
        operations: The steps up to the hang.
        shrinking: The result of shrinking the steps.
        shape: The signature of the divergence in events: ``no answer``, or ``process died``.
    """

    divergence: Divergence
    operations: tuple[Operation, ...]
    shrinking: str = "not shrunk"
    shape: str = "no answer"

    @property
    def failure(self) -> DivergenceError:
        """The hang as the error that a lockstep raises."""
        failure = DivergenceError(self.divergence, self.operations)
        failure.shrinking = self.shrinking
        return failure


def hang_from_json(failure: Json, operations: tuple[Operation, ...], shrinking: str = "not shrunk") -> Hang:
    """Return a hang from its divergence as JSON (:func:`conformance.lockstep.divergence.failure_json`).

    Args:
        failure: The divergence as in a trace.
        operations: The steps up to the hang, or more.
        shrinking: The result of shrinking the steps.
    """
    failure = dict(failure)
    for name in ("aspects", "clauses"):
        failure[name] = tuple(failure[name])
    step = failure["step"]
    return Hang(Divergence(operation=operations[step], **failure), operations[: step + 1], shrinking)


class _Watchdog(threading.Thread):
    """Thread that polls all locksteps until it is stopped."""

    def __init__(self, limit: float, on_hang: Callable[[Hang], None]) -> None:
        super().__init__(name="kidx-watchdog", daemon=True)
        self._limit = limit
        self._on_hang = on_hang
        self._performer = threading.get_ident()
        self._stopped = threading.Event()
        self._seen: dict[Hashable, int] = {}

    def stop(self) -> None:
        self._stopped.set()

    def run(self) -> None:
        while not self._stopped.wait(self._limit / _POLLS_BEFORE_HANG):
            try:
                hang = self._poll()
            except (RuntimeError, KeyError, IndexError):
                continue  # the locksteps changed during the poll
            if hang is not None and not self._stopped.is_set():
                self._on_hang(hang)
                return

    def _poll(self) -> Hang | None:
        """Return a step that has been in progress for too many polls, or None."""
        now: dict[Hashable, int] = {}
        for lockstep in list(ACTIVE_RUNS):
            for key, participant in _in_progress(lockstep):
                now[key] = self._seen.get(key, 0) + 1
                if now[key] > _POLLS_BEFORE_HANG:
                    return self._hang(lockstep, participant)
        self._seen = now
        return None

    def _hang(self, lockstep: ObservableRun, participant: Executor) -> Hang:
        implementation = participant.implementation
        number = lockstep.step_of(participant)
        operations = tuple(lockstep.operations[: number + 1])
        own = implementation.step_in_progress
        stack = implementation.stack() if own is not None and own() else self._python_stack()
        divergence = Divergence(
            number,
            operations[-1],
            implementation.name,
            implementation.release,
            "kidx",
            ("outcome",),
            f"an answer within {self._limit:g} s",
            "\n".join(["no answer; it is at", *(f"  {line}" for line in stack.splitlines()[:_FRAMES])]),
            (),
        )
        return Hang(divergence, operations)

    def _python_stack(self) -> str:
        """Return the stack of the thread that executes the steps, the innermost frame first."""
        frame = sys._current_frames().get(self._performer)  # noqa: SLF001 -- the only way to another thread's frames
        inner = takewhile(
            lambda one: not one.filename.startswith(_PACKAGE_DIRECTORY), reversed(traceback.extract_stack(frame))
        )
        return "\n".join(f"{one.name} ({one.filename}:{one.lineno})" for one in inner)


def _in_progress(lockstep: ObservableRun) -> Iterator[tuple[Hashable, Executor]]:
    """Yield the participants that are executing a step, each with a key for exactly this step."""
    at = lockstep.executing
    for participant in lockstep.participants:
        own = participant.implementation.step_in_progress
        if own is not None:
            if step := own():
                yield (id(participant), step), participant
        elif participant is at and participant.implementation.in_process:
            done = lockstep.statistics
            yield (id(participant), done.examples, done.steps), participant


@contextlib.contextmanager
def watch_steps(limit: float, on_hang: Callable[[Hang], None]) -> Iterator[None]:
    """Watch the steps that this thread executes in the block.

    Args:
        limit: The maximum duration of a step in seconds.
        on_hang: A callback that receives a hang, in another thread. It has to end the process.
    """
    watchdog = _Watchdog(limit, on_hang)
    watchdog.start()
    try:
        yield
    finally:
        watchdog.stop()


def exit_process(code: int) -> None:
    """Remove scratch files and end the process from any thread, without waiting for the other threads."""
    for child in multiprocessing.active_children():
        child.terminate()
    # The finalizers remove semaphores of worker processes, about which the resource tracker would print warnings.
    finalizers = threading.Thread(target=vars(util)["_run_finalizers"], daemon=True)
    finalizers.start()
    finalizers.join(_PATIENCE)
    remove_all()
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError):
            stream.flush()
    os._exit(code)
