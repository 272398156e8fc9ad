"""A watchdog over the steps that implementations perform in this process: one that does not come back is a difference.

Nothing can end a loop in Java or in Python from outside but the end of the process. So a thread looks at all locksteps
now and then. When one step is seen in progress for too long, the thread says which participant, which step, and where
the performing thread is; what it calls then writes what is to be kept and ends the process (:func:`end_process`).

Looks are counted, not seconds: a process that was stopped for a minute has not looked meanwhile.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import sys
import threading
import traceback
from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass
from itertools import takewhile
from multiprocessing import util
from typing import TYPE_CHECKING, Final

from conformance.lockstep.divergence import Divergence, DivergenceError
from conformance.lockstep.watched import WATCHED
from conformance.scratch import remove_all

if TYPE_CHECKING:
    from conformance.lockstep.watched import Performer, Watched
    from conformance.operations import Json, Operation

LIMIT: Final = 30.0
"""Seconds that a step may take. The slowest takes milliseconds; the rest is for machines that do a lot else."""
_LOOKS: Final = 20
"""How often a step is looked at before it is called stuck."""
_FRAMES: Final = 12
_PATIENCE: Final = 5.0
_OURS: Final = os.path.dirname(__file__)  # noqa: PTH120 -- compared with the file names of frames


@dataclass(frozen=True)
class Stuck:
    """A step that has not come back.

    Attributes:
        divergence: the participant and the step; ``actual`` says where the thread is.
        operations: the steps up to it.
        shrinking: how far they were shrunk, in words.
        shape: the word for it in events: ``no answer``, or ``process died``.
    """

    divergence: Divergence
    operations: tuple[Operation, ...]
    shrinking: str = "not shrunk"
    shape: str = "no answer"

    @property
    def failure(self) -> DivergenceError:
        """The same as the error that a lockstep raises."""
        failure = DivergenceError(self.divergence, self.operations)
        failure.shrinking = self.shrinking
        return failure


def stuck_of(told: Json, operations: tuple[Operation, ...], shrinking: str = "not shrunk") -> Stuck:
    """What ``failure_json`` of a step's divergence was made of.

    Args:
        told: the difference as a trace carries it.
        operations: the steps up to it, or more.
        shrinking: how far they were shrunk.
    """
    told = dict(told)
    told["participant"] = told.pop("party")
    for name in ("aspects", "clauses"):
        told[name] = tuple(told[name])
    step = told["step"]
    return Stuck(Divergence(operation=operations[step], **told), operations[: step + 1], shrinking)


class _Watchdog(threading.Thread):
    """Looks at all locksteps until it is told to stop."""

    def __init__(self, limit: float, tell: Callable[[Stuck], None]) -> None:
        super().__init__(name="kidx-watchdog", daemon=True)
        self._limit = limit
        self._tell = tell
        self._performer = threading.get_ident()
        self._stopped = threading.Event()
        self._seen: dict[Hashable, int] = {}

    def stop(self) -> None:
        self._stopped.set()

    def run(self) -> None:
        while not self._stopped.wait(self._limit / _LOOKS):
            try:
                stuck = self._look()
            except (RuntimeError, KeyError, IndexError):
                continue  # the locksteps changed while they were looked at
            if stuck is not None and not self._stopped.is_set():
                self._tell(stuck)
                return

    def _look(self) -> Stuck | None:
        """What has been in progress at so many looks; None if nothing has."""
        now: dict[Hashable, int] = {}
        for lockstep in list(WATCHED):
            for key, participant in _in_progress(lockstep):
                now[key] = self._seen.get(key, 0) + 1
                if now[key] > _LOOKS:
                    return self._stuck(lockstep, participant)
        self._seen = now
        return None

    def _stuck(self, lockstep: Watched, participant: Performer) -> Stuck:
        implementation = participant.implementation
        number = lockstep.step_of(participant)
        operations = tuple(lockstep.operations[: number + 1])
        own = getattr(implementation, "step_in_progress", None)
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
        return Stuck(divergence, operations)

    def _python_stack(self) -> str:
        """Where the thread is that performs the steps, the innermost frame first."""
        frame = sys._current_frames().get(self._performer)  # noqa: SLF001 -- the only way to another thread's frames
        inner = takewhile(lambda one: not one.filename.startswith(_OURS), reversed(traceback.extract_stack(frame)))
        return "\n".join(f"{one.name} ({one.filename}:{one.lineno})" for one in inner)


def _in_progress(lockstep: Watched) -> Iterator[tuple[Hashable, Performer]]:
    """The participants that perform a step right now, each with a name for exactly this step."""
    at = lockstep.at
    for participant in lockstep.participants:
        own = getattr(participant.implementation, "step_in_progress", None)
        if own is not None:
            if step := own():
                yield (id(participant), step), participant
        elif participant is at and getattr(participant.implementation, "in_process", True):
            done = lockstep.statistics
            yield (id(participant), done.examples, done.steps), participant


@contextlib.contextmanager
def watched_steps(limit: float, tell: Callable[[Stuck], None]) -> Iterator[None]:
    """Watches over the steps that this thread performs, or has performed, in the block.

    Args:
        limit: seconds that a step may take.
        tell: called in another thread with a step that takes longer; it has to end the process.
    """
    watchdog = _Watchdog(limit, tell)
    watchdog.start()
    try:
        yield
    finally:
        watchdog.stop()


def end_process(code: int) -> None:
    """Ends the process from any thread, without waiting for the others; scratch files are removed."""
    for child in multiprocessing.active_children():
        child.terminate()
    # Semaphores of processes that share the work; the tracker would complain of them on stderr.
    finalizers = threading.Thread(target=vars(util)["_run_finalizers"], daemon=True)
    finalizers.start()
    finalizers.join(_PATIENCE)
    remove_all()
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError):
            stream.flush()
    os._exit(code)
