"""Shrinking of a hang in another process, which may hang or die.

A candidate that does not hang takes milliseconds. A candidate that hangs ends that process: its watchdog reports the
hang and ends the process, and the next candidate gets a new process.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import signal
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from conformance.errors import ToolError
from conformance.lockstep.divergence import Divergence, failure_json
from conformance.lockstep.watchdog import Hang, exit_process, hang_from_json, watch_steps
from conformance.operations import Operation
from conformance.operations.trace import Trace
from conformance.runs.replay import replay
from conformance.runs.shrinking.search import SHRINK_SECONDS, shrink
from kidx.workers import begin_worker, start_quietly

if TYPE_CHECKING:
    from collections.abc import Sequence
    from multiprocessing.connection import Connection

SHORT: Final = 2.0
"""The time limit of a candidate's steps in seconds; the step that hangs has already exceeded a longer limit.

A candidate is a shorter sequence of operations, which is executed to see if it hangs, too.
"""
_START: Final = 60.0
"""The time in seconds after which a process without a reply counts as lost; the start of Java is included."""


def shrink_hang(
    hang: Hang, machine: str, specification: str, limit: float, seconds: float = SHRINK_SECONDS, release: str = ""
) -> Hang:
    """Return the same hang after the fewest steps that are found in time.

    Args:
        hang: The step that hangs, and the steps before it.
        specification: The ``-i`` argument of the participant; empty for the reference.
        limit: The time in seconds that the step has taken.
        seconds: The maximum time in seconds for shrinking.
        release: The release of the participant's classes or dialect; by default the release of the divergence.
    """
    implementations = (specification,) if specification else ()
    helper = Candidates(machine, release or hang.divergence.release, implementations, min(limit, SHORT))
    name = hang.divergence.operation.name

    def reproduce(operations: Sequence[Operation]) -> Hang | None:
        found = helper.perform(operations)
        same = found is not None and found.divergence.operation.name == name
        return found if same and found is not None and len(found.operations) == len(operations) else None

    try:
        found = shrink(hang.operations, reproduce, seconds=seconds) if seconds else None
    finally:
        helper.end()
    if found is None:
        return replace(hang, shrinking="not shrunk" if not seconds else "did not hang again alone: not shrunk")
    # The original limit and stack are reported.
    own = hang.divergence
    divergence = replace(found.result.divergence, expected=own.expected, participant=own.participant)
    words = "minimal" if found.minimal else f"not minimal: {seconds:g} s were over"
    return replace(hang, divergence=divergence, operations=tuple(found.operations), shrinking=words)


class Candidates:
    """Process that executes candidates, which is replaced after a candidate that hangs or kills it.

    Args:
        implementations: The ``-i`` argument of the participant; empty for the reference.
        limit: The maximum duration of a step in seconds.
    """

    def __init__(self, machine: str, release: str, implementations: tuple[str, ...], limit: float) -> None:
        self._of = (machine, release, implementations, limit)
        self._process: Any = None
        self._pipe: Connection | None = None

    def perform(self, operations: Sequence[Operation]) -> Hang | None:
        """Return the step that hangs, or None if no step hangs or the candidate cannot be executed."""
        try:
            pipe = self._pipe or self._start()
            pipe.send([operation.to_json() for operation in operations])
            received = pipe.recv() if pipe.poll(_START) else None
        except (OSError, EOFError):
            return self._find_crash(operations)
        if received is None:
            return None
        self.end()
        return hang_from_json(received, tuple(operations))

    def _find_crash(self, operations: Sequence[Operation]) -> Hang | None:
        """Return the last step as the step that killed the process, or None if no signal has ended the process."""
        self._process.join(_START)
        code = self._process.exitcode
        self.end()
        if code is None or code >= 0:
            return None
        actual = f"the process died of {signal.Signals(-code).name}"
        release, last = self._of[1], len(operations) - 1
        divergence = Divergence(last, operations[last], "", release, "kidx", ("outcome",), "an answer", actual, ())
        return Hang(divergence, tuple(operations), shape="process died")

    def end(self) -> None:
        """End the process, if it exists."""
        if self._pipe is not None:
            self._pipe.close()
            self._process.kill()
            self._process.join()
            self._pipe = None

    def _start(self) -> Connection:
        context = multiprocessing.get_context("spawn")
        self._pipe, theirs = context.Pipe()
        self._process = context.Process(target=_serve, args=(theirs, *self._of), daemon=True)
        start_quietly(self._process)
        theirs.close()
        return self._pipe


def _serve(pipe: Connection, machine: str, release: str, implementations: tuple[str, ...], limit: float) -> None:
    """Serve candidates in the other process: reply None, or a step that hangs and then exit."""
    begin_worker()

    def give_up(hang: Hang) -> None:
        with contextlib.suppress(OSError):
            pipe.send(failure_json(hang.divergence))
        exit_process(0)

    with watch_steps(limit, give_up), contextlib.suppress(EOFError, OSError):
        while True:
            operations = tuple(map(Operation.from_json, pipe.recv()))
            with contextlib.suppress(ToolError):
                replay(Trace(machine, release, operations), [release], implementations)
            pipe.send(None)
