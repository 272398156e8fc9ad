"""Program that executes all examples: a crash kills its process, and the next request starts a new process."""

from __future__ import annotations

import contextlib
import json
import shlex
import weakref
from typing import TYPE_CHECKING, Any, Final, NoReturn

from conformance.errors import ToolError
from conformance.implementations.process.line_process import LineProcess, LineProcessError
from conformance.implementations.process.messages import (
    MalformedReplyError,
    Request,
    Version,
    encode,
    introduction_from,
    line_of,
)
from conformance.quoting import quoted

if TYPE_CHECKING:
    from collections.abc import Sequence

DEADLINE: Final = 10.0
"""Default time in seconds for each other reply than that to ``start``."""
START_DEADLINE: Final = 60.0
"""Time in seconds for the reply to ``start``, which includes compiling, or starting a virtual machine."""


class StartError(ToolError):
    """Program that cannot be started, or does not describe itself."""


class RestartedProcess:
    """Program that replies to requests.

    Args:
        command: The program and its arguments, in which ``{release}`` is replaced by the release.
        release: The release whose dialect the program must follow.
        version: The version of the protocol.
        deadline: The time limit in seconds for each reply.
        start_deadline: The time limit in seconds for the reply to ``start``.

    Attributes:
        holder: A list with the running process; empty if none runs.
    """

    def __init__(
        self,
        command: Sequence[str],
        release: str,
        version: Version,
        deadline: float,
        start_deadline: float,
    ) -> None:
        self.command = [word.replace("{release}", release) for word in command]
        self.holder: list[LineProcess] = []
        self._version = version
        self._deadline = deadline
        self._start_deadline = start_deadline
        self._finalizer = weakref.finalize(self, _kill, self.holder)

    def of_version(self, version: Version) -> RestartedProcess:
        """Return the same program for another version of the protocol, not started."""
        return RestartedProcess(self.command, "", version, self._deadline, self._start_deadline)

    def introduce(self) -> Any:
        """Start the program for the first time; return its introduction.

        Raises:
            StartError: The program does not exist, or does not reply properly to ``start``.
        """
        try:
            return self._start()
        except (LineProcessError, OSError) as error:
            raise StartError(f"{shlex.join(self.command)} cannot be used: {_reason(error)}") from None

    def request(self, request: Request) -> Any:
        """Send a request and return the reply, parsed; restart the process before if necessary.

        Raises:
            LineProcessError: The reply is missing or is not JSON.
        """
        if not self.holder:
            self._restart()
        process = self.holder[0]
        try:
            line = process.ask(line_of(request), self._deadline)
            return _parsed(process, line)
        except LineProcessError:
            self.holder.clear()
            raise

    def refuse(self, reply: Any, error: MalformedReplyError) -> NoReturn:
        """Raise a LineProcessError for a reply that the protocol does not allow, and kill the process."""
        process = self.holder[0]
        self.holder.clear()
        process.fail(f"gave a reply that the protocol does not allow ({error}), {quoted(encode(reply))},")

    def kill(self) -> None:
        """Kill the running process."""
        _kill(self.holder)

    def close(self, stop: Request | None) -> None:
        """End the process: send the stop request if there is one, and kill the process if it does not end."""
        if self.holder and stop is not None:
            self.holder[0].finish(line_of(stop), self._deadline)
        self._finalizer()

    def _start(self) -> Any:
        process = LineProcess(self.command)
        self.holder.append(process)
        try:
            line = process.ask(line_of(self._version.start), self._start_deadline)
            try:
                return introduction_from(self._version, _parsed(process, line))
            except MalformedReplyError as error:
                process.fail(f"gave a reply that the protocol does not allow ({error}), {quoted(line)},")
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
