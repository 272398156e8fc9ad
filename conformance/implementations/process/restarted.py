"""One program over all examples: started when it is asked, killed as a crash, started again by the next request."""

from __future__ import annotations

import contextlib
import json
import shlex
import weakref
from typing import TYPE_CHECKING, Any, Final, Generic, NoReturn, TypeVar

from conformance.errors import ToolError
from conformance.implementations.process.line_process import LineProcess, LineProcessError
from conformance.implementations.replies import MalformedReplyError
from conformance.quoting import quoted

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from conformance.operations import Json

DEADLINE: Final = 10.0
START_DEADLINE: Final = 60.0
"""Seconds for the reply to ``start``: a program may have to be compiled, or a virtual machine to warm up."""
STOP: Final[Json] = {"op": "stop"}

encode = json.JSONEncoder(separators=(",", ":")).encode
About = TypeVar("About")


class StartError(ToolError):
    """The program cannot be started, or does not introduce itself."""


class RestartedProcess(Generic[About]):
    """A program that answers requests.

    Args:
        command: the program and its arguments; ``{release}`` in them is replaced by the release.
        release: the release whose dialect it must follow.
        start: the first request of each process.
        about: reads the reply to it; raises MalformedReplyError.
        deadline: seconds for each reply.
        start_deadline: seconds for the reply to ``start``.

    Attributes:
        holder: the process that runs, or none.
    """

    def __init__(
        self,
        command: Sequence[str],
        release: str,
        start: Json,
        about: Callable[[Any], About],
        deadline: float,
        start_deadline: float,
    ) -> None:
        self.command = [word.replace("{release}", release) for word in command]
        self.holder: list[LineProcess] = []
        self._start_request = start
        self._about = about
        self._deadline = deadline
        self._start_deadline = start_deadline
        self._finalizer = weakref.finalize(self, _kill, self.holder)

    def introduce(self) -> About:
        """Starts it for the first time.

        Raises:
            StartError: there is no such program, or it does not answer ``start`` properly.
        """
        try:
            return self._start()
        except (LineProcessError, OSError) as error:
            raise StartError(f"{shlex.join(self.command)} cannot be used: {_reason(error)}") from None

    def request(self, request: Json | str) -> Any:
        """Asks the process, which is started if there is none; LineProcessError if it does not reply with JSON."""
        if not self.holder:
            self._restart()
        process = self.holder[0]
        try:
            line = process.ask(request if isinstance(request, str) else encode(request), self._deadline)
            return _parsed(process, line)
        except LineProcessError:
            self.holder.clear()
            raise

    def refuse(self, reply: Any, error: MalformedReplyError) -> NoReturn:
        """A reply that the protocol does not have, as a LineProcessError."""
        process = self.holder[0]
        self.holder.clear()
        process.fail(f"gave a reply that the protocol does not have ({error}), {quoted(encode(reply))},")

    def kill(self) -> None:
        """Kills what is running."""
        _kill(self.holder)

    def close(self, stop: Json | None) -> None:
        """Ends the process: asks it to stop if there is a request for that, then kills it if it does not."""
        if self.holder and stop is not None:
            self.holder[0].finish(encode(stop), self._deadline)
        self._finalizer()

    def _start(self) -> About:
        process = LineProcess(self.command)
        self.holder.append(process)
        try:
            line = process.ask(encode(self._start_request), self._start_deadline)
            try:
                return self._about(_parsed(process, line))
            except MalformedReplyError as error:
                process.fail(f"gave a reply that the protocol does not have ({error}), {quoted(line)},")
        except LineProcessError:
            self.holder.clear()
            raise

    def _restart(self) -> None:
        try:
            self._start()
        except OSError as error:
            raise LineProcessError("ended", f"could not be started again: {error.strerror or error}") from None


def _parsed(process: LineProcess, line: str) -> Any:
    try:
        return json.loads(line)
    except (ValueError, RecursionError):
        process.fail(f"replied with something that is not JSON, {quoted(repr(line))},")


def _kill(holder: list[LineProcess]) -> None:
    while holder:
        with contextlib.suppress(OSError):
            holder.pop().kill()


def _reason(error: LineProcessError | OSError) -> str:
    if isinstance(error, OSError):
        return f"{error.strerror}: {error.filename}" if error.filename else str(error.strerror or error)
    return f"it {error}"
